"""Which features the effects of a fitted forest depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doseforest.engine.look_inside.split_importance import FeatureImportance
from doseforest.estimator.effect_forest import EffectForest
from doseforest.estimator.effect_importance import correction_importance
from doseforest.evaluation.permutation_importance import (
    PermutationImportance,
    permutation_importance,
)

METHODS = ("gain", "permutation")


def effect_importance(
    forest: Any,
    method: str = "gain",
    *,
    decay: float | Sequence[float] = 0.0,
    max_depth: int | None = None,
    n_repeats: int = 5,
    random_state: int = 0,
) -> FeatureImportance | PermutationImportance:
    """Importance of each feature, in the correction or in the whole curve.

    Parameters
    ----------
    forest : GeneralizedCausalForest or EffectForest
        Fitted; for "permutation" a GeneralizedCausalForest, which has its training rows.
    method : {"gain", "permutation"}, default="gain"
        "gain": share of each feature in the gains of the correction's forests, over all rounds,
        each forest counted by its share in the correction. It is free, but knows nothing of
        the outcome model: a feature whose part in the effect the outcome model has is
        not needed by the forests, and where they are left out all shares are 0.
        "permutation": rise of the curves' R-risk (`doseforest.evaluation.effect_risk`) when
        the feature's values are shuffled between the units, in outcome model and correction
        alike. It is about effects: a feature that moves only the level has none.
    decay : float or list of floats, default=0.0
        For "gain": weights of splits by depth, see `CurveForest.feature_importance`.
    max_depth : int, optional
        For "gain": count only the splits above this depth.
    n_repeats : int, default=5
        For "permutation": shuffles of each feature. Each costs a prediction for all rows.
    random_state : int, default=0
        For "permutation".

    Returns
    -------
    FeatureImportance or PermutationImportance
        ``values``, ``names``, ``ranked()``; the latter with ``standard_errors``.

    Notes
    -----
    Shuffled rows are answered by the models of the folds and by the trees that have not seen
    the row: a noise feature that the fit has learned by heart gains nothing by it. Features
    that say the same share or hide their importance: with one shuffled the other still
    speaks. Shuffling also makes units that do not exist.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["randomised"].draw(n=300, seed=0)
    >>> forest = GeneralizedCausalForest(
    ...     n_trees=80, outcome_model=LinearRegression(), random_state=0, n_jobs=1)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment)
    >>> effect_importance(forest).values.shape == (data.X.shape[1],)
    True
    """
    if method not in METHODS:
        raise ValueError(
            f"The 'method' parameter must be one of {METHODS}. Got {method!r} instead."
        )
    model: EffectForest = forest._model
    if method == "gain":
        return correction_importance(model, decay=decay, max_depth=max_depth)
    if forest is model:
        raise ValueError(
            "The 'method' parameter must be 'gain' for a forest without its training rows. "
            "Got 'permutation' instead: ask the GeneralizedCausalForest that was fitted."
        )
    fitted = forest._fitted
    return permutation_importance(fitted.parts, fitted.plan, n_repeats=n_repeats, seed=random_state)
