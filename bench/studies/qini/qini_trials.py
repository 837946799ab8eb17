"""Real experiments: Qini scores where nobody knows the truth, on rows that no model has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from bench.real_data import DoseRows, loan_rows, mailing_rows, match_ratio_rows
from bench.studies.qini.qini_models import GCF, QiniEffort, fit_table_2
from bench.studies.tasks import Record
from doseforest.evaluation import DoseScores, QiniTable, qini_table, robust_scores
from doseforest.nuisance.treatment.known_densities import Strata

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class QiniTrial:
    """A data set, and which effects are ranked."""

    title: str
    about: str
    file: str  # of the data folder
    read: Callable[[], DoseRows]
    doses: tuple[float, ...]
    baseline: float = 0.0


def _letters() -> DoseRows:
    return match_ratio_rows.rows(match_ratio_rows.read_letters())


def _offers() -> DoseRows:
    return loan_rows.rows(loan_rows.read_offers())


def _voters() -> DoseRows:
    return mailing_rows.rows(mailing_rows.read_voters())


TRIALS: dict[str, QiniTrial] = {
    "match-ratios": QiniTrial(
        "Karlan and List 2007",
        "whether a donor gives, by match ratio against none; scores by arms",
        match_ratio_rows.FILE,
        _letters,
        (1.0, 2.0, 3.0),
    ),
    "loans": QiniTrial(
        "Karlan and Zinman 2008",
        "whether a client applies, by interest rate as a share of the usual one, against the usual "
        "one; doubly robust scores with the strata known, as rates were random within them only",
        loan_rows.FILE,
        _offers,
        (0.5, 0.7, 0.9),
        1.0,
    ),
    "mailings": QiniTrial(
        "Gerber, Green and Larimer 2008",
        "turnout, by mailing (1 to 4) against none; scores by arms, errors by household",
        mailing_rows.FILE,
        _voters,
        (1.0, 2.0, 3.0, 4.0),
    ),
}


def measure(name: str, effort: QiniEffort, tell: Tell) -> list[Record]:
    """Fit on some rows of a trial, judge on all others."""
    trial = TRIALS[name]
    rows = trial.read()
    fits = training_marks(rows, effort)
    seen, unseen = rows.take(fits), rows.take(~fits)
    models = fit_table_2(seen, effort)
    tell(f"{name}: models fitted to {len(seen):,} rows")
    table = qini_table(
        models,
        unseen.X,
        unseen.y,
        unseen.treatment,
        doses=list(trial.doses),
        baseline=trial.baseline,
        scores=_scores(unseen, trial, effort),
        groups=unseen.groups,
    )
    about = {"design": name, "seed": effort.seed, "n": len(unseen), "n_train": len(seen)}
    return [about | record for record in _records(table)]


def training_marks(rows: DoseRows, effort: QiniEffort) -> Any:
    """Rows for fits: at most half of all, groups together, shape (n_rows,)."""
    labels = np.arange(len(rows)) if rows.groups is None else rows.groups
    distinct, place = np.unique(labels, return_inverse=True)
    share = min(effort.n_train / len(rows), 0.5)
    return (np.random.default_rng(effort.seed).random(len(distinct)) < share)[place]


def _scores(rows: DoseRows, trial: QiniTrial, effort: QiniEffort) -> DoseScores | None:
    """Doubly robust scores where doses were random within strata; none for plain arms."""
    if not isinstance(rows.density, Strata):
        return None
    return robust_scores(
        rows.X,
        rows.y,
        rows.treatment,
        [trial.baseline, *trial.doses],
        density=rows.density,
        outcome_model=HistGradientBoostingRegressor(
            max_iter=100, learning_rate=0.05, max_leaf_nodes=8, random_state=0
        ),
        groups=rows.groups,
        random_state=effort.seed,
        n_jobs=effort.n_jobs,
    )


def _records(table: QiniTable) -> list[Record]:
    records: list[Record] = []
    for model in table.models:
        scores = [*(curve.estimate for curve in table.curves[model]), table.mean(model)]
        gaps: list[Any] = [None] * len(scores)
        if model != GCF:
            own = table.differences(GCF, model), table.mean_difference(GCF, model)
            gaps = [*own[0], own[1]]
        for dose, score, gap in zip([*map(float, table.doses), "mean"], scores, gaps, strict=True):
            record = {
                "measure": "score",
                "row": model,
                "dose": dose,
                "value": score.value,
                "standard_error": score.standard_error,
                "p": score.p_value,
            }
            if gap is not None:
                record |= {"ours_less": gap.value, "ours_less_error": gap.standard_error}
            records.append(record)
    effects = [curve.average_effect for curve in table.curves[GCF]]
    for dose, effect in zip(map(float, table.doses), effects, strict=True):
        about = {"measure": "effect", "row": "all units", "dose": dose}
        records.append(about | {"value": effect.value, "standard_error": effect.standard_error})
    return records
