"""Rows of a comparison of models: checked once, split by groups, cut into parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data import checks
from doseforest.doses.dose_values import MAX_COMPONENTS
from doseforest.doses.grids import check_count
from doseforest.evaluation.candidates import rows_at, split_parts
from doseforest.evaluation.dose_scores import DoseScores
from doseforest.evaluation.qini.qini_table import asked_doses
from doseforest.evaluation.selection_metrics import HeldOutRows
from doseforest.nuisance.cross_fit import draw_folds, fold_splits

SCORES = ("randomised", "robust")


@dataclass(frozen=True, slots=True, eq=False)
class AllRows:
    """Everything that rows bring along."""

    held_out: HeldOutRows  # all rows, to be cut

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.held_out.y)

    @property
    def groups(self) -> IntArray | None:
        """Group of each row, (n_rows,)."""
        return self.held_out.groups

    def at(self, places: IntArray) -> HeldOutRows:
        """Rows at places, to judge by."""
        rows = self.held_out
        scores = rows.scores
        return replace(
            rows,
            X=rows_at(rows.X, places),
            y=rows.y[places],
            treatment=rows.treatment[places],
            groups=None if rows.groups is None else rows.groups[places],
            propensity=None if rows.propensity is None else rows.propensity[places],
            cost=None if rows.cost is None else rows.cost[places],
            scores=None if scores is None else DoseScores(scores.doses, scores.values[places]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Places of rows: those of each fit, those that judge its models, those that tell at last."""

    fits: list[IntArray]
    judges: list[IntArray]
    tells: IntArray


def check_rows(
    X: Any,
    y: Any,
    treatment: Any,
    *,
    doses: Any,
    baseline: Any,
    cost: Any,
    budget: float | None,
    propensity: Any,
    scores: Any,
    score_options: Mapping[str, Any] | None,
    groups: Any,
    random_state: Any,
    n_jobs: int | None,
) -> AllRows:
    """Check what `select_model` is given about rows."""
    n_rows = len(X)
    outcome = checks.checked_columns(y, "y", n_rows, 1)[:, 0].astype(np.float64)
    columns = checks.checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS)
    asked = asked_doses(doses, treatment, n_rows, baseline)
    chances: FloatArray | None = None
    if propensity is not None:
        given = checks.checked_columns(propensity, "propensity", n_rows, 1)
        chances = given[:, 0].astype(np.float64)
    check_count(random_state, 0, "random_state")
    grid = np.concatenate([np.asarray(baseline, np.float64)[None], asked])
    known = _given_scores(scores, n_rows, grid)
    if known is not None and chances is not None:
        raise ValueError(
            "The 'propensity' parameter must be None with scores, which know it already. "
            f"Got {propensity!r} instead."
        )
    return AllRows(
        HeldOutRows(
            X=X,
            y=outcome,
            treatment=(columns[:, 0] if columns.shape[1] == 1 else columns).astype(np.float64),
            doses=asked,
            baseline=baseline,
            groups=None if groups is None else checks.group_codes(groups, n_rows),
            propensity=chances,
            cost=None if cost is None else _costs(cost, (n_rows, 1 + len(asked))),
            budget=budget,
            scores=known,
            randomised=chances is not None if scores is None else str(scores) == "randomised",
            score_options=dict(score_options or {}),
            random_state=random_state,
            n_jobs=n_jobs,
        )
    )


def refuse_for_r_risk(candidates: Mapping[str, Any], **given: Any) -> None:
    """What the R-risk would ignore, and candidates without curves."""
    for name, value in given.items():
        if value is not None and not isinstance(value, str):  # texts only say how doses came
            raise ValueError(
                f"The {name!r} parameter must be None for metric='r_risk', which has nuisances of "
                f"its own. Got {type(value).__name__} instead."
            )
    for name, model in candidates.items():
        if hasattr(model, "fit") and not hasattr(model, "dose_response"):
            raise ValueError(
                "The 'candidates' parameter must hold models with a method dose_response for "
                f"metric='r_risk'. Got {model!r} as {name!r} instead."
            )


def draw_split(rows: AllRows, selection_size: Any, test_size: Any, cv: Any, seed: int) -> Split:
    """Split rows, those of a group together."""
    ids = np.arange(rows.n_rows) if rows.groups is None else rows.groups
    if cv is None:
        _check_share("selection_size", selection_size, with_zero=False)
        _check_share("test_size", test_size, with_zero=True)
        if selection_size + test_size >= 1:
            raise ValueError(
                "The 'test_size' parameter must leave rows for fits: below 1 together with "
                f"selection_size. Got {test_size!r} beside {selection_size!r} instead."
            )
        shares = (1.0 - selection_size - test_size, selection_size, test_size)
        train, chooses, tells = split_parts(ids, shares, seed)
        split = Split([train], [chooses], tells)
    else:
        check_count(cv, 2, "cv")
        folds = draw_folds(ids, cv, seed)
        splits = fold_splits(folds)
        within = [split.left_out for split in splits]
        without = [split.kept for split in splits]
        split = Split(without, within, np.empty(0, np.int64))
    judging = split.judges + ([split.tells] if test_size and cv is None else [])
    if not all(map(len, split.fits)) or any(len(np.unique(ids[each])) < 2 for each in judging):
        raise ValueError(
            "The 'X' parameter must have enough rows (or groups) for every part of the split, at "
            "least two where models are judged: one has no spread to tell an error by. "
            f"Got {len(np.unique(ids))} instead."
        )
    return split


def _given_scores(scores: Any, n_rows: int, grid: FloatArray) -> DoseScores | None:
    """Scores of all rows at the baseline and the doses, in that order; None if not given."""
    if isinstance(scores, DoseScores):
        if len(scores.values) != n_rows:
            raise ValueError(
                f"The 'scores' parameter must have one row per row of X ({n_rows}). "
                f"Got {len(scores.values)} instead."
            )
        known = scores.at(grid)
        if not np.isfinite(known.values).all():
            row = int(np.argmin(np.isfinite(known.values).all(axis=1)))
            raise ValueError(
                "The 'scores' parameter must be finite; rows without weight have none. "
                f"Got {known.values[row].tolist()} in row {row} instead."
            )
        return known
    if scores is not None and scores not in SCORES:
        raise ValueError(
            f"The 'scores' parameter must be one of {', '.join(SCORES)}, DoseScores of all rows, "
            f"or None. Got {scores!r} instead."
        )
    return None


def _costs(cost: Any, shape: tuple[int, int]) -> FloatArray:
    table = np.asarray(cost, np.float64)
    if table.shape not in (shape, shape[1:]) or not np.isfinite(table).all():
        raise ValueError(
            "The 'cost' parameter must be finite numbers for the baseline and each dose, shape "
            f"{shape[1:]} or {shape}. Got shape {table.shape} instead."
        )
    return np.broadcast_to(table, shape)


def _check_share(name: str, share: Any, *, with_zero: bool) -> None:
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not (0 < share < 1 or (share == 0 and with_zero)):
        ends = "[0, 1)" if with_zero else "(0, 1)"
        raise ValueError(
            f"The {name!r} parameter must be a float in {ends}. Got {share!r} instead."
        )
