"""Who beats no heterogeneity: the forest, one curve for all and no effect on rows held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.real_data import DoseRows
from bench.studies.real.plain import NORMAL_95
from bench.studies.real.real_effort import RealEffort
from bench.studies.real.real_section import pick
from bench.studies.report import Verdict
from bench.studies.tasks import Record
from doseforest import GeneralizedCausalForest
from doseforest.base.dtypes import FloatArray
from doseforest.baselines import AverageCurve, ZeroEffect
from doseforest.evaluation import EffectRisk, fit_yardstick

HELD_OUT = 1 / 3
AVERAGED_UNITS = 1000  # whose curves make the one curve for all
ONE_CURVE, NO_EFFECT = "one curve for all", "no effect"


def held_out_rows(rows: DoseRows, seed: int) -> NDArray[np.bool_]:
    """A third of the rows, drawn at random; rows of a group together, shape (n_rows,)."""
    labels = np.arange(len(rows)) if rows.groups is None else rows.groups
    distinct, place = np.unique(labels, return_inverse=True)
    drawn = np.random.default_rng(seed).random(len(distinct)) < HELD_OUT
    kept: NDArray[np.bool_] = drawn[place]
    return kept


def judge_held_out(
    rows: DoseRows, effort: RealEffort, *, baseline: float | None = None
) -> list[Record]:
    """Fit a forest to two thirds of the rows and judge it by the others."""
    held_out = held_out_rows(rows, effort.seed)
    seen, unseen = rows.take(~held_out), rows.take(held_out)
    return judge(effort.forest(seen, baseline=baseline), seen, unseen, effort)


def judge(
    forest: GeneralizedCausalForest, seen: DoseRows, unseen: DoseRows, effort: RealEffort
) -> list[Record]:
    """By how much the R-risk of the forest is below that of less."""
    yardstick = fit_yardstick(
        unseen.X,
        unseen.y,
        unseen.treatment,
        groups=unseen.groups,
        random_state=effort.seed,
        n_jobs=effort.n_jobs,
    )
    places = np.linspace(0, len(seen) - 1, min(len(seen), AVERAGED_UNITS)).astype(int)
    some = np.zeros(len(seen), bool)
    some[places] = True
    units = seen.X[some]

    def one_curve(doses: FloatArray) -> FloatArray:
        within = forest.support_.clip(doses)
        mean: FloatArray = np.asarray(forest.dose_response(units, within)).mean(axis=0)
        return mean

    full, same, none = (
        yardstick.risk(model)
        for model in (forest, AverageCurve(one_curve), ZeroEffect().fit(seen.X, seen.y))
    )
    return [
        _gain(ONE_CURVE, same.minus(full), len(unseen)),
        _gain(NO_EFFECT, none.minus(same), len(unseen)),
    ]


def _gain(row: str, gap: EffectRisk, n: int) -> Record:
    """What is gained over a row by the next better one."""
    own = {"gain": gap.value, "standard_error": gap.standard_error}
    return {"measure": "held out", "row": row, "n": n} | own


def held_out_text(records: Sequence[Record]) -> str:
    """One sentence for a report."""
    found = {record["row"]: record for record in pick(records, "held out")}
    heterogeneity, effect = found[ONE_CURVE], found[NO_EFFECT]
    return (
        f"On {heterogeneity['n']:,} rows held out, the R-risk of the units' own curves is "
        f"{_gap_text(heterogeneity)} that of {ONE_CURVE}, which is {_gap_text(effect)} that of "
        f"{NO_EFFECT}."
    )


def _gap_text(record: Record) -> str:
    gain, error = record["gain"], record["standard_error"]
    side = "below" if gain > 0 else "above"
    sure = "" if abs(gain) > NORMAL_95 * error else ", within noise,"
    return f"{abs(gain):.3g} (s.e. {error:.2g}){sure} {side}"


def no_worse_than_one_curve(section: str, records: Sequence[Record]) -> Verdict:
    """The safety net: heterogeneity must not cost."""
    claim = f"{section}: on rows held out not worse than {ONE_CURVE} beyond noise"
    found = [record for record in pick(records, "held out") if record["row"] == ONE_CURVE]
    gain, error = found[0]["gain"], found[0]["standard_error"]
    return Verdict(gain > -NORMAL_95 * error, claim, f"R-risk {_gap_text(found[0])} its")
