"""Who to treat first: how much larger the effect is among those ranked highest (TOC and RATE)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import Estimate, Estimates
from doseforest.base.late import late

FEWEST_CLUSTERS = 10  # half of which are drawn
SHARES = np.arange(1, 21) / 20  # at which the TOC is told


# Weight of the TOC at each share in the RATE.
WEIGHTINGS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "autoc": np.ones_like,  # whether a few stand out
    "qini": lambda share: share,  # what treating many by rank is worth
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankedEffects(Estimate):
    """The targeting operator characteristic of a ranking, and the area under it.

    The TOC at a share is the mean effect of that share of units ranked highest, less the mean
    effect of all. The RATE is its integral over the shares, weighted or not; 0 where
    the ranking has nothing to do with the effect.

    Attributes
    ----------
    value : float
        The RATE.
    standard_error : float
        Its standard error.
    degrees : float
        Degrees of freedom of the standard error.
    p_value : float
        One-sided: that the RATE is 0 or below.
    shares : array of shape (n_shares,)
        Shares of the units.
    toc : Estimates of shape (n_shares,)
        The TOC at the shares.
    weighting : {"autoc", "qini"}
        How shares are weighted.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> from doseforest.evaluation import qini_curve
    >>> x, dose = np.arange(400) // 2 % 2, np.arange(400) % 2
    >>> rate = qini_curve(x * dose + 0.0, dose, x, dose=1).rate("qini", n_bootstrap=20)
    >>> rate.value > 0, rate.shares[-1]
    (True, np.float64(1.0))
    """

    p_value: float
    shares: FloatArray  # (n_shares,)
    toc: Estimates  # (n_shares,)
    weighting: str
    n_rows: int

    def __str__(self) -> str:
        return (
            f"RATE ({self.weighting}) {self.value:.4g}, standard error {self.standard_error:.3g}, "
            f"p = {self.p_value:.3g} (one-sided), {self.n_rows:,} rows"
        )

    __repr__ = __str__

    def plot(self, *, ax: Any | None = None) -> Any:
        """Draw the TOC with 95 % intervals, one for each share; needs the `plot` extra.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.targeting_plot:plot_targeting")(self, ax=ax)


def ranked_effects(
    scores: FloatArray,
    priority: FloatArray,
    *,
    weighting: str = "autoc",
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
    n_bootstrap: int = 200,
    seed: int = 0,
) -> RankedEffects:
    """TOC and RATE of a ranking by doubly robust scores (Yadlowsky et al., 2021).

    Units of equal priority have the mean of their scores each: their order has no say. Standard
    errors are by half-samples: half of the rows (of the clusters) is drawn without replacement
    many times, and the spread of its answers is the standard error of all rows' answer.

    Parameters
    ----------
    scores, priority : arrays of shape (n_rows,)
        Of an effect, see `contrast_scores`; the higher the priority the sooner a unit is treated.
    weighting : {"autoc", "qini"}
    weights, clusters : arrays of shape (n_rows,), optional

    Examples
    --------
    >>> effect = np.repeat([1.0, 0.0], 500)
    >>> ranked_effects(effect, effect).toc.values[[9, 19]]  # of half of the units, and of all
    array([0.5, 0. ])
    >>> ranked_effects(effect, np.zeros(1000)).value  # everyone has the same priority
    0.0
    """
    row_weights = np.ones(len(scores)) if weights is None else weights
    ids = np.arange(len(scores)) if clusters is None else clusters
    order = np.argsort(-priority, kind="stable")
    scores, row_weights = scores[order], row_weights[order]
    ties = np.cumsum(np.append(0, np.diff(priority[order]) != 0))
    _, ids = np.unique(ids[order], return_inverse=True)
    value, toc = _rate(scores, ties, row_weights, weighting)
    n_clusters = int(ids.max()) + 1
    if n_clusters < FEWEST_CLUSTERS:
        raise ValueError(
            f"The 'groups' parameter must have at least {FEWEST_CLUSTERS} groups for a standard "
            f"error by half-samples. Got {n_clusters} instead."
        )
    draws = np.empty((n_bootstrap, 1 + len(SHARES)))
    rng = np.random.default_rng(seed)
    for draw in draws:
        drawn = np.zeros(n_clusters, bool)
        drawn[rng.permutation(n_clusters)[: n_clusters // 2]] = True
        kept = drawn[ids]
        draw[0], draw[1:] = _rate(scores[kept], ties[kept], row_weights[kept], weighting)
    errors = draws.std(axis=0, ddof=1)
    error = float(errors[0])
    return RankedEffects(
        value=value,
        standard_error=error,
        p_value=float(ndtr(-value / error)) if error > 1e-12 * np.abs(scores).max() else 1.0,
        shares=SHARES,
        toc=Estimates(toc, errors[1:]),
        weighting=weighting,
        n_rows=int((row_weights > 0).sum()),
    )


def _rate(
    scores: FloatArray, ties: IntArray, weights: FloatArray, weighting: str
) -> tuple[float, FloatArray]:
    """RATE, and the TOC at `SHARES`, of rows in the order of their priority."""
    tie = np.cumsum(np.append(0, np.diff(ties) > 0))  # without gaps
    sums = np.bincount(tie, weights * scores)
    sizes = np.bincount(tie, weights)
    present = sizes > 0
    level = np.divide(sums, sizes, out=np.zeros(len(sums)), where=present)[tie]
    reached = np.cumsum(weights)
    shares = reached / reached[-1]
    mean = float(weights @ level / reached[-1])
    above = np.cumsum(weights * (level - mean))  # so that treating all is exactly 0 above average
    toc = np.divide(above, reached, out=np.zeros(len(above)), where=reached > 0)
    value = float((weights * WEIGHTINGS[weighting](shares) * toc).sum() / reached[-1])
    curve = np.interp(SHARES, np.append(0.0, shares), np.append(0.0, above)) / (
        SHARES * reached[-1]
    )
    curve[-1] = 0.0
    return value, curve
