"""Whether the data can answer: density of the dose, support, weights, balance, positivity."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import check_doses
from doseforest.doses.smoothing.kernel_weights import effective_sample
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.estimator.fitted import Fitted
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.unit_support import supported_shares
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights
from doseforest.report.dose_axes import fitted_axes
from doseforest.report.overlap.covariate_balance import Balance
from doseforest.report.overlap.overlap_components import (
    all_within,
    beside_masses,
    component_ratios,
    dose_balance,
)
from doseforest.report.overlap.overlap_measures import (
    QUANTILES,
    WeightSpread,
    weight_spread,
    weighted_quantiles,
)
from doseforest.report.overlap.overlap_messages import overlap_messages
from doseforest.report.overlap.overlap_plots import plot_report
from doseforest.report.overlap.overlap_text import report_text

WEAK_BELOW = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class OverlapReport:
    """Overlap of the training population, as `GeneralizedCausalForest.overlap_report` measures it.

    ``print(report)`` shows the tables and what is wrong, ``report.plot()`` draws them,
    ``report.to_dict()`` gives columns that any frame library takes.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Doses that the tables are about.
    components : tuple of str
        Names of the dose, or of its components.
    arms : bool
        Whether the first of two components is an arm, the second its dose.
    masses : tuple of float
        Levels of the dose, or its point masses; empty with several components.
    continuous : bool
        Whether there are doses beside them, in some component.
    supported : array of shape (n_doses,)
        Share of units that could well have had the dose.
    kernel_sample : array of shape (n_doses,)
        Rows that speak about the dose.
    weighted_sample : array of shape (n_doses,)
        The same after treatment weights.
    density_quantiles : array of shape (7, n_doses)
        Quantiles of pi(t | X_i) over the units; probabilities at masses.
    observed_quantiles : array of shape (7,)
        Quantiles of pi(T_i | X_i) over rows beside masses; of levels, over all.
    weights_name : str
        Kind of the treatment weights, with the power they were raised to.
    before_cap, after_cap : WeightSpread
        Spread of the weights.
    n_capped : int
        Number of weights that were capped.
    balance : Balance
        What is left of the covariates' dependence on the dose.
    weak_below : float
        A variance given the covariates below this share of the overall one is weak.
    weak_share : float
        Share of units with such a variance, of any component.
    observed_doses : array of shape (n_rows,) or (n_rows, n_components)
        Observed doses.
    treatment_weights : array of shape (n_rows,)
        Weights, as averages use them.
    variance_ratios : array of shape (n_rows,) or (n_rows, n_components)
        Var(T | X_i) / Var(T), or of each component given those before it; NaN where an arm has but
        one dose.
    sample_weights : array of shape (n_rows,) or None
        Weights of the rows.
    level_samples : array of shape (n_masses,)
        Weighted rows at each level or mass.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=300, seed=0)
    >>> forest = GeneralizedCausalForest(
    ...     correction="none", outcome_model=LinearRegression(), density="gaussian", baseline=0.0,
    ... ).fit(data.X, data.y, treatment=data.treatment)
    >>> forest.overlap_report().n_rows
    300
    """

    n_rows: int
    doses: FloatArray  # (n_doses,)
    components: tuple[str, ...]
    arms: bool
    masses: tuple[float, ...]
    continuous: bool
    supported: FloatArray  # (n_doses,)
    kernel_sample: FloatArray  # (n_doses,)
    weighted_sample: FloatArray  # (n_doses,)
    density_quantiles: FloatArray  # (7, n_doses)
    observed_quantiles: FloatArray  # (7,)
    weights_name: str
    before_cap: WeightSpread
    after_cap: WeightSpread
    n_capped: int
    balance: Balance
    weak_below: float
    weak_share: float
    observed_doses: FloatArray  # (n_rows,)
    treatment_weights: FloatArray  # (n_rows,)
    variance_ratios: FloatArray  # (n_rows,) or (n_rows, n_components)
    sample_weights: FloatArray | None  # (n_rows,)
    level_samples: FloatArray  # (n_masses,)

    @property
    def weak_shares(self) -> dict[str, float]:
        """Share of units with weak positivity by component."""
        weak = np.reshape(self.variance_ratios, (len(self.variance_ratios), -1)) < self.weak_below
        shares = np.average(weak, axis=0, weights=self.sample_weights)
        return dict(zip(self.components, shares.tolist(), strict=True))

    @property
    def messages(self) -> tuple[str, ...]:
        """What is wrong, and the cure; empty where nothing is."""
        return overlap_messages(self)

    def to_dict(self) -> dict[str, Any]:
        """Columns by table: ``pandas.DataFrame(report.to_dict()["doses"])``.

        Returns
        -------
        dict
            Tables "doses", "weights" and "balance", the share of weak units, and the messages.
        """
        levels = [f"density_{share:.0%}" for share in QUANTILES]
        spreads = (self.before_cap, self.after_cap)
        return {
            "doses": {
                **self._dose_columns(),
                "supported": self.supported.tolist(),
                "kernel_sample": self.kernel_sample.tolist(),
                "weighted_sample": self.weighted_sample.tolist(),
                **dict(zip(levels, self.density_quantiles.tolist(), strict=True)),
            },
            "weights": {
                "weights": ["before capping", "after capping"],
                "effective_sample": [spread.effective_sample for spread in spreads],
                "largest": [spread.largest for spread in spreads],
                **{
                    f"quantile_{share:.0%}": [float(spread.quantiles[k]) for spread in spreads]
                    for k, share in enumerate(QUANTILES)
                },
            },
            "balance": {
                "covariate": list(self.balance.covariates),
                **{
                    f"{target}, {when}": values[:, k].tolist()
                    for k, target in enumerate(self.balance.targets)
                    for when, values in (
                        ("before", self.balance.before),
                        ("after", self.balance.after),
                    )
                },
            },
            "weak_share": self.weak_share,
            "messages": list(self.messages),
        }

    def _dose_columns(self) -> dict[str, list[float]]:
        if self.doses.ndim == 1:
            return {"dose": self.doses.tolist()}
        return dict(zip(self.components, self.doses.T.tolist(), strict=True))

    def plot(self, axes: Any | None = None) -> Any:
        """Draw support and samples, weights, balance, and the room that covariates leave the dose.

        Parameters
        ----------
        axes : sequence of four matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        sequence of four matplotlib axes
            The pictures.
        """
        return plot_report(self, axes)

    def __str__(self) -> str:
        return report_text(self)


def report_overlap(
    fitted: Fitted, doses: Any = None, *, weak_below: float = WEAK_BELOW
) -> OverlapReport:
    """Measure the overlap of the training rows; see `GeneralizedCausalForest.overlap_report`.

    Parameters
    ----------
    fitted : Fitted
    doses : array of shape (n_doses,) or (n_doses, n_components), optional
    weak_below : float
    """
    if not isinstance(weak_below, Real) or not 0 < weak_below < 1:
        raise ValueError(
            f"The 'weak_below' parameter must be a float in (0, 1). Got {weak_below!r} instead."
        )
    averager, density, grounds = fitted.averager, fitted.overlap, fitted.grounds
    rows, model, axes = fitted.rows, fitted.model, fitted_axes(fitted)
    if doses is not None:
        asked = check_doses(dose_table(doses, 1, "doses", model.n_components)[0], model.support)
    else:
        grid = Doses.of(model.doses)
        asked = grid if grid.joint else Doses(np.union1d(grid, grounds[0].masses))
    doses = asked.values
    X, sample, chosen = rows.treatment_features, rows.weights, averager.weights
    row_weights = np.ones(rows.n_rows) if sample is None else sample
    smoother = (min(averager.bandwidth, averager.error_bandwidth), averager.kernel)
    inside = all_within(grounds, asked).values
    on_doses, observed = _densities(density, chosen, rows, inside)
    beside = beside_masses(grounds, rows.dose)
    beside = beside if beside.any() else np.ones(rows.n_rows, bool)
    before = chosen.r if chosen.uncapped is None else chosen.uncapped
    cut = before / chosen.r  # the same for all rows but those that the cap has lowered
    ratios = component_ratios(density, X, rows.dose, grounds, sample, arms=axes.arms)
    weak = (np.reshape(ratios, (rows.n_rows, -1)) < weak_below).any(axis=1)
    masses = grounds[0].masses if len(grounds) == 1 else ()
    at_mass = [rows.dose == mass for mass in masses]
    powered = chosen.name if chosen.shrinkage in (0.0, 1.0) else f"{chosen.name}^{chosen.shrinkage}"
    labels = [feature_label(rows.names, int(k)) for k in rows.treatment_columns]
    return OverlapReport(
        n_rows=rows.n_rows,
        doses=asked.plain,
        components=axes.labels,
        arms=axes.arms,
        masses=masses,
        continuous=any(part.continuous for part in grounds),
        supported=supported_shares(density, X, doses, grounds, sample),
        kernel_sample=effective_sample(rows.dose, doses, *smoother, row_weights),
        weighted_sample=effective_sample(rows.dose, doses, *smoother, row_weights * chosen.r),
        density_quantiles=weighted_quantiles(on_doses, sample),
        observed_quantiles=weighted_quantiles(
            observed[beside], None if sample is None else sample[beside]
        ),
        weights_name=powered,
        before_cap=weight_spread(before, sample),
        after_cap=weight_spread(chosen.r, sample),
        n_capped=int((cut > (1 + 1e-9) * cut.min()).sum()),
        balance=dose_balance(X, rows.dose, chosen.r, grounds, axes, weights=sample, labels=labels),
        weak_below=float(weak_below),
        weak_share=float(np.average(weak, weights=sample)),
        observed_doses=rows.dose.plain,
        treatment_weights=chosen.r,
        variance_ratios=ratios,
        sample_weights=sample,
        level_samples=np.array(
            [weight_spread(chosen.r[k], row_weights[k]).effective_sample for k in at_mass]
        ),
    )


def _densities(
    density: ConditionalDensity, chosen: TreatmentWeights, rows: TrainingRows, doses: DoseArray
) -> tuple[FloatArray, FloatArray]:
    """Densities of rows at some doses and at their own, of the weights where they have any."""
    X, own = rows.treatment_features, chosen.density
    if own is None:
        return density.density(X, doses), density.density(X, rows.dose.values[:, None])[:, 0]
    on_doses = own.out_of_fold(X, doses) if own.everywhere else density.density(X, doses)
    return on_doses, own.observed
