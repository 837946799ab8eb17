"""A simulated experiment: Qini scores beside the exact ones, and beside the true value of doses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from bench.designs import DISCOUNT_DESIGNS, Simulation
from bench.real_data import DoseRows
from bench.studies.qini.qini_models import GCF, QiniEffort, fit_table_2, with_others
from bench.studies.tasks import Record
from doseforest.base.dtypes import FloatArray
from doseforest.datasets.discount_levels import COLUMN, LEVELS
from doseforest.evaluation import (
    BudgetedQini,
    DoseScores,
    RowEstimate,
    budgeted_qini,
    qini_curve,
    randomised_scores,
)
from doseforest.evaluation.predicted_curves import predicted_curves
from doseforest.evaluation.row_estimates import mean_of_estimates

TEST_SEED = 1_000_000  # on top of the study's
MOST_PARTS = 20  # of the test rows, of each size
PICTURE_PLACE = 3  # the level whose curves are drawn
PICTURE_SHARES = np.arange(0, 21) / 20

Tell = Callable[[str], None]


def measure(name: str, effort: QiniEffort, tell: Tell) -> list[Record]:
    """Fit on one draw of a regime, judge on another."""
    design = DISCOUNT_DESIGNS[name]
    train = design.draw(n=effort.n_train, seed=effort.seed)
    chances = np.full((len(train.y), len(LEVELS)), 1 / len(LEVELS))
    rows = DoseRows(train.X, train.y, train.treatment, chances)
    test = design.draw(n=effort.n_test, seed=TEST_SEED + effort.seed)
    curves = {}
    start = time.perf_counter()
    fitted = fit_table_2(rows, effort)
    tell(f"{name}: models fitted in {time.perf_counter() - start:.0f} s")
    for model, own in with_others(fitted, rows, effort).items():
        start = time.perf_counter()
        curves[model] = predicted_curves(own, test.X, LEVELS)
        passed = time.perf_counter() - start
        tell(f"{name}: {effort.n_test:,} curves of {model} in {passed:.0f} s")
    records = judge(curves, test, effort.blocks)
    return [{"design": name, "seed": effort.seed, **record} for record in records]


def judge(
    curves: Mapping[str, FloatArray], test: Simulation, blocks: tuple[int, ...]
) -> list[Record]:
    """Scores of models whose curves of the test units are given."""
    truth = test.mean(LEVELS)
    estimates: dict[str, list[RowEstimate]] = {model: [] for model in curves}
    records: list[Record] = []
    for place in range(1, len(LEVELS)):
        for model, own in curves.items():
            estimate, record = _score(own, truth, test, place)
            estimates[model].append(estimate)
            records.append({"measure": "score", "row": model, **record})
    means = {model: mean_of_estimates(own) for model, own in estimates.items()}
    records += _differences(estimates, means)
    cost = np.outer(test.X[:, COLUMN["fare"]], LEVELS)
    scores = randomised_scores(test.y, test.treatment, LEVELS)
    ranking: list[Record] = []
    for model, predicted in curves.items():
        exact = [
            record["exact"] for record in records if record["row"] == model and "exact" in record
        ]
        ranking.append(
            {
                "measure": "ranking",
                "row": model,
                "mean": means[model].value,
                "mean_error": means[model].standard_error,
                "exact_mean": float(np.mean(exact)),
                **_value(predicted, cost, scores, DoseScores(LEVELS, truth)),
            }
        )
    value = {own["row"]: own["policy_value"] for own in ranking}
    agreement = [_agreement(curves, test, cost, scores, value, n_rows) for n_rows in blocks]
    whole = {
        "qini": _in_order({own["row"]: own["mean"] for own in ranking}, value),
        "budgeted": _in_order({own["row"]: own["budgeted"] for own in ranking}, value),
    }
    n_rows = len(test.y)
    about = {"measure": "agreement", "row": f"{n_rows}", "n": n_rows, "parts": 1}
    return [*records, *ranking, *agreement, about | whole]


def _score(
    curves: FloatArray, truth: FloatArray, test: Simulation, place: int
) -> tuple[RowEstimate, Record]:
    """Score of a model at one discount, the exact one, and the curve where it is drawn."""
    dose = float(LEVELS[place])
    predicted = curves[:, place] - curves[:, 0]
    curve = qini_curve(test.y, test.treatment, predicted, dose=dose)
    effect = truth[:, place] - truth[:, 0]
    right = qini_curve(None, None, predicted, dose=dose, scores=effect)
    record = {"dose": dose, **_numbers(curve.estimate), "exact": right.score}
    if place == PICTURE_PLACE:
        _, low, high = curve.band(shares=PICTURE_SHARES)
        drawn = {"gain": curve.at(PICTURE_SHARES), "low": low, "high": high}
        record |= {name: own.round(6).tolist() for name, own in drawn.items()}
    return curve.estimate, record


def _value(
    curves: FloatArray, cost: FloatArray, scores: DoseScores, truth: DoseScores
) -> dict[str, float]:
    """What a model's discounts gain over budgets, by outcomes and by the exact chances."""
    found = _by_budget(curves, cost, scores)
    numbers = {"budgeted": found.score, "budgeted_error": found.standard_error}
    exact = _by_budget(curves, cost, truth)
    return numbers | {
        "exact_budgeted": exact.score,
        "policy_value": exact.mean_gain.value,
    }


def _by_budget(curves: FloatArray, cost: FloatArray, scores: DoseScores) -> BudgetedQini:
    """Discounts by predicted orders and the fare that is forgone, at every budget."""
    return budgeted_qini(None, None, curves, cost, doses=LEVELS, scores=scores)


def _numbers(own: RowEstimate) -> dict[str, float]:
    return {"value": own.value, "standard_error": own.standard_error}


def _differences(
    estimates: Mapping[str, list[RowEstimate]], means: Mapping[str, RowEstimate]
) -> list[Record]:
    """Ours less each other model, paired, dose by dose and on average."""
    records = []
    for model, own in estimates.items():
        if model == GCF:
            continue
        pairs = zip(LEVELS[1:], estimates[GCF], own, strict=True)
        gaps: list[tuple[Any, RowEstimate]] = [
            (float(dose), one.minus(other)) for dose, one, other in pairs
        ]
        gaps.append(("mean", means[GCF].minus(means[model])))
        for dose, gap in gaps:
            about = {"measure": "difference", "row": model, "dose": dose, "p": gap.p_value}
            records.append(about | _numbers(gap))
    return records


def _agreement(
    curves: Mapping[str, FloatArray],
    test: Simulation,
    cost: FloatArray,
    scores: DoseScores,
    value: Mapping[str, float],
    n_rows: int,
) -> Record:
    """Share of pairs of models that parts of the test rows put in the order of true value."""
    right = {"qini": 0.0, "budgeted": 0.0}
    n_blocks = min(len(test.y) // n_rows, MOST_PARTS)
    for block in range(n_blocks):
        rows = slice(block * n_rows, (block + 1) * n_rows)
        own = DoseScores(LEVELS, scores.values[rows])
        found = {
            "qini": {name: _mean_qini(curve[rows], test, rows) for name, curve in curves.items()},
            "budgeted": {
                name: _by_budget(curve[rows], cost[rows], own).score
                for name, curve in curves.items()
            },
        }
        for metric, by_model in found.items():
            right[metric] += _in_order(by_model, value) / n_blocks
    return {"measure": "agreement", "row": f"{n_rows}", "n": n_rows, "parts": n_blocks, **right}


def _in_order(found: Mapping[str, float], value: Mapping[str, float]) -> float:
    """Share of the pairs of models that two numbers put in the same order."""
    pairs = list(combinations(found, 2))
    same = [(found[one] > found[other]) == (value[one] > value[other]) for one, other in pairs]
    return float(np.mean(same))


def _mean_qini(curves: FloatArray, test: Simulation, rows: slice) -> float:
    y, treatment = test.y[rows], test.treatment[rows]
    scores = [
        qini_curve(y, treatment, curves[:, place] - curves[:, 0], dose=LEVELS[place]).score
        for place in range(1, len(LEVELS))
    ]
    return float(np.mean(scores))
