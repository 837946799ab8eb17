"""What a change of its dose does to each unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import unit_doses
from doseforest.doses.grids import DoseRange, check_doses
from doseforest.estimator.answer_frames import as_series
from doseforest.inference.changes.dose_moves import AtEdge, shift_of

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectMethods


class UnitShifts:
    """Effects on units of shifting the dose that they have: ``forest.shifts``.

    Parameters
    ----------
    forest : GeneralizedCausalForest or EffectForest
        Fitted.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
    >>> forest = GeneralizedCausalForest(
    ...     correction="none", outcome_model=LinearRegression(), density="none",
    ...     baseline=0.0, random_state=0,
    ... ).fit(data.X, data.y, treatment=data.treatment)
    >>> forest.model_.shifts.effects(data.X[:3], 1.0, delta=0.5).round()
    array([1., 1., 1.])
    """

    def __init__(self, forest: EffectMethods) -> None:
        self._model = forest._model

    def effects(
        self,
        X: Any,
        dose: Any,
        delta: float | None = None,
        *,
        factor: float | None = None,
        at_edge: AtEdge = "clip",
    ) -> FloatArray:
        """Outcome of each unit at a shifted dose less that at its present one.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose : float or array of shape (n_units,)
            The dose that units have now.
        delta : float, optional
            How much is added to it; negative for less.
        factor : float, optional
            What it is multiplied by, in place of `delta`.
        at_edge : {"clip", "stay"}, default="clip"
            A dose that would lie beyond the training doses becomes the nearest of them, or the
            unit stays where it is.

        Returns
        -------
        array of shape (n_units,), or a series where `set_output` says so
            The changes, in units of the outcome.
        """
        model = self._model
        if not isinstance(model.support, DoseRange):
            raise ValueError(
                "The 'dose' parameter must have one component for a shift. This forest's doses "
                f"have {model.n_components}: compare two doses by effect. Got {dose!r} instead."
            )
        move = shift_of(delta, factor, at_edge, model.support, model.levels())
        asked = check_doses(unit_doses(dose, len(X)), model.support, "dose")
        clipped = model.support.clip(asked.values)
        levels = model.levels()
        if levels and not np.isin(clipped, levels).all():
            other = clipped[~np.isin(clipped, levels)][0]
            raise ValueError(
                f"The 'dose' parameter must hold levels of the training doses {list(levels)} for "
                f"a shift. Got {other:g} instead."
            )
        curves = np.asarray(
            model.dose_response(X, np.stack([clipped, move.apply(clipped)], axis=1))
        )
        effects = curves[:, 1] - curves[:, 0]
        named: FloatArray = as_series(effects, "shift_effect", X, model.output)
        return named
