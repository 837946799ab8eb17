"""What all baselines share: columns and doses of fit, and the effect API of the forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from doseforest.base.dtypes import FloatArray
from doseforest.baselines.baseline_inputs import table_of, units_of
from doseforest.doses.boxes import DoseBox, observed_support
from doseforest.doses.curve_effects import CurveEffects
from doseforest.doses.dose_slopes import check_positive, slope_doses
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange


@dataclass(frozen=True, slots=True)
class ObservedDoses:
    """Where the doses of fit lie: what `slope_doses` asks of a model."""

    support: DoseRange | DoseBox

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return self.support.n_components

    @property
    def ranges(self) -> tuple[DoseRange, ...]:
        """Range of each component."""
        return self.support.ranges if isinstance(self.support, DoseBox) else (self.support,)

    def checked_component(self, component: int | None) -> int:
        """Place of the component that an elasticity is of, or ValueError.

        Examples
        --------
        >>> ObservedDoses(DoseRange(0.0, 1.0)).checked_component(None)
        0
        """
        place = 0 if component is None and self.n_components == 1 else component
        if type(place) is not int or not 0 <= place < self.n_components:
            raise ValueError(
                f"The 'component' parameter must be an int from 0 to {self.n_components - 1}, the "
                f"component of the dose that changes. Got {component!r} instead."
            )
        range_ = self.ranges[place]
        if range_.low == range_.high:
            raise ValueError(
                "The 'treatment' parameter of fit must hold different doses for an elasticity. "
                f"Got only {range_.low:g} instead."
            )
        return place


class Baseline(CurveEffects, BaseEstimator):  # type: ignore[misc]
    """Curves with effects and elasticities; columns of frames are taken by their names in fit.

    Attributes
    ----------
    n_features_in_ : int
        Number of features in fit.
    feature_names_in_ : array of str
        Their names, where fit was given a frame that has them.
    """

    _doses: ObservedDoses | None = None  # None where fit was not told

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        check_is_fitted(self)
        return 1 if self._doses is None else self._doses.n_components

    def elasticity(self, X: Any, dose: Any, component: int | None = None) -> FloatArray:
        """Percent change of the outcome per percent change of the dose.

        The slope is taken over 2.5 % of the range of doses on either side, as the forest takes it.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose : float or array of shape (n_units,)
            One dose for all units, or one for each, in the range of the observed ones.
        component : int, optional
            Which component changes, where a dose has several.

        Returns
        -------
        array of shape (n_units,)
            The elasticities.

        Raises
        ------
        ValueError
            Where a dose is outside the observed ones, or an expected outcome is not positive.
        """
        check_is_fitted(self)
        if self._doses is None:
            raise ValueError(
                "The 'treatment' parameter of fit must be given for an elasticity, whose slope is "
                "over a share of the range of doses. Got None instead."
            )
        ends = slope_doses(self._doses, dose, len(X), component)
        curves = self.dose_response(X, np.stack([ends.low, ends.middle, ends.high], axis=1))
        check_positive(curves[:, 1], ends.middle)
        slopes = (curves[:, 2] - curves[:, 0]) / ends.length
        elasticities: FloatArray = ends.middle.table[:, ends.place] * slopes / curves[:, 1]
        return elasticities

    def _keep(
        self, n_features: int, names: tuple[str, ...] | None, dose: FloatArray | None
    ) -> None:
        """Remember the columns of fit and where its doses, (n_rows, n_components), lie."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self._doses = (
            None if dose is None else ObservedDoses(observed_support(Doses.of_table(dose).values))
        )

    @property
    def _names(self) -> tuple[str, ...] | None:
        """Names of the features in fit."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def _units(self, X: Any) -> FloatArray:
        """Features of units as numbers, (n_units, n_features), in the order of fit."""
        check_is_fitted(self)
        return units_of(X, self.n_features_in_, self._names)

    def _count(self, X: Any) -> int:
        """Number of units of any table with the features of fit, text too."""
        check_is_fitted(self)
        return table_of(X, getattr(self, "n_features_in_", None), self._names).n_rows
