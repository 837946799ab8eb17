"""CurveForest: an honest forest whose response is a curve, with scikit-learn's manners."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from doseforest.base.dtypes import FloatArray
from doseforest.base.machine import thread_count
from doseforest.data.binning import MAX_BINS
from doseforest.data.feature_table import BlockSource, categories_of
from doseforest.data.registered_names import NameIn
from doseforest.data.sampling import HONESTY_CODES, Honesty
from doseforest.engine.forest import Forest
from doseforest.engine.grow_forest import grow_forest, growth_memory
from doseforest.engine.growth.binned_rows import bin_rows
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.engine.growth.growth_inputs import GrowthInputs, check_inputs
from doseforest.engine.leaves.leaf_curves import LeafCurve, MeanCurve
from doseforest.engine.look_inside.forest_views import ForestViews
from doseforest.engine.splits.distances import CURVE_DISTANCES, DistanceFunction
from doseforest.engine.splits.guards import TreatmentGuard
from doseforest.engine.splits.positivity import Positivity
from doseforest.engine.splits.split_registry import SPLIT_STATISTICS, split_recipe
from doseforest.engine.splits.split_statistics import SplitRecipe


class CurveForest(ForestViews, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """An honest forest whose response is a curve: a value for every dose, predicted for each row.

    Trees split where the mean curves of the two children differ most, by a distance over all doses,
    so that one forest serves the whole curve. In an honest tree some rows choose the splits and
    others fill the leaves. `GeneralizedCausalForest` is made of such forests; use this class for
    responses that are curves already, such as doubly robust pseudo-outcomes.

    Parameters
    ----------
    n_trees : int, default=500
        Number of trees. More trees lower the random part of predictions; beyond some hundred little
        changes. Raise it when two seeds give curves that differ by more than matters, or when
        `predict_oob` warns of rows that every tree has seen. Time of growth, time of predictions,
        memory and the saved file grow in proportion.
    distance : str or callable, default="l2"
        Distance between the mean curves of two children, which splits maximise: "l1", "l2" and
        "linf" as published, or "l1_squared", "l2_norm" and "linf_squared". "l2" weighs all doses;
        take "linf" where curves differ at few doses only, and "l1" where curves are heavy-tailed.
        A function of (left, right, quadrature) works too, is called from Python for every node, and
        costs many times the time of a compiled distance.
    statistic : SplitRecipe or str, optional
        What children are compared by, and how the columns of ``y`` are read; a name is one of
        `SPLIT_STATISTICS`: "means", "mean_slopes", "ratios", "ratio_slopes". By default
        `SplitByMeans`: mean curves. Take `SplitByMeanSlopes` where effects matter more than levels,
        `SplitByRatios` or `SplitByRatioSlopes` where ``y`` holds numerators and denominators, and
        `SplitByScores` where it holds the moments of a regression.
    guard : TreatmentGuard, optional
        What the observed doses must be like in both children of a split; needs ``treatment`` in
        ``fit``. Of the best splits of up to five features the first that passes is taken. Set it
        where leaves would otherwise hold a single dose. Each node then sums more numbers, and trees
        are smaller. By default no split is refused.
    min_node_size : int, default=20
        Smallest number of rows that grow a leaf. Lower it where there are many rows and the curves
        change quickly with the features; raise it where outcomes are noisy. It is the first
        parameter to tune: small leaves cost variance, time and memory, large ones cost detail.
    max_depth : int, optional
        Greatest number of splits between the root and a leaf. By default ``min_node_size`` alone
        ends growth. Set it to 2 or 3 for trees that people read; it costs detail.
    min_info_gain : float, default=0.0
        A split must gain more than this, in the unit of the distance times rows. Raise it to stop
        splits on noise; what is a large gain depends on the data, see the gains of `tree_text`.
    min_child_fraction : float, default=0.0
        Smallest child of a split, as a share of its parent's rows, at most 0.5. Raise it to about
        0.05 for balanced trees, which inference assumes; splits that cut off a few extreme rows are
        then lost.
    mtry : int, float or "sqrt", optional
        Features that a split may use: a number, a share of all, or the root of their number. By
        default all of them. Lower it to make trees more different from each other and faster to
        grow; with few features that matter, low values miss them in most nodes.
    mtry_scope : {"node", "tree"}, default="node"
        Draw the features anew at every node, or once for each tree, as the GCF paper does. With
        "tree" the number of trees must be large enough for every set of features to occur.
    sampling : {"subsample", "bootstrap"}, default="subsample"
        Trees see a share of the rows without repeats, or as many rows as there are with repeats.
        Keep "subsample": intervals and honesty are made for it. "bootstrap" reproduces other
        forests.
    sample_fraction : float, default=0.5
        Share of the rows that a subsampled tree sees. Raise it for deeper trees and less bias, at
        the cost of trees that resemble each other, of more rows that every tree has seen, and of
        time. At most 0.5 with ``bag_size`` above 1.
    bag_size : int, default=1
        Number of trees in turn that draw from the same half of the rows, a little bag. 2 or more
        make it possible to tell the variance of sampling from that of the trees, for intervals of
        units; that takes more trees for the same precision.
    honesty : {"tree", "forest", "none"}, default="tree"
        Which rows grow trees and which fill the leaves. "tree" divides the rows of each tree,
        "forest" divides all rows once, and "none" uses every row for both. Honest leaves do not
        overfit the splits, at the cost of the rows they leave out; take "none" for other data than
        pseudo-outcomes where only the prediction error counts.
    honesty_fraction : float, default=0.5
        Share of a tree's rows that grow it; the others fill the leaves. Raise it for finer trees,
        lower it for steadier leaves.
    zeta : float, default=0.0
        Weight of the positivity term, which rewards splits whose children keep the treatment
        varied; needs ``spread`` in ``fit``. Raise it where some covariates nearly fix the dose; the
        curves then differ less between leaves.
    positivity : {"conditional", "mixture"}, default="conditional"
        How the positivity term measures variation: by the mean conditional variance of the dose, in
        which case ``zeta`` has no unit, or by the variance of the mixture of conditional
        distributions, the published reading, in which case ``zeta`` is in units of the gain per
        squared dose.
    leaf_curve : LeafCurve, optional
        How the averaged channels of leaves become a curve. By default `MeanCurve`: they are the
        curve. `RatioCurve` divides sums, `RidgeMoments` solves for coefficients.
    max_bins : int, default=64
        Bins of a feature, at most 255; missing values have one more. Raise it where the place of a
        split matters to the last percent; a split search takes time in proportion to the bins.
        Categories have a bin each; beyond 1,023 the rarest share one.
    categorical_features : list of names or places, optional
        Columns of whole numbers that are codes of categories. Columns of text, and the categorical
        types of pandas and polars, are categorical by themselves. Splits on categories are by sets,
        which costs more time than splits on numbers.
    n_jobs : int, optional
        Number of threads; -1 for all cores. By default every core that the process may use. It
        never changes the result.
    memory_limit : int, optional
        Bytes that growth may take; by default what the machine or its container has left. Lower it
        on a shared machine: fewer trees grow at once, which takes longer and changes no result.
    progress : bool, optional
        Show a progress bar; by default on a terminal, for work over two seconds.
    random_state : int, RandomState or None, optional
        Seed of the draws of rows and features. Give an int for the same forest again, on any number
        of threads; by default every fit draws a new seed.

    Attributes
    ----------
    forest_ : Forest
        The finished forest: trees, leaves, and what is needed to predict.
    seconds_ : dict
        Seconds of growth and of filling the leaves.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : array of str of shape (n_features,)
        Names of the features; only where X had names.
    feature_importances_ : array of shape (n_features,)
        Share of each feature in the gains; `feature_importance` has options.

    Examples
    --------
    >>> import numpy as np
    >>> from doseforest import CurveForest
    >>> rng = np.random.default_rng(0)
    >>> doses = np.array([0.0, 0.5, 1.0])
    >>> x = rng.uniform(-1, 1, size=(2000, 3))
    >>> curves = np.where(x[:, :1] > 0, 2.0, 1.0) * doses
    >>> forest = CurveForest(n_trees=50, random_state=0).fit(x, curves, doses=doses)
    >>> forest.predict([[0.5, 0, 0], [-0.5, 0, 0]]).round(1)
    array([[0. , 1. , 2. ],
           [0. , 0.5, 1. ]])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "n_trees": [Interval(Integral, 1, 2**31, closed="left")],
        "distance": [NameIn(CURVE_DISTANCES), callable],
        "statistic": [
            NameIn(SPLIT_STATISTICS),
            HasMethods(["n_doses", "point_weights", "lay_out"]),
            None,
        ],
        "guard": [HasMethods(["n_channels", "fit"]), None],
        "min_node_size": [Interval(Integral, 1, 2**31, closed="left")],
        "max_depth": [Interval(Integral, 0, 2**31, closed="left"), None],
        "min_info_gain": [Interval(Real, 0, None, closed="left")],
        "min_child_fraction": [Interval(Real, 0, 0.5, closed="both")],
        "mtry": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"sqrt"}),
            None,
        ],
        "mtry_scope": [StrOptions({"node", "tree"})],
        "sampling": [StrOptions({"subsample", "bootstrap"})],
        "sample_fraction": [Interval(Real, 0, 1, closed="right")],
        "bag_size": [Interval(Integral, 1, 2**31, closed="left")],
        "honesty": [StrOptions(set(HONESTY_CODES))],
        "honesty_fraction": [Interval(Real, 0, 1, closed="neither")],
        "zeta": [Interval(Real, 0, None, closed="left")],
        "positivity": [StrOptions({"conditional", "mixture"})],
        "leaf_curve": [HasMethods(["check_width", "solve", "to_json"]), None],
        "max_bins": [Interval(Integral, 2, MAX_BINS, closed="both")],
        "categorical_features": ["array-like", None],
        "n_jobs": [Interval(Integral, -1024, 1024, closed="both"), None],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), None],
        "progress": ["boolean", None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_trees: int = 500,
        *,
        distance: str | DistanceFunction = "l2",
        statistic: SplitRecipe | str | None = None,
        guard: TreatmentGuard | None = None,
        min_node_size: int = 20,
        max_depth: int | None = None,
        min_info_gain: float = 0.0,
        min_child_fraction: float = 0.0,
        mtry: int | float | Literal["sqrt"] | None = None,
        mtry_scope: Literal["node", "tree"] = "node",
        sampling: Literal["subsample", "bootstrap"] = "subsample",
        sample_fraction: float = 0.5,
        bag_size: int = 1,
        honesty: Honesty = "tree",
        honesty_fraction: float = 0.5,
        zeta: float = 0.0,
        positivity: Positivity = "conditional",
        leaf_curve: LeafCurve | None = None,
        max_bins: int = 64,
        categorical_features: Sequence[str | int] | None = None,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.distance = distance
        self.statistic = statistic
        self.guard = guard
        self.min_node_size = min_node_size
        self.max_depth = max_depth
        self.min_info_gain = min_info_gain
        self.min_child_fraction = min_child_fraction
        self.mtry = mtry
        self.mtry_scope = mtry_scope
        self.sampling = sampling
        self.sample_fraction = sample_fraction
        self.bag_size = bag_size
        self.honesty = honesty
        self.honesty_fraction = honesty_fraction
        self.zeta = zeta
        self.positivity = positivity
        self.leaf_curve = leaf_curve
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.progress = progress
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        doses: Any = None,
        quadrature: Any = None,
        leaf_channels: Any = None,
        spread: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        row_ids: Any = None,
        grows: Any = None,
        treatment: Any = None,
    ) -> CurveForest:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features: a table of numpy, pandas or polars. NaN and null are missing values, which
            splits send to the side where they gain more. Categories that a node has not seen go
            with its missing values.
        y : array of shape (n_rows, n_doses) or (n_rows,)
            The curve of each row on a grid of doses; trees split by it. With another ``statistic``,
            the columns that it reads.
        doses : array of shape (n_doses,), optional
            The grid, ascending; points of a curve then count by the trapezoid rule. Needed by
            statistics of slopes. By default every point counts 1.
        quadrature : array of shape (n_doses,), optional
            Weights of the points of a curve, in place of those of ``doses``. Raise the weight of
            doses at which differences matter more.
        leaf_channels : array of shape (n_rows, n_channels), optional
            What leaves average, for ``leaf_curve``; by default the curves.
        spread : array of shape (n_rows,) or (n_rows, 2), optional
            Conditional variance of the treatment over its variance, or with
            ``positivity="mixture"`` its first two conditional moments; for ``zeta`` above 0.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows, scaled to mean 1; by default 1 each. A weight below 1e-4 of the
            largest counts with fewer than three digits, one below 1e-7 not at all.
        groups : array of shape (n_rows,), optional
            Labels of groups, such as customers with several rows. The rows of a group enter a tree,
            and a half of it, together. By default every row is a group.
        row_ids : array of distinct integers of shape (n_rows,), optional
            Names of the rows, by which they are drawn; with them the order of the rows does not
            matter. By default their places.
        grows : array of bool of shape (n_rows,), optional
            Rows that may grow trees; the others fill the leaves. Needs ``honesty="none"``, for it
            takes the place of a drawn half.
        treatment : array of shape (n_rows,), optional
            Observed doses, for a ``guard``.

        Returns
        -------
        CurveForest
            The same object, fitted.
        """
        self._validate_params()
        self._check_instances()
        settings = self._settings()
        recipe = split_recipe(self.statistic)
        inputs = check_inputs(
            X,
            y,
            doses=doses,
            quadrature=quadrature,
            leaf_channels=leaf_channels,
            spread=spread,
            sample_weight=sample_weight,
            groups=groups,
            row_ids=row_ids,
            grows=grows,
            treatment=treatment,
            statistic=recipe,
            categorical_features=self.categorical_features,
        )
        settings.features_of_split(inputs.table.n_features)
        self._check_rules(inputs)
        self._check_memory(settings, inputs)
        rows = bin_rows(
            inputs.table,
            max_bins=int(self.max_bins),
            weights=inputs.weights,
            row_ids=inputs.row_ids,
            sampling_ids=inputs.sampling_ids,
            grows=inputs.grows,
            seed=settings.seed,
            n_threads=settings.n_threads,
        )
        self._grown = grow_forest(
            rows,
            inputs.curves,
            settings,
            leaf_channels=inputs.leaf_channels,
            doses=inputs.doses,
            quadrature=inputs.quadrature,
            spread=inputs.spread,
            treatment=inputs.treatment,
        )
        self.seconds_, self.forest_ = self._grown.seconds, self._grown.forest
        self.n_features_in_ = rows.n_features
        if rows.table.names is not None:
            self.feature_names_in_ = np.array(rows.table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self._one_dimensional = np.asarray(y).ndim == 1 and leaf_channels is None
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict the curve of each row.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows with the features of the training table.

        Returns
        -------
        array of shape (n_rows, n_doses), or (n_rows,) where ``y`` had one dimension
            The curves.
        """
        check_is_fitted(self)
        return self._shaped(self.forest_.predict(X, n_jobs=self.n_jobs))

    def predict_oob(self, X: Any) -> FloatArray:
        """Predict the training rows, each by the trees that did not see it.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            The table that was passed to ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows, n_doses), or (n_rows,) where ``y`` had one dimension
            The curves. A row that every tree has seen gets the overall mean, with an
            `UnseenRowsWarning`.
        """
        check_is_fitted(self)
        return self._shaped(self._grown.predict_oob(self._training_table(X)))

    def average_oob(self, X: Any) -> FloatArray:
        """Average the leaf channels of the training rows over the trees that did not see them.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            The table that was passed to ``fit``, in the same order.

        Returns
        -------
        array of shape (n_rows, n_channels)
            The averages, of which ``leaf_curve`` makes curves.
        """
        check_is_fitted(self)
        return self._grown.average_oob(self._training_table(X))

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows with the features of the training table.

        Returns
        -------
        array of int of shape (n_rows, n_trees)
            Numbers of the leaves, counted over the whole forest.
        """
        check_is_fitted(self)
        return self.forest_.apply(X, n_jobs=self.n_jobs)

    def forest_weights(self, X: Any) -> sparse.csr_array:
        """Weights alpha_i(x) that the forest gives to the training rows.

        The averaged leaf channels of a row are its weights times the channels of the training rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows with the features of the training table.

        Returns
        -------
        sparse array of shape (n_rows, n_training_rows)
            The weights; each line adds up to 1.
        """
        check_is_fitted(self)
        return self._grown.forest_weights(X)

    def save(self, path: str | Path) -> None:
        """Write the forest to one file, which `doseforest.load_forest` reads.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        check_is_fitted(self)
        self.forest_.save(path)

    @property
    def _inspected(self) -> Forest:
        check_is_fitted(self)
        return self.forest_

    def _training_table(self, X: Any) -> BlockSource:
        table, n_rows = self.forest_.checked_table(X), self.forest_.n_training_rows
        if table.n_rows != n_rows:
            raise ValueError(
                f"The 'X' parameter must be the training table ({n_rows} rows). "
                f"Got {table.n_rows} rows instead."
            )
        return table

    def _shaped(self, curves: FloatArray) -> FloatArray:
        return curves[:, 0] if self._one_dimensional else curves

    def _settings(self) -> GrowthSettings:
        seed = check_random_state(self.random_state).randint(0, 2**62, dtype=np.int64)
        return GrowthSettings(
            n_trees=int(self.n_trees),
            distance=self.distance,
            statistic=split_recipe(self.statistic),
            guard=self.guard,
            min_node_size=int(self.min_node_size),
            max_depth=None if self.max_depth is None else int(self.max_depth),
            min_info_gain=float(self.min_info_gain),
            min_child_fraction=float(self.min_child_fraction),
            mtry=self.mtry,
            mtry_scope=self.mtry_scope,
            sampling=self.sampling,
            sample_fraction=float(self.sample_fraction),
            bag_size=int(self.bag_size),
            honesty=self.honesty,
            honesty_fraction=float(self.honesty_fraction),
            zeta=float(self.zeta),
            positivity=self.positivity,
            leaf_curve=self.leaf_curve,
            n_threads=thread_count(self.n_jobs),
            memory_limit=None if self.memory_limit is None else int(self.memory_limit),
            progress=self.progress,
            seed=int(seed),
        )

    def _check_memory(self, settings: GrowthSettings, inputs: GrowthInputs) -> None:
        categories = categories_of(inputs.table)
        growth_memory(
            settings,
            n_rows=inputs.n_rows,
            n_features=inputs.table.n_features,
            n_columns=inputs.curves.shape[1],
            n_leaf_channels=inputs.leaf_channels.shape[1],
            n_doses=0 if inputs.doses is None else len(inputs.doses),
            weighted=inputs.weights is not None,
            most_categories=max(map(len, categories.values())) if categories else None,
        )

    def _check_instances(self) -> None:
        for name in ("statistic", "guard", "leaf_curve"):
            given = getattr(self, name)
            if isinstance(given, type):
                raise TypeError(
                    f"The {name!r} parameter of CurveForest must be an instance. "
                    f"Got the class {given.__name__} instead."
                )

    def _check_rules(self, inputs: GrowthInputs) -> None:
        """Check what no single parameter can tell."""
        leaf_curve = MeanCurve() if self.leaf_curve is None else self.leaf_curve
        leaf_curve.check_width(inputs.leaf_channels.shape[1])
        if self.bag_size > 1 and self.sampling == "subsample" and self.sample_fraction > 0.5:
            raise ValueError(
                "The 'sample_fraction' parameter of CurveForest must be at most 0.5 with "
                f"'bag_size' above 1: bags are half-samples. Got {self.sample_fraction} instead."
            )
        if inputs.grows is not None and self.honesty != "none":
            raise ValueError(
                "The 'honesty' parameter of CurveForest must be 'none' when fit is told which rows "
                f"grow. Got {self.honesty!r} instead."
            )
        if inputs.grows is not None and inputs.weights is not None:
            for side, purpose in ((inputs.grows, "grow trees"), (~inputs.grows, "fill leaves")):
                if not inputs.weights[side].any():
                    raise ValueError(
                        f"The 'grows' parameter of fit must leave rows of positive weight to "
                        f"{purpose}. Got none instead."
                    )
        if self.zeta > 0:
            wanted = 2 if self.positivity == "mixture" else 1
            got = 0 if inputs.spread is None else inputs.spread.shape[1]
            if got != wanted:
                raise ValueError(
                    f"The 'spread' parameter of fit must have {wanted} columns when 'zeta' is "
                    f"above 0 and positivity={self.positivity!r}. "
                    f"Got {got if got else 'None'} instead."
                )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = True
        return tags
