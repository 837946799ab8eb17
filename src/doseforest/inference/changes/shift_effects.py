"""What a change of its dose does to each unit."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import unit_doses
from doseforest.doses.grids import DoseRange, check_doses
from doseforest.inference.changes.dose_moves import AtEdge, shift_of


class ShiftEffects:
    """Effects of shifts, for forests that know their doses; `_model` is the forest itself."""

    @property
    @abstractmethod
    def _model(self) -> Any:
        """The fitted forest."""

    @abstractmethod
    def dose_response(self, X: Any, doses: Any = None) -> FloatArray:
        """Expected outcome of each unit, at doses of its own."""

    def shift_effects(
        self,
        X: Any,
        dose: Any,
        delta: float | None = None,
        *,
        factor: float | None = None,
        at_edge: AtEdge = "clip",
    ) -> FloatArray:
        """Outcome of each unit at a shifted dose less that at its own, shape (n_units,).

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        dose : float or array of shape (n_units,)
            The dose that units have now.
        delta : float, optional
            How much is added to it; negative for less.
        factor : float, optional
            What it is multiplied by, in place of `delta`.
        at_edge : {"clip", "stay"}, default="clip"
            A dose that would lie beyond the training doses becomes the nearest of them, or the
            unit stays where it is.
        """
        model = self._model
        if not isinstance(model.support, DoseRange):
            raise ValueError(
                "The 'dose' parameter must have one component for a shift. This forest's doses "
                f"have {model.n_components}: compare two doses by effect. Got {dose!r} instead."
            )
        move = shift_of(delta, factor, at_edge, model.support, model.levels())
        own = check_doses(unit_doses(dose, len(X)), model.support, "dose")
        own = model.support.clip(own)
        levels = model.levels()
        if levels and not np.isin(own, levels).all():
            other = own[~np.isin(own, levels)][0]
            raise ValueError(
                f"The 'dose' parameter must hold levels of the training doses {list(levels)} for "
                f"a shift. Got {other:g} instead."
            )
        curves = np.asarray(self.dose_response(X, np.stack([own, move.apply(own)], axis=1)))
        named: FloatArray = model._series(curves[:, 1] - curves[:, 0], "shift_effect", X)
        return named
