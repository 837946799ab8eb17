"""Guards: what the treatment must be like in both children, or another split is taken.

A guard is checked on the best few splits of a node by sums over the node's rows, on the exact grid
as all sums are. Where there is none, nothing is summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import ChannelArray, FloatArray, IntArray
from doseforest.data.exact_grid import exact_channels
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.kernel_weights import scaled_kernel
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import checked_kernel, given_bandwidth
from doseforest.engine.growth.frontier import Splits


@dataclass(frozen=True, slots=True)
class TreatmentGuard:
    """What the observed doses of both children of a split must be like.

    Of the two conditions at least one must be set. The stricter they are, the larger the leaves.

    Parameters
    ----------
    min_effective_rows : float, optional
        Least effective kernel sample (sum K)^2 / sum K^2, K = K_h(T_i - t) times the row's weight,
        at every dose t of the ``doses`` of fit. Set it, to 5 or 10, where leaves are filled by
        kernels over the dose; nodes then sum two channels more for each dose. By default there is
        none.
    min_treatment_variance : float, optional
        Least variance of the treatment in a child, as a share of its variance over all rows. Set
        it, to 0.1 or so, where leaves regress on the dose. By default there is none.
    kernel : str or Kernel, default="epanechnikov"
        Kernel of the effective sample: a name in `doseforest.doses.KERNELS`, or a kernel.
    bandwidth : float, optional
        Bandwidth of the kernel, in units of the dose; by default the rule of thumb over all rows.

    Examples
    --------
    >>> guard = TreatmentGuard(min_treatment_variance=0.2)
    >>> fitted = guard.fit(np.array([0.0, 1.0, 0.0, 1.0]), doses=None, weights=None)
    >>> fitted.min_variance
    0.05
    """

    min_effective_rows: float | None = None
    min_treatment_variance: float | None = None
    kernel: str | Kernel = "epanechnikov"
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        if self.min_effective_rows is None and self.min_treatment_variance is None:
            raise ValueError(
                "The 'min_effective_rows' parameter of TreatmentGuard must be given, or "
                "'min_treatment_variance'. Got None for both instead."
            )
        _check_least(self.min_effective_rows, "min_effective_rows")
        _check_least(self.min_treatment_variance, "min_treatment_variance")
        checked_kernel(self.kernel)
        if self.bandwidth is not None:
            given_bandwidth(self.bandwidth)

    def n_channels(self, n_doses: int) -> int:
        """Count the channels of the fitted guard, to plan memory.

        Parameters
        ----------
        n_doses : int
            Number of doses of the grid.

        Returns
        -------
        int
            Number of channels.
        """
        by_dose = 0 if self.min_effective_rows is None else 2 * n_doses
        return by_dose + (0 if self.min_treatment_variance is None else 3)

    def fit(
        self, treatment: FloatArray | None, doses: FloatArray | None, weights: ChannelArray | None
    ) -> SplitGuard:
        """Make the channels of rows with these doses.

        Parameters
        ----------
        treatment : array of shape (n_rows,)
            Observed doses.
        doses : array of shape (n_doses,) or None
            Doses at which the effective sample counts.
        weights : array of shape (n_rows,) or None
            Weights of the rows.

        Returns
        -------
        SplitGuard
            The channels, and what their sums over a child must fulfil.
        """
        if treatment is None:
            raise ValueError(
                "The 'treatment' parameter of fit must be given when CurveForest has a 'guard'. "
                "Got None instead."
            )
        columns: list[FloatArray | ChannelArray] = []
        n_doses = 0
        if self.min_effective_rows is not None:
            kernel_weights = self._kernel_weights(treatment, doses, weights)
            n_doses = kernel_weights.shape[1]
            columns += [kernel_weights, kernel_weights**2]
            if weights is not None:
                columns[1] = columns[1] * weights[:, None]  # once more with the others: w^2 K^2
        least_variance = 0.0
        if self.min_treatment_variance is not None:
            centred = treatment - (treatment.min() / 2.0 + treatment.max() / 2.0)
            columns += [np.ones(len(treatment)), centred, centred**2]
        channels = exact_channels(*columns, weights=weights, pad=False)
        reached = channels[:, n_doses : 2 * n_doses].any(axis=0)
        if doses is not None and not reached.all():
            raise ValueError(
                "The 'doses' parameter of fit must hold doses that the kernel of the guard reaches "
                f"from some row, or no split can pass. Got {doses[:n_doses][~reached][0]} instead."
            )
        if self.min_treatment_variance is not None:
            overall = channels[:, -3:].sum(axis=0, dtype=np.float64)
            least_variance = float(self.min_treatment_variance * _variances(overall))
        return SplitGuard(channels, n_doses, self.min_effective_rows or 0.0, least_variance)

    def _kernel_weights(
        self, treatment: FloatArray, doses: FloatArray | None, weights: ChannelArray | None
    ) -> ChannelArray:
        if doses is None:
            raise ValueError(
                "The 'doses' parameter of fit must be given when a guard has "
                "'min_effective_rows'. Got None instead."
            )
        width = self.bandwidth
        if width is None:  # of sorted rows: their order must not change the last bit
            keys = (treatment,) if weights is None else (weights, treatment)
            order = np.lexsort(keys)
            own_weights = None if weights is None else weights[order]
            width = rule_of_thumb(treatment[order], self.kernel, own_weights)
        return scaled_kernel(treatment, doses, width, self.kernel)


@dataclass(frozen=True, slots=True)
class SplitGuard:
    """Channels of a guard, and what their sums over a child must fulfil."""

    channels: ChannelArray  # (n_rows, width): w K | w^2 K^2 | w, w T, w T^2, each where asked for
    n_doses: int  # of the effective sample; 0: not asked for
    min_effective_rows: float
    min_variance: float  # in squared units of the dose; 0: not asked for

    def passes(self, sums: FloatArray) -> NDArray[np.bool_]:
        """Whether both children of each split pass, from their sums (n_splits, 2, width)."""
        good = np.ones(sums.shape[:2], bool)
        if self.n_doses:
            total = sums[..., : self.n_doses]
            squares = sums[..., self.n_doses : 2 * self.n_doses]
            # (sum K)^2 / sum K^2, without a division by none.
            enough = (total**2 >= self.min_effective_rows * squares) & (squares > 0)
            good &= enough.all(axis=-1)
        if sums.shape[-1] > 2 * self.n_doses:
            good &= _variances(sums[..., -3:]) >= self.min_variance
        return good[:, 0] & good[:, 1]


def first_passing(
    guard: SplitGuard,
    candidates: Splits,
    n_nodes: int,
    child_sums: Callable[[IntArray, Splits], FloatArray],
) -> Splits:
    """Take the first candidate of each node that the guard lets pass, or none.

    Parameters
    ----------
    guard : SplitGuard
    candidates : Splits
        As many of each node as of the others, the best first.
    n_nodes : int
    child_sums : callable
        From places of nodes and a split of each to the sums over their children.
    """
    chosen = Splits.none(n_nodes, set_words=candidates.sets.shape[1])
    n_candidates = len(candidates.gain) // max(1, n_nodes)
    waiting = np.arange(n_nodes, dtype=np.int64)
    for rank in range(n_candidates):
        places = waiting * n_candidates + rank
        waiting = waiting[candidates.gain[places] > -np.inf]
        if len(waiting) == 0:
            break
        splits = candidates.take(waiting * n_candidates + rank)
        passed = guard.passes(child_sums(waiting, splits))
        chosen.gain[waiting[passed]] = splits.gain[passed]
        chosen.cut[waiting[passed]] = splits.cut[passed]
        chosen.sets[waiting[passed]] = splits.sets[passed]
        waiting = waiting[~passed]
    return chosen


def _variances(sums: FloatArray) -> FloatArray:
    """Variance of the treatment from sums (..., 3) of w, w T and w T^2; 0 without weight."""
    weight = np.where(sums[..., 0] > 0, sums[..., 0], 1.0)
    mean = sums[..., 1] / weight
    variances: FloatArray = np.maximum(sums[..., 2] / weight - mean**2, 0.0)
    return variances


def _check_least(value: float | None, name: str) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < np.inf):
        raise ValueError(
            f"The {name!r} parameter of TreatmentGuard must be a float in (0, inf) or None. "
            f"Got {value!r} instead."
        )
