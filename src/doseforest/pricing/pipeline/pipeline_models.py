"""The models of a pipeline: how each is made, fitted, kept and read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.machine import thread_count
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.manifest import Manifest, file_digest
from doseforest.pricing.pipeline.model_names import FOREST
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.roles import baseline_of
from doseforest.pricing.pipeline.steps import model_file

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

ROUNDING = 1e-9  # chances that differ by less are the same
Maker = Callable[..., Any]  # of parameters, to an estimator with `fit(X, y, treatment=…)`


def _forest(**parameters: Any) -> Any:
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

    return GeneralizedCausalForest(progress=False, **parameters)


def _linear(**parameters: Any) -> Any:
    from doseforest.pricing.pipeline.linear_demand import LinearDemand

    return LinearDemand(**parameters)


def _boosting(n_jobs: int = 1, **parameters: Any) -> Any:
    from doseforest.baselines import boosting

    return boosting(**{"n_trees": 300} | parameters)


def _xgboost(**parameters: Any) -> Any:
    from doseforest.baselines import xgboost_trees

    return xgboost_trees(**parameters)


def _random_forest(**parameters: Any) -> Any:
    from doseforest.baselines import random_forest

    return random_forest(**{"n_trees": 200, "min_samples_leaf": 20} | parameters)


MODELS: dict[str, Maker] = {
    FOREST: _forest,
    "linear": _linear,
    "boosting": _boosting,
    "xgboost": _xgboost,
    "random_forest": _random_forest,
}


def make_model(name: str, config: PipelineConfig) -> Any:
    """An estimator with the parameters of the configuration."""
    own = {
        "random_state": config.pipeline.seed,
        "n_jobs": thread_count(config.pipeline.threads),
    } | config.train.parameters.get(name, {})
    try:
        return MODELS[name](**own)
    except TypeError as error:
        raise PipelineError(f"[train.{name}] {error}.") from error


def fit_model(name: str, frame: Any, config: PipelineConfig) -> Any:
    """Fit a model on rows; what the experiment knows of its doses goes to the forest."""
    model = make_model(name, config)
    X, y, dose = (role(frame, config) for role in (roles.features, roles.outcome, roles.treatment))
    if name != FOREST:
        return model.fit(X, y, treatment=dose)
    given = config.train.parameters.get(FOREST, {})
    chances = roles.propensity(frame, config)
    if chances is not None and "density" not in given:
        model.set_params(density=known_density(chances, dose))
    if "baseline" not in given:
        model.set_params(baseline=baseline_of(config))
    return model.fit(X, y, treatment=dose, groups=roles.groups(frame, config))


def known_density(chances: FloatArray, dose: FloatArray) -> Any:
    """What the forest is told of a known assignment.

    Of doses of several components it takes no chances of rows; where they are the same for all,
    the doses were randomised alike and need no weights.
    """
    if dose.ndim == 1:
        return chances
    return "none" if np.ptp(chances) <= ROUNDING * chances.max() else "auto"


def save_model(name: str, model: Any, path: Path) -> None:
    """Write a fitted model; forests without pickle, baselines as joblib keeps them."""
    if name == FOREST:
        model.save(path)
        return
    import joblib

    joblib.dump(model, path)


def load_model(name: str, config: PipelineConfig) -> Any:
    """Read the model of a workspace, if its file is the one that the training wrote.

    A joblib file runs code when it is read: what the manifest does not know is refused.
    """
    from doseforest.files.forest_file import load_forest

    path = config.workspace / model_file(name)
    if name == FOREST:
        return load_forest(path)
    record = Manifest.read(config.workspace).steps.get(f"train {name}")
    if record is None or record.outputs.get(model_file(name)) != file_digest(path):
        raise PipelineError(f"{path} is not what the training wrote. Run the pipeline again.")
    import joblib

    return joblib.load(path)
