"""Estimates that need no forest: lines and differences, with standard errors by clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from doseforest.base.dtypes import FloatArray

NORMAL_95 = 1.96


class PlainEstimate(NamedTuple):
    """A number with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return with_error(self.value, self.error)


def with_error(value: float, error: float | None, decimals: int = 2) -> str:
    """A number with its standard error in brackets, where there is one.

    >>> with_error(-0.276, 0.0712), with_error(0.5, None)
    ('-0.28 (0.07)', '0.50')
    """
    text = f"{value:.{decimals}f}"
    return text if error is None else f"{text} ({error:.{decimals}f})"


def line(y: Any, x: Any, controls: Any = None, clusters: Any = None) -> PlainEstimate:
    """Slope of a least-squares line with a level, or with controls that have one among them.

    With an indicator for `x` it is a difference of means. Standard errors allow for unequal noise,
    and for clusters of rows that are not independent.

    Parameters
    ----------
    y, x : arrays of shape (n_rows,)
    controls : array of shape (n_rows, n_controls), optional
    clusters : array of shape (n_rows,), optional

    Examples
    --------
    >>> line([1.0, 3.0, 4.0, 8.0], [0, 0, 1, 1])
    PlainEstimate(value=4.0, error=1.5811388300841898)
    """
    outcome, dose = np.asarray(y, np.float64), np.asarray(x, np.float64)
    beside = np.ones((len(dose), 1)) if controls is None else np.asarray(controls, np.float64)
    own = _left_of(dose, beside)
    square = own @ own
    slope = own @ outcome / square
    score = own * (_left_of(outcome, beside) - slope * own)
    if clusters is not None:
        place = np.unique(clusters, return_inverse=True)[1]
        score = np.bincount(place, weights=score).astype(np.float64)
    return PlainEstimate(float(slope), float(np.sqrt(score @ score) / square))


def _left_of(values: FloatArray, controls: FloatArray) -> FloatArray:
    """What a regression on the controls leaves."""
    left: FloatArray = values - controls @ np.linalg.lstsq(controls, values, rcond=None)[0]
    return left


def indicators(labels: Any) -> FloatArray:
    """A column for each label, shape (n_rows, n_labels).

    >>> indicators(["b", "a", "b"])
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    distinct, place = np.unique(np.asarray(labels), return_inverse=True)
    return np.eye(len(distinct))[place]
