"""How the training rows came by their doses: known of some, estimated for the others.

Where rows of an experiment stand among rows that were only observed, a unit's dose has the density

    pi(t | x) = e(x) a(t | x) + (1 - e(x)) b(t | x),

e(x) the chance that a row with these covariates is in the experiment, a the density there, which
is known of its rows, and b the density of the others, estimated from them alone: theirs is another
assignment. Weights are r_i = p(T_i) / pi(T_i | X_i), p the density of all doses. The mixture asks
less than each row's own density would: a dose that no observed row of a kind has is possible in the
experiment, and no weight explodes. It takes units with the same covariates to have the same curve
whether they were in the experiment or not, as the outcome model does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.estimator.training_rows import FEWEST_ROWS
from doseforest.nuisance.cross_fit import draw_folds
from doseforest.nuisance.treatment.conditional_density import (
    ConditionalDensity,
    CrossFittedDensity,
    DensityLearner,
    check_training_table,
    checked_dose_table,
    cross_fit_density,
)
from doseforest.nuisance.treatment.conditional_mean import fit_conditional_mean
from doseforest.nuisance.treatment.known_assignments import KnownRows
from doseforest.nuisance.treatment.known_densities import known_rows
from doseforest.nuisance.treatment.location_scale import LocationScale
from doseforest.nuisance.treatment.marginal import marginal_density
from doseforest.nuisance.treatment.treatment_support import (
    DoseSupport,
    dose_support,
    support_within,
)
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights

FEWEST_BESIDE = 10  # doses beside point masses, below which they have no density
LEAST_CHANCE = 0.01  # of either kind of rows, given the covariates


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedDensities:
    """What is estimated where the density of some rows is not known."""

    chance: FloatArray  # (n_rows,) e(X_i)
    table: FloatArray  # (n_rows, n_columns) that the models below see
    known: ConditionalDensity  # a, fitted to the known rows, for the others
    unknown: CrossFittedDensity  # b, fitted to the others


@dataclass(frozen=True, slots=True, eq=False)
class KnownAssignment:
    """Densities pi(t | X_i) of the training rows."""

    given: KnownRows
    estimates: EstimatedDensities | None  # None: everything is known
    observed: FloatArray  # (n_rows,) pi(T_i | X_i)

    @property
    def everywhere(self) -> bool:
        """Whether densities are known at any dose, not at the observed ones alone."""
        one = np.flatnonzero(self.given.known)[:1]
        return self.given.densities(one, np.zeros(1)) is not None

    def out_of_fold(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities of the training rows, (n_rows, n_doses); X must be the training table.

        Raises ValueError where densities are known at the observed doses only.
        """
        check_training_table(X, len(self.observed))
        table = checked_dose_table(doses, len(X))
        rows = self.given.known
        values = self.given.densities(np.flatnonzero(rows), _of_rows(table, rows))
        if values is None:
            raise ValueError(
                "The 'density' parameter must be a function, strata, probabilities of all levels "
                "or the name of a density where it is needed at every dose. Got values at the "
                "observed doses instead."
            )
        return values if self.estimates is None else _mixed(self.estimates, rows, table, values)


def known_weights(
    density: Any,
    X: FloatArray,
    dose: FloatArray,
    *,
    table: FloatArray | None = None,
    ids: IntArray | None = None,
    n_folds: int = 4,
    learner: DensityLearner | None = None,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> TreatmentWeights:
    """Weights of a dose whose density is known, of all rows or of some.

    Parameters
    ----------
    density : array, callable or Strata
        See `known_rows`; a known density is used as it is.
    X : array of shape (n_rows, n_features)
    dose : array of shape (n_rows,)
    table : array of shape (n_rows, n_columns), optional
        What models of the unknown see in place of X, as numbers in place of categories.
    ids : array of ints of shape (n_rows,), optional
        Rows that share one share a fold.
    n_folds : int
        Of the density of the rows that are not known.
    learner : DensityLearner, optional
        Of what is not known, by default `LocationScale`.
    weights : array of shape (n_rows,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.uniform(0, 2, size=500)
    >>> flat = known_weights(lambda x, t: np.full(t.shape, 0.5), np.zeros((500, 1)), dose)
    >>> float(flat.r.min()), float(flat.r.max())
    (1.0, 1.0)
    """
    X, dose = np.asarray(X, np.float64), np.asarray(dose, np.float64)
    given = known_rows(density, X, dose, weights)
    if given.known.all():
        ratios = given.overall() / given.observed
        everything = KnownAssignment(given, None, given.observed)
        return TreatmentWeights.capping(given.name, ratios, everything, weights=weights)
    estimates = _estimate(
        given,
        X if table is None else table,
        dose,
        np.arange(len(dose)) if ids is None else ids,
        n_folds,
        LocationScale() if learner is None else learner,
        weights=weights,
        seed=seed,
        n_threads=n_threads,
    )
    values = given.observed[given.known, None]
    observed = _mixed(estimates, given.known, dose[:, None], values)[:, 0]
    observed = np.maximum(observed, np.finfo(np.float64).tiny)
    ratios = marginal_density(dose, weights).at(dose) / observed
    mixture = KnownAssignment(given, estimates, observed)
    return TreatmentWeights.capping(f"partly {given.name}", ratios, mixture, weights=weights)


def check_kinds(given: KnownRows, dose: FloatArray, weights: FloatArray | None = None) -> None:
    """Raise ValueError where either kind of rows is too small to estimate what is not known."""
    if not given.known.all():
        for kind, what in ((given.known, "known"), (~given.known, "not known")):
            _support_of_kind(kind, what, dose, weights)


def _estimate(
    given: KnownRows,
    X: FloatArray,
    dose: FloatArray,
    ids: IntArray,
    n_folds: int,
    learner: DensityLearner,
    *,
    weights: FloatArray | None,
    seed: int,
    n_threads: int,
) -> EstimatedDensities:
    known, others = given.known, ~given.known
    shared: dict[str, Any] = {"seed": seed, "n_threads": n_threads}
    member = fit_conditional_mean(X, known.astype(np.float64), weights=weights, **shared)
    in_trial = learner.fit(
        X[known],
        dose[known],
        support=_support_of_kind(known, "known", dose, weights),
        weights=None if weights is None else weights[known],
        **shared,
    )
    beside = cross_fit_density(
        learner,
        X[others],
        dose[others],
        draw_folds(ids[others], n_folds, seed),
        support=_support_of_kind(others, "not known", dose, weights),
        weights=None if weights is None else weights[others],
        **shared,
    )
    chance = np.clip(member.out_of_fold, LEAST_CHANCE, 1 - LEAST_CHANCE)
    return EstimatedDensities(chance, X, in_trial, beside)


def _mixed(
    estimates: EstimatedDensities,
    known: NDArray[np.bool_],
    doses: FloatArray,
    given: FloatArray,
) -> FloatArray:
    """Densities pi(t | X_i) of all rows from those given of the known ones, (n_known, n_doses)."""
    others, X = ~known, estimates.table
    first = np.empty((len(X), doses.shape[-1]))
    first[known] = given
    first[others] = estimates.known.density(X[others], _of_rows(doses, others))
    second = np.empty(first.shape)
    second[known] = estimates.unknown.full.density(X[known], _of_rows(doses, known))
    second[others] = estimates.unknown.out_of_fold(X[others], _of_rows(doses, others))
    chance = estimates.chance[:, None]
    mixed: FloatArray = chance * first + (1 - chance) * second
    return mixed


def _of_rows(doses: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
    return doses if doses.ndim == 1 else doses[rows]


def _support_of_kind(
    kind: NDArray[np.bool_], what: str, dose: FloatArray, weights: FloatArray | None
) -> DoseSupport:
    """Where the doses of a kind of rows are, with the point masses of all rows."""
    kept = dose[kind if weights is None else kind & (weights > 0)]
    everyone = dose_support(dose, weights)
    beside = int((~everyone.at_mass(kept)).sum()) if everyone.continuous else 0
    n_doses = len(np.unique(kept))
    if len(kept) < FEWEST_ROWS or n_doses == 1 or 0 < beside < FEWEST_BESIDE:
        raise ValueError(
            f"The 'density' parameter must be known of all rows, or of at least {FEWEST_ROWS} and "
            f"not of at least {FEWEST_ROWS}, both with doses that vary, {FEWEST_BESIDE} beside "
            f"point masses. Got {len(kept)} rows of which it is {what}, with {n_doses} distinct "
            f"doses and {beside} rows beside point masses, instead."
        )
    return support_within(everyone, kept, continuous=beside > 0)
