"""Fitting a Gaussian process of outcomes: lengths by marginal likelihood, coefficients exactly.

Sizes and lengths come from few rows, with an analytic gradient that needs no array of (rows, rows,
columns): a step costs n^3 + n^2 p. Coefficients rest on more rows, by one Cholesky factor.

Noise may have heavy tails or grow with the dose: rows that the others do not expect get a larger
variance of noise, as under a t distribution, from what each row's leave-one-out residual says. The
tails are taken for symmetric: skewed noise whose size goes with the dose draws effects to the mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, get_lapack_funcs
from scipy.optimize import minimize

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.outcome.curve_process import (
    Covariance,
    CurveProcess,
    ProcessTable,
    squared_exponential,
)

JITTER = 1e-6  # of the variance of the outcome, so that rows that are alike can be told apart
SINGLE_JITTER = 1e-4  # the same in single precision
BOUND = 7.0  # of the logs of sizes and lengths: beyond e^7 deviations a column is idle
N_KNOTS = 65
NO_CHOLESKY = 1e10  # the loss where rounding leaves no factor: the search turns back
TAIL = 4.0  # degrees of freedom of the noise where it may have heavy tails
TAIL_ROUNDS = 1  # of variances of rows by residuals, of residuals by variances


@dataclass(frozen=True, slots=True)
class ProcessRecipe:
    """How a Gaussian process is fitted to outcomes.

    Parameters
    ----------
    rank_share : float, default=0.7
        How much of the warped dose are its ranks; 0 leaves the dose as it is. Raise it for a dose
        that is skewed.
    in_parts : bool, default=True
        A part for covariates, one for the dose and one for both; else one kernel over all, with
        fewer lengths to find.
    length_rows : int, default=600
        Rows that lengths are found on; the time of a step grows with their cube.
    most_rows : int, default=2000
        Rows that coefficients rest on; memory grows with their square, time with their cube.
    most_columns : int, default=40
        Columns that are kept where there are more: those that go with outcome or dose.
    n_steps : int, default=20
        Steps of the search for lengths.
    robust : bool, default=True
        Whether noise may have heavy tails, the same on both sides; outcomes of zeros and ones have
        none. Of skewed outcomes, take the mean by False.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=(100, 2)), rng.uniform(0, 3, 100)
    >>> ProcessRecipe(most_rows=50).fit(x, t, x[:, 0] + t).points.shape
    (50, 2)
    """

    rank_share: float = 0.7
    in_parts: bool = True
    length_rows: int = 600
    most_rows: int = 2000
    most_columns: int = 40
    n_steps: int = 20
    robust: bool = True

    def fit(
        self,
        X: FloatArray,
        dose: DoseArray,
        y: FloatArray,
        *,
        weights: FloatArray | None = None,
        binary: bool = False,
        seed: int = 0,
        n_threads: int = 1,
    ) -> CurveProcess:
        """Fit to rows; a row of twice the weight has half the variance of noise.

        Outcomes of zeros and ones are taken as numbers, and answers kept between them.
        """
        counted = np.arange(len(y)) if weights is None else np.flatnonzero(weights > 0)
        order = counted[np.random.default_rng(seed).permutation(len(counted))]
        few, kept = order[: self.length_rows], np.sort(order[: self.most_rows])
        columns = _columns(X[kept], dose[kept], y[kept], self.most_columns)
        table = _table(X[kept], dose[kept], columns, self.rank_share)
        mean = float(np.average(y[kept], weights=None if weights is None else weights[kept]))
        deviation = float(y[kept].std()) or 1.0
        rows = ProcessRows(
            table.covariates(X),
            table.warped(dose),
            (y - mean) / deviation,
            _noise_shares(weights, kept, len(y)),
        )
        robust = self.robust and not binary
        covariance, noise = find_lengths(rows.of(few), self.in_parts, self.n_steps, robust)
        chosen = rows.of(kept)
        if robust:
            chosen = with_tails(chosen, covariance, noise)
        coefficients = deviation * solve(chosen, covariance, noise)
        if robust:  # skewed noise has its mean elsewhere than most rows: the level is theirs again
            left = (noise * chosen.noise_shares + JITTER) * coefficients
            mean += float(np.average(left, weights=1.0 / rows.noise_shares[kept]))
        return CurveProcess(
            table=table,
            covariance=covariance,
            noise=noise,
            points=chosen.points,
            doses=chosen.doses,
            coefficients=coefficients,
            mean=mean,
            binary=binary,
            n_features=X.shape[1],
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProcessRows:
    """Rows as a process sees them."""

    points: FloatArray  # (n_rows, n_columns)
    doses: FloatArray  # (n_rows, n_components) warped
    values: FloatArray  # (n_rows,) standardised outcomes
    noise_shares: FloatArray  # (n_rows,) variance of noise as a multiple of the common one

    def of(self, rows: IntArray) -> ProcessRows:
        """Some of the rows."""
        return ProcessRows(
            self.points[rows], self.doses[rows], self.values[rows], self.noise_shares[rows]
        )

    def single(self) -> ProcessRows:
        """The rows in single precision."""
        single: list[Any] = [
            array.astype(np.float32)
            for array in (self.points, self.doses, self.values, self.noise_shares)
        ]
        return ProcessRows(*single)


def _noise_shares(weights: FloatArray | None, kept: IntArray, n_rows: int) -> FloatArray:
    """Variances of noise, inverse to the weights; rows without weight are never asked."""
    if weights is None:
        return np.ones(n_rows)
    shares: FloatArray = weights[kept].mean() / np.where(weights > 0, weights, 1.0)
    return shares


def solve(rows: ProcessRows, covariance: Covariance, noise: float) -> FloatArray:
    """Coefficients (K + noise)^-1 v of the rows, shape (n_rows,)."""
    matrix = covariance.between(rows.points, rows.doses)
    matrix[np.diag_indices_from(matrix)] += noise * rows.noise_shares + JITTER
    factor, failed = _factor(matrix)
    if failed:  # rows that are nearly alike: more jitter makes them different
        return solve(rows, covariance, 10.0 * max(noise, JITTER))
    coefficients: FloatArray = cho_solve((factor, True), rows.values, check_finite=False)
    return coefficients


def with_tails(rows: ProcessRows, covariance: Covariance, noise: float) -> ProcessRows:
    """Rows with a larger variance of noise where the other rows expect something else.

    The variance of a row is multiplied by (nu + u) / (nu + 1), u its squared leave-one-out residual
    over what the process expects of it: one step of the maximisation under a t distribution.

    Examples
    --------
    >>> line = np.linspace(0.0, 1.0, 50)
    >>> y = np.where(np.arange(50) == 20, 9.0, line)
    >>> rows = ProcessRows(line[:, None], line[:, None], y, np.ones(50))
    >>> ones = np.ones(1)
    >>> smooth = Covariance(np.array([0.0, 0.0, 1.0]), ones, ones, ones, ones)
    >>> np.argmax(with_tails(rows, smooth, 0.1).noise_shares)
    np.int64(20)
    """
    matrix = covariance.between(rows.points, rows.doses)
    shares = rows.noise_shares
    for _ in range(TAIL_ROUNDS):
        noisy = matrix.copy()
        noisy[np.diag_indices_from(noisy)] += noise * shares + _jitter(noisy)
        factor, failed = _factor(noisy)
        if failed:
            return rows
        coefficients = cho_solve((factor, True), rows.values, check_finite=False)
        unexpected = coefficients**2 / np.diag(_inverse(factor))
        shares = rows.noise_shares * (TAIL + unexpected) / (TAIL + 1.0)
    return replace(rows, noise_shares=shares)


def find_lengths(
    rows: ProcessRows, in_parts: bool, n_steps: int, robust: bool = False
) -> tuple[Covariance, float]:
    """Sizes, lengths and the variance of noise of the largest marginal likelihood with priors.

    The search is in single precision, twice as fast: what it finds needs a few digits.
    """
    rows = rows.single()
    loss = MarginalLoss(rows, in_parts)
    start = _search(loss, loss.centre[loss.free], n_steps)
    if robust:
        logs = loss.all_logs(start)
        loss.rows = with_tails(rows, loss.covariance(logs), float(np.exp(logs[3])))
        start = _search(loss, start, n_steps // 2)
    logs = loss.all_logs(start)
    return loss.covariance(logs).double(), float(np.exp(logs[3]))


def _search(loss: MarginalLoss, start: FloatArray, n_steps: int) -> FloatArray:
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-BOUND, BOUND)] * len(start),
        options={"maxiter": n_steps},
    )
    logs: FloatArray = found.x
    return logs


@dataclass(slots=True, eq=False)
class MarginalLoss:
    """Minus the log of the marginal likelihood of the rows and of weak priors, and its gradient.

    Its arguments are logs: three sizes, the noise, the lengths of covariates and dose, and those of
    both together. Priors are normal and wide; they keep the lengths of idle columns finite.
    """

    rows: ProcessRows
    in_parts: bool
    centre: FloatArray = field(init=False)  # (n_logs,) of the priors
    deviations: FloatArray = field(init=False)  # (n_logs,)
    free: NDArray[np.bool_] = field(init=False)  # (n_logs,) which of them are searched for

    def __post_init__(self) -> None:
        n_columns, n_components = self.rows.points.shape[1], self.rows.doses.shape[1]
        typical = np.full(n_columns, np.log(1.5 * np.sqrt(max(n_columns, 1))))
        sizes = [0.3, 0.3, 0.3, 0.5] if self.in_parts else [0.3, 0.3, 0.7, 0.5]
        self.centre = np.concatenate(
            [np.log(sizes), typical, np.zeros(n_components), typical, np.full(n_components, 0.3)]
        )
        of_part = np.repeat([1.2, 1.0, 1.2, 1.0], [n_columns, n_components] * 2)
        self.deviations = np.concatenate([np.full(4, 1.5), of_part])
        self.free = np.ones(len(self.centre), bool)
        if not self.in_parts:
            self.free[:2] = False
            self.free[4 : 4 + n_columns + n_components] = False

    def all_logs(self, searched: FloatArray) -> FloatArray:
        """The logs that are searched for, among those that are not."""
        logs = self.centre.copy()
        logs[self.free] = searched
        return logs

    def covariance(self, logs: FloatArray) -> Covariance:
        """The covariance of some logs."""
        n_columns, n_components = self.rows.points.shape[1], self.rows.doses.shape[1]
        ends = np.cumsum([4, n_columns, n_components, n_columns])
        sizes, *lengths = np.split(np.exp(logs).astype(self.rows.points.dtype), ends)
        parts = sizes[:3] if self.in_parts else np.array([0.0, 0.0, sizes[2]])
        return Covariance(parts, *lengths)

    def __call__(self, searched: FloatArray) -> tuple[float, FloatArray]:
        """The loss and its gradient."""
        logs = self.all_logs(searched)
        part, rows, noise = self.covariance(logs), self.rows, float(np.exp(logs[3]))
        both = squared_exponential(rows.points, rows.points, part.joint_lengths)
        both *= squared_exponential(rows.doses, rows.doses, part.joint_dose_lengths)
        both *= part.sizes[2]
        kernels = [(2, both)]
        total = both.copy()
        if self.in_parts:
            alone = ((rows.points, part.lengths), (rows.doses, part.dose_lengths))
            for place, (own, lengths) in enumerate(alone):
                kernel = part.sizes[place] * squared_exponential(own, own, lengths)
                total += kernel
                kernels.append((place, kernel))
        diagonal = np.diag_indices_from(total)
        total[diagonal] += noise * rows.noise_shares + _jitter(total)
        factor, failed = _factor(total)
        if failed:
            return NO_CHOLESKY, np.zeros(len(searched))
        log_determinant = 2.0 * np.log(factor[diagonal]).sum(dtype=np.float64)
        coefficients = cho_solve((factor, True), rows.values, check_finite=False)
        inverse = _inverse(factor)
        # Slope of the log likelihood by each covariance.
        slopes = np.outer(coefficients, coefficients)
        slopes -= inverse
        slopes *= 0.5
        gradient = np.zeros(len(logs))
        gradient[3] = noise * (slopes[diagonal] * rows.noise_shares).sum()
        for place, kernel in kernels:
            kernel *= slopes
            gradient[place] = kernel.sum()
            self._add_lengths(gradient, place, kernel, part)
        pull = (logs - self.centre) / self.deviations
        likelihood = -0.5 * (rows.values @ coefficients + log_determinant)
        loss = 0.5 * (pull * pull)[self.free].sum() - likelihood
        slope: FloatArray = (pull / self.deviations - gradient)[self.free]
        return float(loss), slope

    def _add_lengths(
        self, gradient: FloatArray, place: int, weighed: FloatArray, part: Covariance
    ) -> None:
        n_columns, n_components = self.rows.points.shape[1], self.rows.doses.shape[1]
        first = 4 if place < 2 else 4 + n_columns + n_components
        if place in (0, 2):
            lengths = part.lengths if place == 0 else part.joint_lengths
            own = slice(first, first + n_columns)
            gradient[own] = _by_lengths(weighed, self.rows.points / lengths)
        if place in (1, 2):
            lengths = part.dose_lengths if place == 1 else part.joint_dose_lengths
            own = slice(first + n_columns, first + n_columns + n_components)
            gradient[own] = _by_lengths(weighed, self.rows.doses / lengths)


def _jitter(matrix: FloatArray) -> float:
    return JITTER if matrix.dtype == np.float64 else SINGLE_JITTER


def _factor(matrix: FloatArray) -> tuple[FloatArray, int]:
    """Lower Cholesky factor of a symmetric matrix, which is overwritten, and whether it failed."""
    (potrf,) = get_lapack_funcs(("potrf",), (matrix,))
    factor, failed = potrf(matrix.T, lower=1, overwrite_a=1)
    return factor, failed


def _inverse(factor: FloatArray) -> FloatArray:
    """Inverse of a matrix by the lower triangle of its Cholesky factor, zeros above it."""
    (potri,) = get_lapack_funcs(("potri",), (factor,))
    lower, _ = potri(factor, lower=1, overwrite_c=1)
    inverse: FloatArray = lower.T + lower  # rows side by side, as kernels have them
    inverse[np.diag_indices_from(inverse)] *= 0.5
    return inverse


def _by_lengths(weighed: FloatArray, points: FloatArray) -> FloatArray:
    """Sums of M_ij (z_ik - z_jk)^2 for each column k of the points, M symmetric."""
    squares = weighed.sum(axis=1) @ (points * points)
    crossed = np.einsum("ik,ik->k", points, weighed @ points)
    sums: FloatArray = 2.0 * (squares - crossed)
    return sums


def _table(X: FloatArray, dose: DoseArray, columns: IntArray, rank_share: float) -> ProcessTable:
    chosen = X[:, columns]
    missing = np.isnan(chosen)
    fill = np.zeros(len(columns))
    seen = ~missing.all(axis=0)
    fill[seen] = np.nanmedian(chosen[:, seen], axis=0)
    filled = np.where(missing, fill, chosen)
    values = Doses.of(dose).table
    knots = np.quantile(values, np.linspace(0.0, 1.0, N_KNOTS), axis=0).T
    return ProcessTable(
        columns=columns,
        fill=fill,
        level=filled.mean(axis=0),
        scale=_positive(filled.std(axis=0)),
        knots=np.ascontiguousarray(knots),
        rank_share=rank_share,
        dose_level=values.mean(axis=0),
        dose_scale=_positive(values.std(axis=0)),
    )


def _positive(scale: FloatArray) -> FloatArray:
    return np.where(scale > 0.0, scale, 1.0)


def _columns(X: FloatArray, dose: DoseArray, y: FloatArray, most: int) -> IntArray:
    """Columns that a process sees: all, or those that go best with outcome, dose and both."""
    if X.shape[1] <= most:
        return np.arange(X.shape[1])
    table = _table(X, dose, np.arange(X.shape[1]), 0.0)
    points, doses = table.covariates(X), table.warped(dose)
    outcome = (y - y.mean()) / (float(y.std()) or 1.0)
    strengths = [np.abs(own @ points) for own in (outcome, *doses.T)]
    strengths += [np.abs((own * outcome) @ points) for own in doses.T]
    strengths += [np.abs(outcome @ (points * points - 1.0)) / np.sqrt(2.0)]
    order = np.argsort(-np.max(strengths, axis=0), kind="stable")
    return np.sort(order[:most])
