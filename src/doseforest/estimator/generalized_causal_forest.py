"""GeneralizedCausalForest: from a table to the dose-response curve of every unit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from doseforest.base.accessors import Accessor
from doseforest.base.late import late
from doseforest.base.progress import ProgressBar
from doseforest.data.binning import MAX_BINS
from doseforest.data.registered_names import NameIn
from doseforest.doses.bases.dose_basis import BASES, DoseBasis, basis_levels
from doseforest.doses.boxes import distinct_doses, has_levels, observed_support
from doseforest.doses.curve_effects import dose_table, each_its_own
from doseforest.doses.dose_labels import dose_labels, series_label
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import check_doses
from doseforest.doses.smoothing.kernels import KERNELS, Kernel
from doseforest.engine.forest import UnseenRowsWarning
from doseforest.estimator.answer_frames import EstimatorOutput, as_frame
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import (
    CorrectedOutcome,
    EffectForest,
    EffectMethods,
    NoCorrection,
)
from doseforest.nuisance.outcome.outcome_members import OUTCOME_MEMBERS
from doseforest.nuisance.treatment.known_densities import Strata

if TYPE_CHECKING:
    from doseforest.base.estimates import Estimate
    from doseforest.estimator.averages.average_curves import AverageDoseResponse
    from doseforest.estimator.corrections.correction_recipe import CorrectionRecipe
    from doseforest.estimator.fitted import Fitted
    from doseforest.evaluation.risks import EffectRisk
    from doseforest.inference.averages.population_averages import PopulationAverages
    from doseforest.inference.changes.population_shifts import PopulationShifts
    from doseforest.inference.forest_tests import ForestTests
    from doseforest.report.model_summary import ModelSummary
    from doseforest.report.overlap.overlap_report import OverlapReport
    from doseforest.report.population_plots import PopulationPlots

INSIDE = "correction__"  # before names of fields of the correction
_REGISTRY = "doseforest.estimator.corrections.correction_registry"
_CORRECTIONS, _RECIPE_OF = f"{_REGISTRY}:CORRECTIONS", f"{_REGISTRY}:recipe_of"


class GeneralizedCausalForest(
    EstimatorOutput,
    EffectMethods,
    BaseEstimator,  # type: ignore[misc]
):
    """Dose-response curves of units, by an outcome model that honest forests correct.

    An outcome model gives every unit a curve; forests grown on doubly robust curves correct it
    where the data say so, and are left out where they do not.

    Parameters
    ----------
    n_trees : int, default=400
        Number of trees of a round of correction, shared by the leaf sizes. More trees lower the
        random part of curves. Raise it where two values of ``random_state`` give effects that
        differ by more than matters to you; lower it while you try things out. Time of growth, time
        of predictions and the size of saved files are proportional to it; the time of the outcome
        model is not.
    correction : str or object of `doseforest.corrections`, default="orthogonal"
        How the outcome model is corrected. "orthogonal" regresses residuals on residualised
        functions of the dose, in neighbourhoods that forests find; it is the most accurate on the
        designs of the benchmarks. "stabilized" smooths weighted residuals by kernels, "kernel" is
        the published kernel formula, and "paper" the published algorithm in every step, see
        `paper`: these are for comparison. "none" leaves the outcome model as it is, which is
        fastest and inherits its bias. A name stands for the defaults; an object, such as
        ``Orthogonal(n_rounds=1, leaf_sizes=(5, 50))``, holds what only its correction needs:
        rounds, leaf sizes, bandwidths, distances. Searches set its fields as
        ``correction__n_rounds``.
    outcome_model : str, regressor, object with `fit`, or several of them, default="stack"
        Model of the outcome given features and dose, cross-fitted. "stack" mixes splines, Gaussian
        processes and boosted trees by what they predict out of fold of outcomes and of effects.
        Pass a scikit-learn regressor (or a classifier of a binary outcome) where you have one that
        predicts better, or a simple one to save time: most of a fit goes into the stack where rows
        are few. Several members are weighed as those of the stack: a list of regressors, recipes
        (`MemberRecipe` of `doseforest.nuisance.outcome`) and names of members, "stack" for the
        default ones, as in ``["stack", CatBoostRegressor()]``; or a dict of them with names of your
        own. Each member is fitted once a fold and once more.
    treatment_model : regressor, optional
        Model of functions of the dose given the features, for "orthogonal"; by default boosted
        trees. Pass another one where the doses follow a rule that it fits better. What it misses of
        the confounding must be in the outcome model, or it stays in the effects. It is fitted once
        a fold and function of the dose.
    density : str, object with `fit`, array, callable or Strata, default="auto"
        Treatment weights, for averages and kernel corrections. A name is one way to estimate them:
        "location_scale", "binned", "gaussian", "forest", "entropy", "permutation" or "none"; "auto"
        picks by the estimated error of the average curve, and fits several to do so. Name one to
        save that time, or pass a recipe with `fit` (`DensityLearner` of
        `doseforest.nuisance.treatment`). What is fixed by the design of an experiment is used as it
        is, by "orthogonal" too, and is always better than an estimate: the density of each row at
        its dose, (n_rows,); the probability of each level, (n_rows, n_levels); a function of (X,
        doses), X with the density features alone, categories in it as their numbers, or text as its
        place among the labels of ``model_.categories``; or strata within which the dose was
        randomised. NaN (a stratum of None) marks rows that were only observed.
    basis : "auto", str or DoseBasis, default="auto"
        Functions of the dose that curves are corrected by: a name of `doseforest.doses.BASES`, or a
        recipe such as ``Legendre(5)``. "auto" takes polynomials, with indicators of levels and
        point masses where the doses have any. Take a larger basis where curves have narrow features
        and rows are many; each function costs variance, and time of growth.
    n_folds : int, default=4
        Folds of cross-fitting: every row gets its nuisances from models that have not seen it.
        Raise it where rows are few, so that fits see more of them; time of the nuisances is
        proportional to it.
    n_repeats : int, default=1
        Draws of the folds that nuisances are averaged over. Raise it to 2 or 5 where another
        ``random_state`` changes averages by more than matters; time of the nuisances is
        proportional to it.
    honesty : {"tree", "forest", "swap", "none"}, default="tree"
        Which rows grow trees and which fill leaves: halves of each tree's rows, of all rows, or of
        all rows and then the other way round ("swap"), with nuisances that have seen the growing
        half only and one round of correction. "swap" keeps growth strictly apart from the outcomes
        that fill leaves, at the price of half the rows and twice the fits. "none" uses every row
        for both: leaves then overfit the splits.
    honesty_fraction : float, default=0.5
        Share of a tree's rows that grow it (not with "swap": a half). Raise it for finer
        neighbourhoods, lower it for steadier leaves.
    sample_fraction : float, default=0.7
        Share of all rows that a tree sees, below 1: the rows left out decide how far the correction
        is trusted (not with "paper", where trees see all rows). Raise it for deeper trees; fewer
        trees are then left for each row out of bag.
    mtry : int, float or "sqrt", optional
        Features that a split may use: a number, a share of all, or the root of their number; by
        default all. For "paper", features of a tree. Lower it where features are many, to grow
        faster and to make trees differ; where few features matter, low values miss them.
    kernel : str or Kernel, default="epanechnikov"
        Kernel over the dose, for averages, kernel corrections and "paper": a name of
        `doseforest.doses.KERNELS`, or a kernel. It matters far less than the bandwidth; "exact" is
        for doses of few levels.
    average_bandwidth : float, "rule_of_thumb" or "leave_one_out", default="leave_one_out"
        Bandwidth of average curves, in units of the dose. Raise it for smaller standard errors, at
        the cost of flattened bends; lower it where the average curve turns quickly. "leave_one_out"
        tries 21 bandwidths by their risk.
    doses : array of shape (n_doses,) or (n_doses, n_components), optional
        Default grid of doses; by default 20 over the support, or the levels when there are few.
        Pass the doses that you decide between. Answers at other doses can be had at any time;
        kernel corrections take time in proportion to the grid.
    baseline : float or array of shape (n_components,), optional
        Dose that effects are measured against; by default 0 where enough rows speak about it, else
        the lowest dose with enough, with a `BaselineWarning`. Pass what "untreated" means to you.
    effect_features : sequence of names or places, optional
        Features that trees split on, by which effects may differ; by default all but the controls.
        Name few where you know what effects go by: trees find it with fewer rows. Effects along
        features left out are then the outcome model's alone.
    controls : sequence of names or places, optional
        Features for the nuisances only: confounders along which effects need not differ. By default
        none.
    density_features : sequence of names or places, optional
        Features that models of the treatment see; by default all. Leave out what drives the
        treatment alone, such as instruments: it makes weights extreme and standard errors large,
        and removes no bias.
    max_bins : int, default=64
        Bins of a numeric feature, at most 255; categories have a bin each, up to 1,023. Raise it
        where the place of a split matters to the last percent; growth takes longer in proportion.
    categorical_features : sequence of names or places, optional
        Columns whose whole numbers are codes of categories; text and categorical columns of a frame
        are such without being named. Trees split categories by sets, nuisances see learned numbers.
    inference : {"bags"}, optional
        Grow a forest for intervals of units beside the one that answers, see `effect_interval`:
        2,000 small trees in 100 bags. Set it where you need to know how sure a unit's effect is;
        growth takes several times as long, files get larger, and answers stay the same.
    n_jobs : int, optional
        Number of threads; -1 for all cores. By default every core, or this task's share of them in
        a search of several jobs. It never changes the result.
    memory_limit : int, optional
        Bytes that growth may take; by default what the machine or its container has left. Lower it
        on a shared machine: fewer trees grow at once, which takes longer and changes no result.
    progress : bool, optional
        Show a progress bar; by default on a terminal, for work over two seconds.
    verbose : bool, default=False
        Print the time of nuisances, curves, growth and leaves, to see what a fit spends it on.
    random_state : int, RandomState or None, optional
        Seed of folds, rows and features. Give an int for the same forest again, bit for bit, on any
        number of threads; by default every fit draws a new seed.

    Attributes
    ----------
    model_ : EffectForest
        What answers for new units, without the training data.
    outcome_model_ : EffectForest
        The outcome model alone, with the same methods.
    outcome_weights_ : dict
        Weights of the members of the outcome model; with swapped halves, their means.
    rounds_ : tuple of dict
        What was chosen in each round of correction: shares, strength, gain; with swapped halves,
        the half that grew it too.
    treatment_means_ : str or None
        Where the means of the dose functions given the covariates come from: "known", "partly
        known" or "estimated"; None where the correction does not need them.
    doses_ : array of shape (n_doses,) or (n_doses, n_components)
        Default grid.
    baseline_ : dose
        The dose that effects are measured against.
    support_ : DoseRange or DoseBox
        Range of the training doses.
    seconds_ : dict
        Time by phase.

    Examples
    --------
    A straight line for the outcome has the same effects for everyone; forests find who responds.

    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["randomised"].draw(n=500, seed=0)
    >>> forest = GeneralizedCausalForest(
    ...     n_trees=50, outcome_model=LinearRegression(), random_state=0)
    >>> forest.fit(data.X, data.y, treatment=data.treatment).dose_response(data.X[:3]).shape
    (3, 21)
    >>> effects = forest.effect(data.X, dose=5.0, baseline=0.0)
    >>> bool(np.corrcoef(effects, data.effect([5.0], baseline=0.0)[:, 0])[0, 1] > 0.6)
    True
    >>> forest.outcome_model_.effect(data.X, dose=5.0, baseline=0.0).std().round(6)
    np.float64(0.0)
    """

    average: Accessor[PopulationAverages] = Accessor(
        "doseforest.inference.averages.population_averages:PopulationAverages"
    )
    plot: Accessor[PopulationPlots] = Accessor("doseforest.report.population_plots:PopulationPlots")
    shifts: Accessor[PopulationShifts] = Accessor(
        "doseforest.inference.changes.population_shifts:PopulationShifts"
    )
    tests: Accessor[ForestTests] = Accessor("doseforest.inference.forest_tests:ForestTests")

    __metadata_request__fit = {"treatment": True, "sample_weight": True, "groups": True}
    __metadata_request__score = {"treatment": True, "sample_weight": True, "groups": True}

    _parameter_constraints: dict[str, list[Any]] = {
        "n_trees": [Interval(Integral, 1, 2**31, closed="left")],
        "correction": [NameIn(_CORRECTIONS), HasMethods(["fit"])],
        "outcome_model": [
            NameIn(OUTCOME_MEMBERS, "stack"),
            HasMethods(["fit"]),
            dict,
            list,
            tuple,
        ],
        "treatment_model": [HasMethods(["fit", "predict"]), None],
        "density": [
            NameIn("doseforest.nuisance.treatment.density_registry:WEIGHT_NAMES", "auto"),
            HasMethods(["fit"]),
            "array-like",
            callable,
            Strata,
        ],
        "basis": [NameIn(BASES, "auto"), HasMethods(["fit"])],
        "n_folds": [Interval(Integral, 2, 100, closed="both")],
        "n_repeats": [Interval(Integral, 1, 1000, closed="both")],
        "honesty": [StrOptions({"tree", "forest", "swap", "none"})],
        "honesty_fraction": [Interval(Real, 0, 1, closed="neither")],
        "sample_fraction": [Interval(Real, 0, 1, closed="neither")],
        "mtry": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"sqrt"}),
            None,
        ],
        "kernel": [NameIn(KERNELS), HasMethods(["value", "mass"])],
        "average_bandwidth": [
            Interval(Real, 0, None, closed="neither"),
            NameIn("doseforest.estimator.chosen_bandwidths:BANDWIDTH_RULES"),
        ],
        "doses": ["array-like", None],
        "baseline": [Real, "array-like", None],
        "effect_features": ["array-like", None],
        "controls": ["array-like", None],
        "density_features": ["array-like", None],
        "max_bins": [Interval(Integral, 2, MAX_BINS, closed="both")],
        "categorical_features": ["array-like", None],
        "inference": [StrOptions({"bags"}), None],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), None],
        "progress": ["boolean", None],
        "verbose": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_trees: int = 400,
        *,
        correction: str | CorrectionRecipe = "orthogonal",
        outcome_model: Any = "stack",
        treatment_model: Any = None,
        density: Any = "auto",
        basis: str | DoseBasis = "auto",
        n_folds: int = 4,
        n_repeats: int = 1,
        honesty: Literal["tree", "forest", "swap", "none"] = "tree",
        honesty_fraction: float = 0.5,
        sample_fraction: float = 0.7,
        mtry: int | float | Literal["sqrt"] | None = None,
        kernel: str | Kernel = "epanechnikov",
        average_bandwidth: str | float = "leave_one_out",
        doses: Any = None,
        baseline: Any = None,
        effect_features: Sequence[Any] | None = None,
        controls: Sequence[Any] | None = None,
        density_features: Sequence[Any] | None = None,
        max_bins: int = 64,
        categorical_features: Sequence[Any] | None = None,
        inference: Literal["bags"] | None = None,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        progress: bool | None = None,
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.correction = correction
        self.outcome_model = outcome_model
        self.treatment_model = treatment_model
        self.density = density
        self.basis = basis
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.honesty = honesty
        self.honesty_fraction = honesty_fraction
        self.sample_fraction = sample_fraction
        self.mtry = mtry
        self.kernel = kernel
        self.average_bandwidth = average_bandwidth
        self.doses = doses
        self.baseline = baseline
        self.effect_features = effect_features
        self.controls = controls
        self.density_features = density_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.inference = inference
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.progress = progress
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The generalized causal forest as its paper prints it (Algorithm 1), to compare with.

        One honest split of the sample, nuisances and trees on the first part without
        cross-fitting, each tree on a bootstrap sample of it, kernel averages of the second part's
        outcomes in the leaves. Where the paper gives no value a plain one is taken
        (docs/paper-mode.md); the section "What paper() does otherwise than printed" of
        docs/paper.md lists what remains different.

        Parameters
        ----------
        **overrides
            Parameters of the forest in place of the paper's: ``honesty_fraction`` (alpha),
            ``n_trees`` (B), ``mtry``, ``kernel``, ``outcome_model``, ``density``, …; and fields of
            the correction `doseforest.corrections.Paper`: ``leaf_size``, ``min_info_gain``,
            ``zeta``, ``distance`` (D: "l1", "l2", "linf"), ``criterion``, ``bandwidth``.

        Examples
        --------
        >>> forest = GeneralizedCausalForest.paper(distance="l1", random_state=0)
        >>> forest.correction.name, forest.correction.distance, forest.kernel
        ('paper', 'l1', 'gaussian')
        """
        from doseforest.estimator.corrections.paper_recipe import PAPER, PAPER_PARAMETERS

        names = {field.name for field in fields(PAPER)} & overrides.keys()
        recipe = replace(PAPER, **{name: overrides.pop(name) for name in names})
        return cls(**{**PAPER_PARAMETERS, "correction": recipe, **overrides})

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        treatment: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the outcome model, then grow what corrects it.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            numpy, pandas or polars; NaN and null are missing values. Text and categorical columns
            of a frame, and the columns of ``categorical_features``, are categories: forests split
            them by sets, nuisances and regressors that you pass see numbers in their place.
        y : array of shape (n_rows,)
            Outcomes; zeros and ones are modelled by likelihood and curves kept to [0, 1].
        treatment : array of shape (n_rows,) or (n_rows, n_components)
            Observed doses; up to three components, as two discounts, or an arm and its dose.
        sample_weight : array of shape (n_rows,), optional
            A row of weight 0 is as good as absent.
        groups : array of shape (n_rows,), optional
            Rows of a group share a fold and enter a tree together.

        Returns
        -------
        GeneralizedCausalForest
            The same object, fitted.
        """
        # What fits is loaded with the first fit, not where a fitted forest answers.
        from doseforest.estimator import unit_support
        from doseforest.estimator.bags.growing_bags import check_bags, grow_bags
        from doseforest.estimator.early_checks import check_given, check_plan, warn_of_few_trees
        from doseforest.estimator.fit_parts import fit_parts, n_steps
        from doseforest.estimator.fitted import Fitted
        from doseforest.estimator.grid_and_baseline import (
            choose_forest_baseline,
            choose_grid,
            correction_grid,
        )
        from doseforest.estimator.planned_fit import plan_fit
        from doseforest.estimator.trained_parts import mean_weights, reports
        from doseforest.estimator.training_rows import FeatureRoles, check_training
        from doseforest.nuisance.outcome.cross_fitted_outcome import is_binary

        self._validate_params()
        check_given(treatment, "fit")
        roles = FeatureRoles(self.effect_features, self.controls, self.density_features)
        rows = check_training(
            X,
            y,
            treatment,
            sample_weight=sample_weight,
            groups=groups,
            roles=roles,
            categorical_features=self.categorical_features,
        )
        if has_levels(rows.dose, rows.weights):
            levels, shares = distinct_doses(rows.dose, rows.weights)
            unit_support.warn_of_rare_levels(levels, shares * rows.n_rows)
        support = observed_support(rows.dose, rows.weights)
        check_plan(rows, self)
        baseline = choose_forest_baseline(rows, self.baseline, self.kernel)
        grid = choose_grid(rows, self.doses, baseline)
        plan = plan_fit(self, rows, correction_grid(rows, grid, baseline), baseline)
        check_bags(rows, self, plan)
        warn_of_few_trees(rows, self, plan)
        with (
            warnings.catch_warnings(),
            ProgressBar(n_steps(plan), "fitting", "step", self.progress) as bar,
        ):
            warnings.simplefilter("ignore", UnseenRowsWarning)  # said once, for all forests
            parts = fit_parts(rows, plan.telling(bar.advance))
            bags = None if self.inference is None else grow_bags(parts[0], plan)
        with plan.stopwatch("overlap"):
            overlap, grounds = unit_support.fit_overlap(rows, plan)
            seen = rows.treatment_features
            shares = unit_support.supported_shares(
                overlap, seen, grid.values, grounds, rows.weights
            )
            unit_support.warn_of_unsupported(grid, shares)
        common: dict[str, Any] = {
            "n_features": rows.X.shape[1],
            "feature_names": rows.names,
            "categories": rows.categories,
            "effect_columns": rows.effect_columns,
            "doses": grid.values,
            "baseline": baseline.element,
            "support": support,
            "bounded": is_binary(rows.y, rows.weights),
            "component_levels": basis_levels(plan.basis, rows.dose.n_components),
            "n_jobs": self.n_jobs,
        }
        self.model_ = EffectForest(tuple(part.corrected for part in parts), bags=bags, **common)
        alone = (CorrectedOutcome(part.outcome.full, NoCorrection()) for part in parts)
        self.outcome_model_ = EffectForest(tuple(alone), **common)
        self.outcome_weights_ = mean_weights(parts)
        self.rounds_ = reports(parts)
        self.treatment_means_ = parts[0].fitted.treatment_means
        self.doses_, self.support_ = grid.plain, support
        self.baseline_ = baseline.table if grid.joint else baseline.element
        self.seconds_ = plan.stopwatch.seconds
        self.n_features_in_ = rows.X.shape[1]
        if rows.names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        labels = dose_labels(treatment, rows.dose), series_label(y, "outcome")
        self._kept = Fitted(parts, plan, self.model_, overlap, grounds, labels)
        if self.verbose:
            print(plan.stopwatch.report())
        return self

    def supported(self, X: Any, doses: Any = None) -> NDArray[np.bool_]:
        """Whether each unit could well have had each dose, shape (n_units, n_doses).

        Where it could not, its curve is an extrapolation by the outcome model. A dose counts as
        supported where its estimated density given the unit's covariates is at least 5 % of that
        at the unit's likeliest dose.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        doses : array of shape (n_doses,) or (n_units, n_doses), optional
            A grid for all units, or doses for each; by default the forest's grid.

        Returns
        -------
        array of bool of shape (n_units, n_doses)
            True where the unit could have had the dose.
        """
        check_is_fitted(self)
        table = self.model_.checked_table(X)
        given = self.model_.doses if doses is None else doses
        asked = dose_table(given, table.n_rows, n_components=self.n_components)
        apart = each_its_own(given, self.n_components)
        shown = check_doses(asked if apart else asked[0], self.model_.support).values
        out = np.empty(asked.shape, bool)
        for first, block in table.blocks():
            rows = slice(first, first + len(block))
            out[rows] = self._kept.supported(block, shown[rows] if apart else shown)
        framed: NDArray[np.bool_] = as_frame(out, shown, X, self._output)
        return framed

    def average_dose_response(
        self, doses: Any = None, *, bias_correction: bool = False
    ) -> AverageDoseResponse:
        """Average outcome of the training population at each dose: `forest.average.dose_response`.

        Parameters
        ----------
        doses : array of shape (n_doses,), optional
            By default the forest's grid.
        bias_correction : bool, default=False
            Make the correction by residuals in full. Set it for intervals that cover whatever the
            outcome model missed; values are noisier.

        Returns
        -------
        AverageDoseResponse
            Values with standard errors, ``interval()``, ``band()`` and ``elasticity()``.
        """
        return self.average.dose_response(doses, bias_correction=bias_correction)

    def average_effect(
        self, dose: Any, baseline: Any = None, *, bias_correction: bool = False
    ) -> Estimate:
        """Average effect of a dose against the baseline: `forest.average.effect`.

        Parameters
        ----------
        dose : float or array of shape (n_components,)
            The dose.
        baseline : float or array of shape (n_components,), optional
            What it is compared with; by default the forest's baseline.
        bias_correction : bool, default=False
            Take the smoothing bias of the curve away. Set it where the curve bends within a
            bandwidth; standard errors grow.

        Returns
        -------
        Estimate
            The effect with its standard error, clustered by groups.
        """
        return self.average.effect(dose, baseline, bias_correction=bias_correction)

    def overlap_report(self, doses: Any = None, *, weak_below: float = 0.1) -> OverlapReport:
        """Whether the data can answer: who could have had which dose, weights, balance.

        Parameters
        ----------
        doses : array of shape (n_doses,) or (n_doses, n_components), optional
            By default the forest's grid and the point masses of the dose.
        weak_below : float, default=0.1
            A unit has weak positivity where the variance of its dose given its covariates is
            below this share of the variance of all doses. Of several components each is compared
            given those before it; the dose of an arm against the doses of that arm.

        Returns
        -------
        OverlapReport
            ``print(report)``, ``report.plot()``, ``report.messages``: what is wrong and the cure.

        Notes
        -----
        Densities are those of the treatment weights, out of fold, where these come from a density;
        otherwise, and for support and positivity, those of the location-scale fit to all rows.
        Weights are chosen at the first call of an average, or here.
        """
        report: OverlapReport = late("doseforest.report.overlap.overlap_report:report_overlap")(
            self._fitted, doses, weak_below=weak_below
        )
        return report

    def summary(self) -> ModelSummary:
        """What was fitted, on one screen: data, models, effects, overlap, time.

        Returns
        -------
        ModelSummary
            Prints as text.
        """
        check_is_fitted(self)
        summary: ModelSummary = late("doseforest.report.model_summary:summarise")(self)
        return summary

    def distill(
        self, n_trees: int = 200, min_node_size: int = 5, *, verbose: bool = True
    ) -> DistilledForest:
        """One compact forest grown on the fitted curves, for serving; prints what it costs.

        Parameters
        ----------
        n_trees : int, default=200
            Trees of the compact forest. More lose less, and answer more slowly.
        min_node_size : int, default=5
            Smallest number of rows that grow a leaf. Lower loses less, and makes larger files.
        verbose : bool, default=True
            Print the loss: the root mean square difference of effects on the grid, out of bag.

        Returns
        -------
        DistilledForest
            Answers on the grid of doses, linear between them.
        """
        rows, plan = self._fitted.rows, self._fitted.plan
        small: DistilledForest = late("doseforest.estimator.distilling:distill")(
            self.model_,
            rows.X,
            Doses(plan.grid),
            weights=rows.weights,
            n_trees=n_trees,
            min_node_size=min_node_size,
            seed=plan.seed,
            n_jobs=self.n_jobs,
        )
        if verbose:
            print(
                f"The distilled forest's effects differ by {small.error:.4g} (root mean square, "
                f"out of bag) from effects with a standard deviation of {small.spread:.4g}."
            )
        return small

    def score(
        self,
        X: Any,
        y: Any,
        *,
        treatment: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> float:
        """Minus the R-risk of the curves on held-out rows: how well they bend, not their level.

        The yardstick is fitted on these rows alone and is the same for every model, see
        `doseforest.evaluation.effect_risk`. Doses beyond those of the training rows are taken for
        the nearest of them. Scores of other rows cannot be compared: the noise of the outcomes is
        in them.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows that the forest has not seen.
        y : array of shape (n_rows,)
            Their outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components)
            Their doses.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows; by default 1 each.
        groups : array of shape (n_rows,), optional
            Groups, which share a fold of the yardstick.

        Returns
        -------
        float
            Minus the R-risk; higher is better.
        """
        from doseforest.estimator.early_checks import check_given

        check_is_fitted(self)
        check_given(treatment, "score")
        risk: EffectRisk = late("doseforest.evaluation.risks:effect_risk")(
            self,
            X,
            y,
            treatment,
            sample_weight=sample_weight,
            groups=groups,
            categorical_features=self.categorical_features,
            n_jobs=self.n_jobs,
        )
        return -risk.value

    def save(self, path: str | Path) -> None:
        """Write what answers for new units to one file, which `doseforest.load_forest` reads.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        check_is_fitted(self)
        self.model_.save(path)

    @property
    def _model(self) -> EffectForest:
        if not hasattr(self, "model_"):
            check_is_fitted(self)  # says what to do
        model: EffectForest = self.model_
        return model if self._output == "default" else replace(model, output=self._output)

    @property
    def _fitted(self) -> Fitted:
        check_is_fitted(self)
        return self._kept

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep` also the fields of the correction, as ``correction__n_rounds``.

        Parameters
        ----------
        deep : bool, default=True
            Whether the fields of the correction are among them.

        Returns
        -------
        dict
            Values by name.
        """
        own: dict[str, Any] = super().get_params(deep)
        recipe: Any = self.correction
        if isinstance(recipe, str):
            recipe = late(_CORRECTIONS).get(recipe)
        if deep and is_dataclass(recipe):
            own |= {INSIDE + field.name: getattr(recipe, field.name) for field in fields(recipe)}
        return own

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``correction__n_rounds=1`` sets a field of the correction.

        Parameters
        ----------
        **params
            Values by name, see `get_params`.

        Returns
        -------
        GeneralizedCausalForest
            The forest itself.
        """
        super().set_params(**{name: own for name, own in params.items() if INSIDE not in name})
        changed = {name.removeprefix(INSIDE): own for name, own in params.items() if INSIDE in name}
        if changed:
            recipe: Any = late(_RECIPE_OF)(self.correction)
            names = [own.name for own in fields(recipe)]
            for name in changed:
                if name not in names:
                    raise ValueError(
                        f"The 'correction' parameter of {type(self).__name__} must have the field "
                        f"that is set, one of {names}. Got {name!r} instead."
                    )
            self.correction = replace(recipe, **changed)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
