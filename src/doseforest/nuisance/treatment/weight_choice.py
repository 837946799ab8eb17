"""The choice among weights, by the error that they are expected to leave in an average curve.

Weights correct an average of mu-hat(t, X) by a weighted local average of residuals. With m(t, x) a
fit to the residuals, the bias that weights leave at a dose is the local average of m(T_i, X_i)
minus the mean of m(t, X_i); their variance is that of the weighted residuals. Weights that balance
well but are noisy lose to r = 1 where there is nothing to correct, and all may lose to no
correction.

The fit m may be wrong. Where the candidates at their full power, averaged, find more in what m
leaves than noise would, that much of it is believed: right weights are not thrown away because m
does not see what they are for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from doseforest.base.dtypes import ChannelArray, FloatArray, IntArray
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.boundary import local_linear_weights
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.nuisance.outcome.spline_core import fit_spline_core
from doseforest.nuisance.treatment.density_registry import WEIGHT_NAMES, WEIGHTS, weigher
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights

AUTO = ("entropy", "permutation", "location_scale", "binned")  # beside "none"
SHRINKAGES = (0.25, 0.5, 0.75, 1.0)
NO_CORRECTION = "no correction"
NOISE = 2.0  # variances that what m leaves must exceed to be believed


@dataclass(frozen=True, slots=True)
class WeightChoice:
    """The chosen weights and what all of them scored."""

    chosen: TreatmentWeights
    scores: Mapping[str, float]  # estimated mean squared error over the doses, by name and power
    correct: bool  # whether the correction is expected to be better than none
    strength: float  # share of the correction, in [0, 1], with the smallest expected error


@dataclass(frozen=True, slots=True)
class _Curve:
    """What an average of residuals with some weights is expected to give."""

    mean: FloatArray  # (n_doses,) its expectation
    variance: FloatArray  # (n_doses,)

    def error(self, target: FloatArray) -> float:
        return float(np.mean((self.mean - target) ** 2 + self.variance))

    def strength(self, target: FloatArray) -> float:
        """Share of the curve with the smallest mean squared error, in [0, 1]."""
        square = float(np.sum(self.mean**2 + self.variance))
        return float(np.clip(self.mean @ target / square, 0.0, 1.0)) if square > 0 else 0.0


def choose_weights(
    X: FloatArray,
    dose: FloatArray,
    residual: FloatArray,
    folds: IntArray,
    grid: FloatArray,
    *,
    candidates: Sequence[str | TreatmentWeights] = AUTO,
    shrinkages: Sequence[float] = SHRINKAGES,
    kernel: str | Kernel = "epanechnikov",
    bandwidth: float | None = None,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> WeightChoice:
    """Choose weights by the estimated mean squared error of the average curve they correct.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose, residual : arrays of shape (n_rows,)
        Doses T_i and residuals Y_i - mu-hat(T_i, X_i), out of fold.
    folds : array of shape (n_rows,)
        Fold of each row, 0, 1, …
    grid : array of shape (n_doses,)
        Doses at which the curve is wanted, all of them with rows near.
    candidates : sequence of str or TreatmentWeights
        Names in `WEIGHTS` or `DENSITIES`, or weights made before. Ones are always among them.
    shrinkages : sequence of float
        Powers of each candidate's r that are tried.
    kernel, bandwidth
        Of the local lines; the bandwidth by rule of thumb by default.
    weights : array of shape (n_rows,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> t = x[:, 0] + rng.normal(size=2000)
    >>> residual = 3 * x[:, 0] + rng.normal(size=2000)  # an outcome model that has missed x1
    >>> choice = choose_weights(x, t, residual, np.arange(2000) % 4, np.linspace(-1.5, 1.5, 7),
    ...                         candidates=["entropy"])
    >>> choice.chosen.name
    'entropy'
    """
    row_weights = np.ones(len(dose)) if weights is None else weights
    _check(dose, residual, candidates)
    given = [
        candidate
        if isinstance(candidate, TreatmentWeights)
        else weigher(candidate)(X, dose, folds, weights=weights, seed=seed, n_threads=n_threads)
        for candidate in candidates
    ]
    width = rule_of_thumb(dose, kernel, weights) if bandwidth is None else bandwidth
    fit = fit_spline_core(X, dose, residual, weights=weights, seed=seed)
    target: FloatArray = np.average(fit.curves(X, grid), axis=0, weights=row_weights)
    fitted = fit.predict(X, dose)
    unseen: FloatArray = residual - fitted

    def local_rows(r: FloatArray) -> ChannelArray:
        return local_linear_weights(dose, grid, width, kernel, row_weights * r)

    full = [local_rows(candidate.r) for candidate in given] or [local_rows(np.ones(len(dose)))]
    result = _expected(np.mean(full, axis=0), unseen, unseen)
    believed = _share_beyond_noise(result)
    fitted = fitted + believed * unseen
    target = target + believed * result.mean
    pool = {"none": WEIGHTS["none"](X, dose, folds)}
    for candidate in given:
        for power in shrinkages:
            if candidate.name != "none" and power > 0:
                label = candidate.name if power == 1 else f"{candidate.name}^{power:g}"
                pool[label] = candidate.shrunk(power, weights)
    curves = {
        label: _expected(local_rows(candidate.r), fitted, residual)
        for label, candidate in pool.items()
    }
    scores = {label: curve.error(target) for label, curve in curves.items()}
    best = min(scores, key=scores.__getitem__)
    scores[NO_CORRECTION] = float(np.mean(target**2))
    return WeightChoice(
        chosen=replace(pool[best], scores=scores),
        scores=scores,
        correct=scores[best] < scores[NO_CORRECTION],
        strength=curves[best].strength(target),
    )


def _check(
    dose: FloatArray, residual: FloatArray, candidates: Sequence[str | TreatmentWeights]
) -> None:
    if np.shape(residual) != np.shape(dose):
        raise ValueError(
            f"The 'residual' parameter must have one number per dose ({len(dose)}). "
            f"Got shape {np.shape(residual)} instead."
        )
    for candidate in candidates:
        if not isinstance(candidate, TreatmentWeights) and candidate not in WEIGHT_NAMES:
            raise ValueError(
                f"The 'candidates' parameter must hold names in {list(WEIGHT_NAMES)} or "
                f"TreatmentWeights. Got {candidate!r} instead."
            )


def _share_beyond_noise(found: _Curve) -> float:
    """Share of a curve that its variance does not explain, in [0, 1]."""
    square = float(np.sum(found.mean**2))
    noise = NOISE * float(np.sum(found.variance))
    return max(0.0, 1 - noise / square) if square > 0 else 0.0


def _expected(rows: ChannelArray, fitted: FloatArray, residual: FloatArray) -> _Curve:
    n = len(fitted)
    return _Curve((rows.T @ fitted) / n, (rows**2).T @ residual**2 / n**2)
