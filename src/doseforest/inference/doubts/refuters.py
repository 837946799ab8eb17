"""Refuters: fits to changed data in which the effect should vanish, or should stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, stdtr

from doseforest.base.dtypes import Array, FloatArray
from doseforest.base.estimates import Estimate
from doseforest.data.feature_table import as_table
from doseforest.doses.dose_values import dose_text

REJECTED_BELOW = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
    """Rows as a user gave them."""

    X: Any  # (n_rows, n_features)
    y: Array  # (n_rows,)
    treatment: Array  # (n_rows,) or (n_rows, n_components)
    sample_weight: Array | None  # (n_rows,)
    groups: Array | None  # (n_rows,)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    def where(self, places: Array) -> GivenRows:
        """Some of the rows."""
        X = self.X.iloc[places] if hasattr(self.X, "iloc") else self.X[places]
        weights = None if self.sample_weight is None else self.sample_weight[places]
        groups = None if self.groups is None else self.groups[places]
        return GivenRows(X, self.y[places], self.treatment[places], weights, groups)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refutation(Estimate):
    """An effect, and what became of it in data where the answer should be plain; prints as text.

    Attributes
    ----------
    value : float
        Average outcome at the high dose less that at the low one, in the data as they are.
    standard_error : float
        Its standard error.
    degrees : float
        Degrees of freedom of the standard error.
    kind : {"placebo", "random_common_cause", "subset"}
        What was changed.
    low, high : dose
        The two doses.
    refuted : array of shape (n_repeats,)
        The effect in the changed data.
    expected : float
        What it should be about there.
    p_value : float
        Two-sided: that it is about what it should be.

    Examples
    --------
    >>> placebo = Refutation(2.0, 0.1, "placebo", 0.0, 1.0, np.array([0.02, -0.03]), 0.0, 0.8)
    >>> placebo.passed
    True
    """

    kind: str
    low: Any
    high: Any
    refuted: FloatArray  # (n_repeats,)
    expected: float
    p_value: float

    @property
    def passed(self) -> bool:
        """Whether they are, or are off by less than the standard error that is stated anyway."""
        off = np.sqrt(np.mean((self.refuted - self.expected) ** 2))
        if self.kind != "subset":
            off = abs(float(self.refuted.mean()) - self.expected)
        return bool(self.p_value >= REJECTED_BELOW or off <= self.standard_error)

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "NOT PASSED"
        return (
            f"{REFUTERS[self.kind].title}: {verdict}. Effect of dose {dose_text(self.high, 4)} "
            f"against {dose_text(self.low, 4)}: {self.value:.4g} "
            f"(standard error {self.standard_error:.3g}); "
            f"{REFUTERS[self.kind].where} {self.refuted.mean():.4g} on average of "
            f"{len(self.refuted)} (from {self.refuted.min():.4g} to {self.refuted.max():.4g}), "
            f"where {self.expected:.4g} is expected (p = {self.p_value:.3g})."
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Refuter:
    """One way to change data, and what should become of the effect."""

    title: str
    where: str
    change: Callable[[GivenRows, float, np.random.Generator], GivenRows]
    vanishes: bool
    p_value: Callable[[FloatArray, float, float, float], float]  # refuted, expected, error, share


def placebo(rows: GivenRows, share: float, rng: np.random.Generator) -> GivenRows:
    """Doses of other rows: whatever they did, they did to others."""
    order = rng.permutation(rows.n_rows)
    return GivenRows(rows.X, rows.y, rows.treatment[order], rows.sample_weight, rows.groups)


def random_common_cause(rows: GivenRows, share: float, rng: np.random.Generator) -> GivenRows:
    """A covariate more, which is noise."""
    X = with_column(rows.X, rng.standard_normal(rows.n_rows))
    return GivenRows(X, rows.y, rows.treatment, rows.sample_weight, rows.groups)


@dataclass(frozen=True, slots=True)
class FirstColumns:
    """A known density that is told the covariates it knows, not what was added behind them."""

    density: Callable[[Array, Array], Array]
    n_columns: int

    def __call__(self, X: Array, doses: Array) -> Array:
        """Densities of units at doses."""
        return self.density(X[:, : self.n_columns], doses)


def subset(rows: GivenRows, share: float, rng: np.random.Generator) -> GivenRows:
    """A random share of the rows, or of the groups."""
    ids = np.arange(rows.n_rows) if rows.groups is None else rows.groups
    distinct, codes = np.unique(ids, return_inverse=True)
    drawn = np.zeros(len(distinct), bool)
    drawn[rng.permutation(len(distinct))[: round(share * len(distinct))]] = True
    return rows.where(np.flatnonzero(drawn[codes]))


def with_column(X: Any, column: FloatArray) -> Any:
    """The same table with a column of numbers more.

    Examples
    --------
    >>> with_column(np.zeros((2, 1)), np.ones(2))
    array([[0., 1.],
           [0., 1.]])
    """
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        return np.column_stack([np.asarray(X), column])
    name = "random_common_cause"
    while name in frame.columns:
        name += "_"
    backend = nw.get_native_namespace(frame)
    series = nw.new_series(name, column, backend=backend)
    index = nw.maybe_get_index(frame)
    if index is not None:
        native = series.to_native()
        native.index = index
        series = nw.from_native(native, series_only=True)
    return frame.with_columns(series).to_native()


def _about_zero(refuted: FloatArray, expected: float, error: float, share: float) -> float:
    """That independent placebos have a mean of zero, by their own spread."""
    return _t_test(float(refuted.mean()) - expected, refuted, 1 / len(refuted))


def _about_the_same(refuted: FloatArray, expected: float, error: float, share: float) -> float:
    """That the original is one of them: fits to the same rows differ by what is drawn at random."""
    return _t_test(float(refuted.mean()) - expected, refuted, 1 + 1 / len(refuted))


def _within_error(refuted: FloatArray, expected: float, error: float, share: float) -> float:
    """That parts of the rows differ from the whole as far as their sizes allow."""
    scale = error * np.sqrt(1 / share - 1)
    if scale == 0:
        return 1.0 if np.allclose(refuted, expected) else 0.0
    return float(chdtrc(len(refuted), (((refuted - expected) / scale) ** 2).sum()))


def _t_test(off: float, drawn: FloatArray, factor: float) -> float:
    scale = float(drawn.std(ddof=1)) * np.sqrt(factor)
    if scale == 0:
        return 1.0 if off == 0 else 0.0
    return float(2 * stdtr(len(drawn) - 1, -abs(off) / scale))


REFUTERS = {
    "placebo": Refuter("Placebo treatment", "with doses of other rows", placebo, True, _about_zero),
    "random_common_cause": Refuter(
        "Random common cause",
        "with a covariate of noise",
        random_common_cause,
        False,
        _about_the_same,
    ),
    "subset": Refuter("Subset", "in random parts of the rows", subset, False, _within_error),
}


def given_rows(
    X: Any, y: Any, treatment: Any, sample_weight: Any = None, groups: Any = None
) -> GivenRows:
    """Rows whose places can be picked; `fit` checks what they hold."""
    n_rows = as_table(X, with_categories=True).n_rows
    named = {"y": y, "treatment": treatment, "sample_weight": sample_weight, "groups": groups}
    arrays = {name: None if each is None else np.asarray(each) for name, each in named.items()}
    for name, array in arrays.items():
        if array is None and name in ("sample_weight", "groups"):
            continue
        if array is None or array.ndim == 0 or len(array) != n_rows:
            got = "None" if array is None else f"shape {array.shape}"
            raise ValueError(
                f"The {name!r} parameter must have one entry per row of X ({n_rows}). "
                f"Got {got} instead."
            )
    table = X if hasattr(X, "columns") else np.asarray(X)
    return GivenRows(table, **arrays)  # type: ignore[arg-type]


def refute_effect(
    fitted: Callable[[GivenRows], tuple[float, float]],
    rows: GivenRows,
    kind: str,
    *,
    low: Any,
    high: Any,
    n_repeats: int,
    share: float,
    seed: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Refutation:
    """Fit to the rows and to changed ones, and compare.

    Parameters
    ----------
    fitted : callable
        From rows to the effect and its standard error.
    kind : str
        One of REFUTERS.
    share : float
        Of the rows, for "subset".
    on_progress : callable
        Told after each of n_repeats + 1 fits.
    """
    refuter = REFUTERS[kind]
    original, error = fitted(rows)
    on_progress(1)
    refuted = np.empty(n_repeats)
    for repeat in range(n_repeats):
        rng = np.random.default_rng([seed, repeat])
        refuted[repeat], _ = fitted(refuter.change(rows, share, rng))
        on_progress(1)
    expected = 0.0 if refuter.vanishes else original
    p_value = refuter.p_value(refuted, expected, error, share)
    return Refutation(original, error, kind, low, high, refuted, expected, p_value)
