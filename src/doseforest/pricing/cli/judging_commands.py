"""`doseforest evaluate` and `doseforest select`: models by rows that they have not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from doseforest.base.dtypes import FloatArray
from doseforest.evaluation import ModelSelection, fit_yardstick, qini_table, select_model
from doseforest.evaluation.selection_metrics import METRICS
from doseforest.evaluation.selection_rows import check_rows
from doseforest.evaluation.verdicts import decide
from doseforest.pricing.cli import table_options
from doseforest.pricing.cli.error_lines import told
from doseforest.pricing.cli.model_commands import features_of, load_curves
from doseforest.pricing.cli.table_options import RoleTable, answer, one_dose, read_doses
from doseforest.pricing.pipeline.model_names import MODEL_NAMES
from doseforest.pricing.pipeline.pipeline_models import MODELS
from doseforest.pricing.pipeline.problems import nearest

Baseline = Annotated[str, typer.Option(help="Dose that effects are measured against.")]
LEVEL = 0.05  # how much chance a false winner may have
Metric = Annotated[str, typer.Option(help="qini, policy_value or r_risk.")]


@told
def evaluate(
    model: table_options.Model,
    rows: table_options.Rows,
    outcome: table_options.Outcome,
    treatment: table_options.Treatment,
    propensity: table_options.Propensity = None,
    group: table_options.Group = None,
    doses: table_options.Doses = None,
    baseline: Baseline = "0",
    parts: Annotated[int, typer.Option(min=2, max=100, help="Of the calibration.")] = 5,
    seed: table_options.Seed = 0,
    json: table_options.Json = False,
) -> None:
    """Judge a saved forest: R-risk, Qini scores by dose, calibration.

    The rows must be others than those of the fit. Without --propensity doses are taken for
    randomised with the same chances for all.

    Example: doseforest evaluate model.dose held_out.parquet -y requested -t discount
    """
    forest = load_curves(model)
    table = RoleTable(
        rows, outcome=outcome, treatment=treatment, propensity=propensity, group=group
    )
    X, y, dose = features_of(forest, table.frame), table.y, table.treatment
    yardstick = fit_yardstick(X, y, dose, groups=table.groups, random_state=seed)
    risk = yardstick.risk(forest)
    gap = yardstick.risk(_NoEffect()).minus(risk)
    scores = qini_table(
        {"forest": forest},
        X,
        y,
        dose,
        doses=read_doses(doses),
        baseline=one_dose(baseline),
        propensity=table.propensity,
        groups=table.groups,
    )
    curves = scores.curves["forest"]
    lines, calibrations = [], []
    for each, curve in zip(scores.doses.tolist(), curves, strict=True):
        low, high = curve.interval()
        lines.append([f"{each}", f"{curve.score:.4g}", f"{low:.4g} to {high:.4g}"])
        uplift = curve.uplift(parts)
        calibrations.append(
            {
                "dose": each,
                "predicted": uplift.predicted.tolist(),
                "effect": uplift.values.tolist(),
                "standard_error": uplift.standard_errors.tolist(),
            }
        )
    result = {
        "rows": len(y),
        "r_risk": risk.value,
        "r_risk_less_no_effect": -gap.value,
        "r_risk_standard_error": gap.standard_error,
        "qini": [
            {"dose": each, "score": curve.score, "interval": list(curve.interval())}
            for each, curve in zip(scores.doses.tolist(), curves, strict=True)
        ],
        "calibration": calibrations,
    }
    if json:
        answer(result, True, "")
        return
    typer.echo(
        f"{len(y):,} rows. R-risk {risk.value:.5g}: {gap.value:.3g} below that of no effects at "
        f"all (standard error {gap.standard_error:.2g})."
    )
    table_options.show("Qini scores", ["dose", "score", "95 %"], lines)
    typer.echo(f"Calibration at dose {scores.doses[-1]}, most responsive units first:")
    typer.echo(str(curves[-1].uplift(parts)))


@told
def select(
    rows: table_options.Rows,
    outcome: table_options.Outcome,
    treatment: table_options.Treatment,
    models: Annotated[
        list[str],
        typer.Option(
            "--models",
            "-m",
            help=f"Saved forests, or {', '.join(MODEL_NAMES)}; repeated or with commas.",
        ),
    ],
    features: table_options.Features = None,
    exclude: table_options.Exclude = None,
    propensity: table_options.Propensity = None,
    group: table_options.Group = None,
    metric: Metric = "qini",
    doses: table_options.Doses = None,
    baseline: Baseline = "0",
    seed: table_options.Seed = 0,
    json: table_options.Json = False,
) -> None:
    """Say which model is best, or that the data cannot tell.

    Saved forests are judged on all rows, which they must not have seen. Named models are fitted on
    a half, compared on a quarter, and the best is told of on the last quarter.

    Example: doseforest select views.parquet -y requested -t discount -m forest,boosting,linear
    """
    table = RoleTable(
        rows,
        outcome=outcome,
        treatment=treatment,
        features=features,
        exclude=exclude,
        propensity=propensity,
        group=group,
    )
    asked = table_options.split(models)
    saved = [name for name in asked if name not in MODEL_NAMES]
    X, y, dose = table.features, table.y, table.treatment
    if saved and len(saved) < len(asked):
        raise ValueError("--models must be saved forests or names of models, not both.")
    common = {
        "doses": read_doses(doses),
        "baseline": one_dose(baseline),
        "propensity": table.propensity,
        "scores": None if table.propensity is not None else "randomised",
        "groups": table.groups,
        "random_state": seed,
    }
    if saved:
        forests = {Path(name).stem: _saved(name) for name in saved}
        if len(forests) < len(saved):
            raise ValueError("--models must have files of different names.")
        result = _judged(forests, metric, table.frame, y, dose, common)
    else:
        candidates = {name: MODELS[name](random_state=seed) for name in asked}
        result = select_model(candidates, X, y, dose, metric=metric, refit=False, **common)
    plain = {
        "best": result.best,
        "winner": result.winner,
        "tied": list(result.tied),
        "reason": result.reason,
        "scores": {
            name: {"value": estimate.value, "interval": list(estimate.interval())}
            for name, estimate in result.estimates.items()
        },
    }
    answer(plain, json, str(result))


class _NoEffect:
    """Curves that are flat."""

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        shape = np.shape(doses)  # a grid, or doses of each unit
        return np.zeros((len(X), shape[1] if shape[:1] == (len(X),) else shape[0]))


class _SavedForest:
    """A forest that takes its features out of any table."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest
        self.support = forest.support

    def dose_response(self, X: Any, doses: Any) -> Any:
        return self.forest.dose_response(features_of(self.forest, X), doses)


def _saved(name: str) -> _SavedForest:
    path = Path(name)
    if not path.exists():
        raise ValueError(
            f"--models has {name!r}, neither a file nor a model.{nearest(name, MODEL_NAMES)}"
        )
    return _SavedForest(load_curves(path))


def _judged(
    forests: dict[str, _SavedForest], metric: str, X: Any, y: Any, dose: Any, common: dict[str, Any]
) -> ModelSelection:
    """Forests that are fitted already, on all rows."""
    if metric not in METRICS:
        raise ValueError(f"--metric must be one of {', '.join(METRICS)}. Got {metric!r}.")
    nothing = {"cost": None, "budget": None, "score_options": None, "n_jobs": None}
    rows = check_rows(X, y, dose, **common, **nothing).held_out
    judge = METRICS[metric].prepare(rows)
    estimates = {name: judge(forest) for name, forest in forests.items()}
    verdict = decide(estimates, METRICS[metric], LEVEL, len(y))
    return ModelSelection(METRICS[metric].name, estimates, verdict, None, {}, None)
