"""`doseforest fit` and `doseforest predict`: from a table to a forest, and from it to answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from doseforest.pricing.cli import table_options
from doseforest.pricing.cli.error_lines import told
from doseforest.pricing.cli.table_options import RoleTable, answer, one_dose, read_doses
from doseforest.pricing.pipeline.pipeline_models import known_density
from doseforest.pricing.pipeline.report_page.report_sections import plain_dose_name
from doseforest.pricing.pipeline.row_tables import write_table


@told
def fit(
    rows: table_options.Rows,
    outcome: table_options.Outcome,
    treatment: table_options.Treatment,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the forest goes.")] = Path(
        "model.dose"
    ),
    features: table_options.Features = None,
    exclude: table_options.Exclude = None,
    propensity: table_options.Propensity = None,
    group: table_options.Group = None,
    trees: Annotated[int, typer.Option(min=1, help="Trees of a round.")] = 400,
    correction: Annotated[
        str, typer.Option(help="orthogonal, stabilized, kernel, paper or none.")
    ] = "orthogonal",
    seed: table_options.Seed = 0,
    threads: Annotated[int | None, typer.Option(min=1, help="By default all cores.")] = None,
    json: table_options.Json = False,
) -> None:
    """Fit a forest to the rows of a table and save it.

    Example: doseforest fit views.parquet -y requested -t discount -x fare,hour -o model.dose
    """
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

    table = RoleTable(
        rows,
        outcome=outcome,
        treatment=treatment,
        features=features,
        exclude=exclude,
        propensity=propensity,
        group=group,
    )
    y, dose = table.y, table.treatment
    forest = GeneralizedCausalForest(trees, random_state=seed, n_jobs=threads)
    forest.set_params(correction=correction)
    if table.propensity is not None:
        forest.set_params(density=known_density(table.propensity, dose))
    forest.fit(table.features, y, treatment=dose, groups=table.groups)
    forest.save(out)
    result = {
        "path": str(out),
        "rows": len(y),
        "features": table.names,
        "bytes": out.stat().st_size,
        "seconds": {name: round(each, 2) for name, each in forest.seconds_.items()},
    }
    text = (
        f"Fitted {len(table.names)} features of {len(y):,} rows, wrote {out} "
        f"({out.stat().st_size / 1e6:.1f} MB). Next: doseforest predict {out} {rows} -o curves.csv"
    )
    answer(result, json, text)


@told
def predict(
    model: table_options.Model,
    units: table_options.Rows,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where answers go, .parquet or .csv.")],
    doses: table_options.Doses = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="Differences to the baseline, not responses.")
    ] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Effects with intervals, of forests that have them.")
    ] = False,
    coverage: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    baseline: Annotated[str | None, typer.Option(help="A dose; by default the forest's.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns of the units that go before the answers.")
    ] = None,
    json: table_options.Json = False,
) -> None:
    """Predict the response of each unit at each dose.

    Example: doseforest predict model.dose units.parquet --doses 0,0.1,0.2 -o curves.parquet
    """
    import numpy as np

    from doseforest.doses.dose_values import Doses

    forest, table = load_curves(model), RoleTable(units)
    grid = read_doses(doses)
    asked = np.asarray(Doses.of(forest.doses).plain) if grid is None else grid
    X = features_of(forest, table.frame)
    names = [plain_dose_name(each) for each in asked.tolist()]
    kept = table_options.split(keep)
    for name in kept:
        table_options.column(table.frame, name, "--keep")
    result: dict[str, Any] = {name: table.frame[name].to_numpy() for name in kept}
    start = one_dose(baseline)
    if intervals:
        if not hasattr(forest, "effect_interval"):
            raise ValueError("This forest has no intervals of single units.")
        low, high = forest.effect_interval(X, doses=asked, baseline=start, coverage=coverage)
        for place, name in enumerate(names):
            result[f"low_{name}"] = np.asarray(low)[:, place]
            result[f"high_{name}"] = np.asarray(high)[:, place]
    first = Doses.of(_alone(forest.baseline)).plain if start is None else np.asarray([start])
    curves = np.asarray(forest.dose_response(X, np.concatenate([first, asked])))
    curves = curves[:, 1:] - (curves[:, :1] if effects or intervals else 0.0)
    word = "effect" if effects or intervals else "response"
    result |= {f"{word}_{name}": curves[:, place] for place, name in enumerate(names)}
    write_table(_frame(result), out)
    about = {"path": str(out), "units": len(curves), "doses": asked.tolist(), "what": word}
    answer(
        about, json, f"Wrote the {word}s of {len(curves):,} units at {len(names)} doses to {out}."
    )


def load_curves(path: Path) -> Any:
    """A saved forest that answers for doses."""
    from doseforest.files.forest_file import load_forest

    forest = load_forest(path)
    if not hasattr(forest, "dose_response"):
        raise ValueError(f"{path} holds no forest of dose-response curves.")
    return forest


def features_of(forest: Any, frame: Any) -> Any:
    """The features that a forest knows, of a table that may have more."""
    known = getattr(forest, "forest", forest)
    names = getattr(known, "feature_names", None)
    if names is None:
        return frame
    for name in names:
        table_options.column(frame, name, "Each feature of the forest")
    return frame[list(names)]


def _alone(dose: Any) -> Any:
    import numpy as np

    return np.asarray(dose).reshape(1)


def _frame(columns: dict[str, Any]) -> Any:
    from doseforest.pricing.pipeline.row_tables import pandas

    return pandas().DataFrame(columns)
