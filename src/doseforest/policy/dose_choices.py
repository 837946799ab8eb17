"""Doses of units, whoever chose them: counts, segments and their pictures."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.base.late import late
from doseforest.doses.dose_values import Doses


@dataclass(frozen=True, slots=True)
class SegmentTable:
    """Who gets what: a line for each segment of the units.

    Attributes
    ----------
    labels : array of shape (n_segments,)
        Labels of the segments.
    units : array of int of shape (n_segments,)
        Number of units.
    shares : array of shape (n_segments, n_doses)
        Share of the segment's units with each dose.
    mean_dose : array of shape (n_segments,) or (n_segments, n_components)
        Mean dose.
    value : array of shape (n_segments,)
        Total value of the units that have a value and a cost; NaN if none has.
    cost : array of shape (n_segments,)
        Total cost of the same units.
    unknown : array of int of shape (n_segments,)
        Units without a value or cost.

    Examples
    --------
    >>> from doseforest.policy import optimize_doses
    >>> plan = optimize_doses(value=[[0, 2], [0, 3]], cost=[0, 1], budget=1)
    >>> plan.by_segment(["new", "old"]).value
    array([0., 3.])
    """

    labels: Array  # (n_segments,)
    units: IntArray  # (n_segments,)
    shares: FloatArray  # (n_segments, n_doses)
    mean_dose: FloatArray  # (n_segments,)
    value: FloatArray  # (n_segments,)
    cost: FloatArray  # (n_segments,)
    unknown: IntArray  # (n_segments,)


class DoseChoices:
    """What plans and decisions share: `doses`, `dose_index`, and amounts of the units."""

    __slots__ = ()

    doses: DoseArray  # (n_doses,): what could be given
    dose_index: IntArray  # (n_units,): place of the dose in `doses`

    @property
    @abstractmethod
    def _amounts(self) -> tuple[FloatArray, FloatArray]:
        """Values and costs of the units, (n_units,) each."""

    @property
    def dose(self) -> DoseArray:
        """Dose of every unit, (n_units,); records where doses have several components."""
        chosen: DoseArray = self.doses[self.dose_index]
        return chosen

    def counts(self) -> IntArray:
        """Count the units with each dose.

        Returns
        -------
        array of int of shape (n_doses,)
            Numbers of units.
        """
        return np.bincount(self.dose_index, minlength=len(self.doses))

    def by_segment(self, segments: Any) -> SegmentTable:
        """Tabulate who gets what, by any labels of the units.

        Parameters
        ----------
        segments : array of shape (n_units,)
            Label of each unit.

        Returns
        -------
        SegmentTable
            A line for each label.

        Examples
        --------
        >>> from doseforest.policy import optimize_doses
        >>> plan = optimize_doses(value=[[0, 2], [0, 3], [0, 1]], cost=[0, 1], budget=2)
        >>> table = plan.by_segment(["new", "new", "old"])
        >>> table.labels.tolist(), table.shares.tolist(), table.cost.tolist()
        (['new', 'old'], [[0.0, 1.0], [1.0, 0.0]], [2.0, 0.0])
        """
        labels = np.asarray(segments)
        n_units = len(self.dose_index)
        if labels.shape != (n_units,):
            raise ValueError(
                f"The 'segments' parameter must have one entry per unit ({n_units}). "
                f"Got shape {labels.shape} instead."
            )
        values, costs = self._amounts
        known = np.isfinite(values) & np.isfinite(costs)
        names, place = np.unique(labels, return_inverse=True)
        n_names, n_doses = len(names), len(self.doses)
        counts = np.bincount(place * n_doses + self.dose_index, minlength=n_names * n_doses)
        counts = counts.reshape(n_names, n_doses)
        units = counts.sum(axis=1)
        shares = counts / units[:, None]
        mean = shares @ Doses.of(self.doses).table
        unknown = np.bincount(place[~known], minlength=n_names)
        value, cost = (
            np.where(unknown < units, np.bincount(place[known], each[known], n_names), np.nan)
            for each in (values, costs)
        )
        return SegmentTable(
            labels=names,
            units=units,
            shares=shares,
            mean_dose=mean[:, 0] if mean.shape[1] == 1 else mean,
            value=value,
            cost=cost,
            unknown=unknown,
        )

    def plot_doses(self, *, ax: Any | None = None) -> Any:
        """Draw how many units have each dose; needs the `plot` extra.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.policy_plots:plot_doses")(self, ax=ax)

    def plot_segments(self, segments: Any, *, ax: Any | None = None) -> Any:
        """Draw who gets what, by any labels of the units; needs the `plot` extra.

        Parameters
        ----------
        segments : array of shape (n_units,)
            Label of each unit.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.policy_plots:plot_segments")(self, segments, ax=ax)
