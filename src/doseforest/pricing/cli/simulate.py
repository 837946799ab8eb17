"""`doseforest simulate`: rows with a known truth, to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from doseforest.pricing.cli.error_lines import told
from doseforest.pricing.cli.table_options import Json, Seed, answer
from doseforest.pricing.pipeline.problems import nearest
from doseforest.pricing.pipeline.row_tables import pandas, write_table

MARKETPLACE = "marketplace"


@told
def simulate(
    out: Annotated[Path, typer.Argument(help="Where the rows go, .parquet or .csv.")],
    design: Annotated[
        str, typer.Option(help="'marketplace', or a design such as 'confounded' or 'steps'.")
    ] = MARKETPLACE,
    rows: Annotated[int, typer.Option(min=1)] = 10_000,
    regime: Annotated[
        str, typer.Option(help="Of the marketplace: linear, mixed or nonlinear.")
    ] = "mixed",
    options: Annotated[
        int, typer.Option(min=1, max=2, help="Of the marketplace: 2 has a second discount.")
    ] = 1,
    assignment: Annotated[
        str, typer.Option(help="levels, continuous, history or history_continuous.")
    ] = "levels",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Write rows of a simulated experiment.

    Example: doseforest simulate views.parquet --rows 20000 --regime nonlinear
    """
    if design == MARKETPLACE:
        from doseforest.pricing.market import Marketplace, write_experiment

        market = Marketplace(regime, options)
        if out.suffix.lower() == ".parquet":  # a chunk at a time: as many rows as one likes
            write_experiment(out, rows, market=market, seed=seed, assignment=assignment)
        else:
            write_table(_marketplace(market, rows, seed, assignment), out)
    else:
        write_table(_design(design, rows, seed), out)
    result = {"path": str(out), "design": design, "rows": rows, "seed": seed}
    answer(result, json, f"Wrote {rows:,} rows to {out}.")


def _marketplace(market: Any, rows: int, seed: int, assignment: str) -> Any:
    from doseforest.pricing.market import draw_experiment

    return pandas().DataFrame(draw_experiment(market, rows, seed, assignment).columns())


def _design(name: str, rows: int, seed: int) -> Any:
    from doseforest.datasets import DESIGNS, DISCOUNT_DESIGNS, JOINT_DESIGNS

    known = {**DESIGNS, **DISCOUNT_DESIGNS, **JOINT_DESIGNS}
    if name not in known:
        raise ValueError(
            f"--design must be {MARKETPLACE!r} or a known design. Got {name!r}."
            f"{nearest(name, [MARKETPLACE, *known])}"
        )
    drawn = known[name].draw(n=rows, seed=seed)
    frame = pandas().DataFrame(drawn.X, columns=[f"x{place}" for place in range(drawn.X.shape[1])])
    doses = drawn.treatment.reshape(rows, -1)
    for place in range(doses.shape[1]):
        frame["dose" if doses.shape[1] == 1 else f"dose_{place}"] = doses[:, place]
    frame["outcome"] = drawn.y
    return frame
