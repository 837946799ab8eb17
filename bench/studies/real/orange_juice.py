"""Orange juice: price elasticities by brand beside least squares, and by neighbourhood."""

from __future__ import annotations

import numpy as np

from bench.real_data import DoseRows, orange_juice_rows
from bench.real_data.data_folder import Frame
from bench.studies.markdown import markdown_table
from bench.studies.real.held_out import (
    held_out_text,
    judge_held_out,
    no_worse_than_one_curve,
)
from bench.studies.real.plain import PlainEstimate, line
from bench.studies.real.real_effort import RealEffort
from bench.studies.real.real_section import (
    RealSection,
    group_table,
    pick,
    published_record,
    published_table,
)
from bench.studies.report import Verdict
from bench.studies.tasks import Record
from doseforest import GeneralizedCausalForest

MOST_DIFFERENCE = 0.4  # bends of curves make about .2, standard errors are about .1
LEAST_FALLING = 0.99
HOMES = "HVAL150"  # share of homes worth over $150,000
WHY = (
    "Where we differ: the line through a curve at ten prices weighs prices otherwise than least "
    "squares does. An advertisement sells juice by itself and comes with a low price: with it as a "
    "control all elasticities are nearer to zero. One forest of all brands lets them share what "
    "they have in common, and least squares for each does not: they part by more than two standard "
    "errors for minute.maid, and for dominicks where homes are dear."
)


def measure(effort: RealEffort) -> list[Record]:
    sales = orange_juice_rows.read_sales(effort.n_rows)
    records = [
        by_itself(sales[sales["brand"] == brand], effort) for brand in orange_juice_rows.BRANDS
    ]
    rows = orange_juice_rows.rows(sales)
    forest = effort.forest(rows, baseline=orange_juice_rows.BASELINE)
    for brand in orange_juice_rows.BRANDS:
        records += with_adverts(forest, sales, brand)
    return records + judge_held_out(rows, effort, baseline=orange_juice_rows.BASELINE)


def by_itself(sales: Frame, effort: RealEffort) -> Record:
    """A forest of one brand, without advertisements as the published figures are."""
    brand = sales["brand"].iloc[0]
    rows = orange_juice_rows.rows(sales, advertised=False)
    alone = DoseRows(rows.X.drop(columns="brand"), rows.y, rows.treatment, groups=rows.groups)
    doses = np.log(orange_juice_rows.usual_prices(sales, brand))
    average = effort.forest(alone).average_dose_response(doses)
    slope = (doses - doses.mean()) / ((doses - doses.mean()) @ (doses - doses.mean()))
    error = np.sqrt(slope @ average.covariance @ slope)
    published = orange_juice_rows.PUBLISHED[brand]
    return published_record(
        brand, slope @ average.values, error, published, len(rows), seed=effort.seed
    )


def with_adverts(forest: GeneralizedCausalForest, sales: Frame, brand: str) -> list[Record]:
    """Elasticities of a brand with advertisements as a control: all rows, then by neighbourhood."""
    own = sales[sales["brand"] == brand]
    prices = orange_juice_rows.usual_prices(sales, brand)
    X = orange_juice_rows.covariates(own)
    found = orange_juice_rows.elasticities(forest, X, prices)
    curves = np.asarray(forest.dose_response(X, np.log(np.geomspace(prices[0], prices[-1], 9))))
    plain = least_squares(own)
    record: Record = {"measure": "adverts", "row": brand, "n": len(own)}
    record |= {"ours": float(found.mean()), "spread": float(found.std())}
    record |= {"falling": float((found < 0).mean())}
    record |= {"steps": float((np.diff(curves, axis=1) < 0).mean())}
    records = [record | {"plain": plain.value, "plain_error": plain.error}]
    homes = own[HOMES].to_numpy(float)
    low, high = np.quantile(homes, [0.25, 0.75])
    for name, part in (("cheapest", homes <= low), ("dearest", homes >= high)):
        plain = least_squares(own[part])
        about = {"measure": "groups", "row": f"{brand}, {name} homes", "n": int(part.sum())}
        means = {"ours": float(found[part].mean()), "plain": plain.value}
        records.append(about | means | {"plain_error": plain.error})
    return records


def least_squares(sales: Frame) -> PlainEstimate:
    """With advertisements, and weeks as clusters."""
    controls = np.column_stack([np.ones(len(sales)), sales["feat"]])
    return line(sales["logmove"], np.log(sales["price"]), controls, sales["week"])


def parts(records: list[Record]) -> list[str]:
    adverts = pick(records, "adverts")
    lines = [
        [
            own["row"],
            str(PlainEstimate(own["plain"], own["plain_error"])),
            f"{own['ours']:.2f}",
            f"{own['spread']:.2f}",
            f"{own['falling']:.1%}",
            f"{own['steps']:.0%}",
        ]
        for own in adverts
    ]
    header = ["", "least squares (s.e.)", "units' curves", "s.d. over rows", "falling", "steps"]
    n = sum(own["n"] for own in adverts)
    return [
        f"{n:,} weeks of a brand in a store (Dominick's), prices as managers set them. "
        "Elasticities of sales from a forest for each brand, as slopes of the average curve over "
        "its usual prices, beside least squares; weeks are clusters, advertisements are left out "
        "of both.",
        published_table(records),
        "One forest of all brands with advertisements as a control. Falling: rows whose own curve "
        "has a negative slope; steps: share of eighths of the price range over which curves fall.",
        markdown_table(header, lines),
        WHY,
        "Who minds the price, by the share of expensive homes around the store (outer quarters):",
        group_table(records, "units' curves", "least squares (s.e.)"),
        held_out_text(records),
    ]


def verdicts(records: list[Record]) -> list[Verdict]:
    adverts = {own["row"]: own for own in pick(records, "adverts")}
    falling = min(own["falling"] for own in adverts.values())
    least = max(adverts, key=lambda brand: float(adverts[brand]["ours"]))
    return [
        *(near_least_squares(own) for own in pick(records, "published")),
        Verdict(
            falling >= LEAST_FALLING,
            f"orange-juice: at least {LEAST_FALLING:.0%} of the units' curves fall",
            f"{falling:.1%} for the brand with the fewest",
        ),
        Verdict(
            least == "tropicana",
            "orange-juice: tropicana is the least elastic brand",
            f"{least} is",
        ),
        no_worse_than_one_curve("orange-juice", records),
    ]


def near_least_squares(record: Record) -> Verdict:
    claim = f"orange-juice: {record['row']} within {MOST_DIFFERENCE} of least squares"
    measured = f"{record['ours']:.2f} against {record['published']:.2f}"
    return Verdict(abs(record["ours"] - record["published"]) <= MOST_DIFFERENCE, claim, measured)


SECTION = RealSection("Orange juice", (orange_juice_rows.FILE,), measure, parts, verdicts)
