"""Models are judged on rows that they have not seen; one of them is to decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.plain_json import write_json
from doseforest.evaluation.qini.qini_table import QiniTable, asked_doses, qini_table
from doseforest.evaluation.selection_metrics import METRICS
from doseforest.evaluation.selection_rows import check_rows
from doseforest.evaluation.verdicts import SelectionVerdict, decide
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.pipeline_models import load_model
from doseforest.pricing.pipeline.roles import baseline_of
from doseforest.pricing.pipeline.row_tables import read_table
from doseforest.pricing.pipeline.spending import cost_shares
from doseforest.pricing.pipeline.steps import HELD_OUT, SELECTION

if TYPE_CHECKING:
    from doseforest.evaluation.row_estimates import RowEstimate
    from doseforest.pricing.pipeline.config import PipelineConfig
    from doseforest.pricing.pipeline.steps import Step

CURVE_POINTS = 41  # of a Qini curve that is kept


def run(step: Step, config: PipelineConfig, drafts: Path) -> dict[str, Any]:
    """Write scores, Qini curves and the verdict."""
    frame = read_table(config.workspace / HELD_OUT)
    models = {name: load_model(name, config) for name in config.train.models}
    X, chances = roles.features(frame, config), roles.propensity(frame, config)
    dose, own = roles.treatment(frame, config), config.select
    baseline = baseline_of(config)
    asked = asked_doses(own.doses, dose, len(frame), baseline)
    rows = check_rows(
        X,
        roles.outcome(frame, config),
        dose,
        doses=asked,
        baseline=baseline,
        cost=_costs(frame, asked, config) if own.metric == "budgeted_qini" else None,
        budget=None,
        propensity=chances,
        scores=own.scores,
        score_options={} if chances is None else {"density": chances},
        groups=roles.groups(frame, config),
        random_state=config.pipeline.seed,
        n_jobs=config.pipeline.threads,
    ).held_out
    scores = None if rows.randomised else rows.dose_scores()
    table = qini_table(
        models,
        X,
        rows.y,
        rows.treatment,
        doses=rows.doses,
        baseline=baseline,
        propensity=chances if scores is None else None,
        scores=scores,
        groups=rows.groups,
    )
    metric = METRICS[own.metric]
    if own.metric == "qini":
        estimates = {name: table.mean(name) for name in models}
    else:
        judge = metric.prepare(rows)
        estimates = {name: judge(model) for name, model in models.items()}
    verdict = decide(estimates, metric, own.level, len(frame))
    selected = verdict.winner or (verdict.best if own.tie == "best" else own.tie)
    result = {
        "selected": selected,
        "metric": own.metric,
        "metric name": metric.name,
        "reason": verdict.reason,
        "winner": verdict.winner,
        "tied": list(verdict.tied),
        "rows": len(frame),
        "scores": {name: _plain(estimate) for name, estimate in estimates.items()},
        "differences": _differences(estimates, verdict),
        "qini": _qini(table),
    }
    write_json(drafts / Path(SELECTION).name, result, indent=1)
    return {"selected": selected, "reason": verdict.reason}


def _costs(frame: Any, doses: FloatArray, config: PipelineConfig) -> FloatArray:
    """Cost of the baseline and the doses for each row, the same whatever the model.

    Price times dose times the mean outcome: who answers more than others is for the models to say.
    """
    grid = np.concatenate([np.asarray(baseline_of(config), np.float64)[None], doses])
    shares = grid.reshape(len(grid), -1) @ np.array(cost_shares(frame, config))
    price = roles.amounts(frame, config.optimise.price) * roles.outcome(frame, config).mean()
    return np.outer(price, shares)


def _plain(estimate: RowEstimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "interval": list(estimate.interval()),
        "p_value": estimate.p_value,
    }


def _differences(
    estimates: dict[str, RowEstimate], verdict: SelectionVerdict
) -> dict[str, dict[str, Any]]:
    """Of the best to all others, paired."""
    best = estimates[verdict.best]
    return {
        name: _plain(best.minus(estimate))
        for name, estimate in estimates.items()
        if name != verdict.best
    }


def _qini(table: QiniTable) -> dict[str, Any]:
    """Scores dose by dose, and curves at the dose of largest score of the best model."""
    best = table.models.index(table.best)
    place = int(np.argmax(table.scores[best]))
    shares = np.linspace(0.0, 1.0, CURVE_POINTS)
    curves = {name: curve[place] for name, curve in table.curves.items()}
    return {
        "doses": np.asarray(table.doses).tolist(),
        "scores": {
            name: [_plain(curve.estimate) for curve in each] for name, each in table.curves.items()
        },
        "means": {name: _plain(table.mean(name)) for name in table.models},
        "curve dose": np.asarray(table.doses[place]).tolist(),
        "shares": shares.tolist(),
        "curves": {
            name: np.interp(shares, curve.shares, curve.gain).tolist()
            for name, curve in curves.items()
        },
    }
