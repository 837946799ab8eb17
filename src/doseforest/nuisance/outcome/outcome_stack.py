"""The outcome model: its members as the user names them, and how the library's own are fitted.

Their cross-fitting is in `cross_fitted_outcome`, their weights in `mixtures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.outcome.boosting import (
    LINEAR_TREES,
    PLAIN_TREES,
    BoostingRecipe,
    fit_boosting,
)
from doseforest.nuisance.outcome.curve_process import CurveProcess
from doseforest.nuisance.outcome.outcome_members import (
    OUTCOME_MEMBERS,
    MemberRecipe,
    OutcomeMember,
)
from doseforest.nuisance.outcome.outcome_models import BoostedCore, CheckedModel, OutcomeModel
from doseforest.nuisance.outcome.process_fit import ProcessRecipe
from doseforest.nuisance.outcome.regressor_model import RegressorMember
from doseforest.nuisance.outcome.spline_core import fit_spline_core
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble

EARLY_TREES = 150  # of the boosted residual, beside all of them
Fitted = TypeVar("Fitted")


@dataclass(frozen=True, slots=True, eq=False)
class MemberRows:
    """What the members of a stack are fitted to, and what several of them are made of."""

    X: FloatArray  # (n_rows, n_features)
    dose: DoseArray  # (n_rows,)
    y: FloatArray  # (n_rows,)
    weights: FloatArray | None
    binary: bool
    powers: bool  # parabolas and cubics in the spline core
    seed: int
    n_threads: int
    fitted: dict[Any, Any] = field(default_factory=dict)

    def once(self, fit: Callable[[MemberRows], Fitted]) -> Fitted:
        """What a function fits to the rows, however many members are made of it."""
        if fit not in self.fitted:
            self.fitted[fit] = fit(self)
        fitted: Fitted = self.fitted[fit]
        return fitted

    def boosted(self, target: FloatArray, recipe: BoostingRecipe, *, binary: bool) -> TreeEnsemble:
        """Trees boosted on a target of the rows."""
        return fit_boosting(
            self.X,
            self.dose,
            target,
            recipe,
            weights=self.weights,
            binary=binary,
            seed=self.seed,
            n_threads=self.n_threads,
        )


@dataclass(frozen=True, slots=True)
class SharingMember:
    """A recipe of the library: a function of rows, which may share work with others."""

    fit_rows: Callable[[MemberRows], OutcomeModel]

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
    ) -> OutcomeModel:
        """Fit the member alone."""
        return self.fit_rows(MemberRows(X, dose, y, weights, binary, True, seed, n_threads))


def _fitted_core(rows: MemberRows) -> SplineCore:
    return fit_spline_core(
        rows.X,
        rows.dose,
        rows.y,
        weights=rows.weights,
        binary=rows.binary,
        powers=rows.powers,
        seed=rows.seed,
    )


def _core(rows: MemberRows) -> SplineCore:
    return rows.once(_fitted_core)


def _residual_trees(rows: MemberRows) -> TreeEnsemble:
    left = rows.y - rows.once(_fitted_core).predict(rows.X, rows.dose, n_threads=rows.n_threads)
    return rows.boosted(left, LINEAR_TREES, binary=False)


def _core_boosted(rows: MemberRows) -> BoostedCore:
    return BoostedCore(rows.once(_fitted_core), rows.once(_residual_trees))


def _core_boosted_early(rows: MemberRows) -> BoostedCore:
    return BoostedCore(rows.once(_fitted_core), rows.once(_residual_trees).shorter(EARLY_TREES))


def _core_process(rows: MemberRows) -> BoostedCore:
    core = rows.once(_fitted_core)
    left = rows.y - core.predict(rows.X, rows.dose, n_threads=rows.n_threads)
    recipe = ProcessRecipe(robust=not rows.binary)  # rare ones are no outliers
    process = recipe.fit(rows.X, rows.dose, left, weights=rows.weights, seed=rows.seed)
    return BoostedCore(core, process)


def _linear_trees(rows: MemberRows) -> TreeEnsemble:
    return rows.boosted(rows.y, LINEAR_TREES, binary=rows.binary)


def _trees(rows: MemberRows) -> TreeEnsemble:
    return rows.boosted(rows.y, PLAIN_TREES, binary=rows.binary)


def _fitted_squared(rows: MemberRows) -> TreeEnsemble:
    # Of noisy binary outcomes: likelihood over-fits sooner than squared error does.
    trees = rows.boosted(rows.y, PLAIN_TREES, binary=False)
    return replace(trees, link="clipped") if rows.binary else trees


def _squared(rows: MemberRows) -> TreeEnsemble:
    return rows.once(_fitted_squared)


def _squared_early(rows: MemberRows) -> TreeEnsemble:
    return _squared(rows).shorter(PLAIN_TREES.n_trees // 2)


def _process(recipe: ProcessRecipe, rows: MemberRows) -> CurveProcess:
    return recipe.fit(
        rows.X, rows.dose, rows.y, weights=rows.weights, binary=rows.binary, seed=rows.seed
    )


CORE = SharingMember(_core)
PROCESS = SharingMember(partial(_process, ProcessRecipe()))
# Not robust: where noise is skewed, the mean is not where most rows are.
PLAIN_PROCESS = SharingMember(partial(_process, ProcessRecipe(rank_share=0.0, robust=False)))
ONE_KERNEL = SharingMember(partial(_process, ProcessRecipe(in_parts=False)))
CORE_BOOSTED_EARLY = SharingMember(_core_boosted_early)
CORE_BOOSTED = SharingMember(_core_boosted)
CORE_PROCESS = SharingMember(_core_process)
LINEAR = SharingMember(_linear_trees)
PLAIN = SharingMember(_trees)
SQUARED_EARLY = SharingMember(_squared_early)
SQUARED = SharingMember(_squared)


@dataclass(frozen=True, slots=True)
class StackFit:
    """Fits the members of a stack; the form that `cross_fit_outcome` wants.

    Attributes
    ----------
    recipes : mapping
        What fits each member.
    for_binary : mapping
        Members that join them where all outcomes are zeros and ones.
    powers : bool
        Whether the spline core has parabolas and cubics.
    """

    recipes: Mapping[str, MemberRecipe]
    for_binary: Mapping[str, MemberRecipe] = field(default_factory=dict)
    powers: bool = True

    def __call__(
        self,
        X: FloatArray,
        dose: DoseArray,
        y: FloatArray,
        *,
        weights: FloatArray | None = None,
        binary: bool = False,
        seed: int = 0,
        n_threads: int = 1,
    ) -> dict[str, OutcomeModel]:
        """Fit every member; those of a binary outcome stay in [0, 1]."""
        rows = MemberRows(X, dose, y, weights, binary, self.powers, seed, n_threads)
        recipes = {**self.recipes, **(self.for_binary if binary else {})}
        return {name: _fit_member(name, recipe, rows) for name, recipe in recipes.items()}


def _fit_member(name: str, recipe: MemberRecipe, rows: MemberRows) -> OutcomeModel:
    if isinstance(recipe, SharingMember):
        return recipe.fit_rows(rows)
    model = recipe.fit(
        rows.X,
        rows.dose,
        rows.y,
        weights=rows.weights,
        binary=rows.binary,
        seed=rows.seed,
        n_threads=rows.n_threads,
    )
    return CheckedModel(name, model, rows.binary, rows.X.shape[1], Doses.of(rows.dose).n_components)


def member_fit(outcome_model: Any, *, n_rows: int | None = None, powers: bool = True) -> StackFit:
    """What fits the members that the user has named or given.

    Parameters
    ----------
    outcome_model : str, regressor, recipe, or several of them
        "stack" or a name of `OUTCOME_MEMBERS`; a regressor of scikit-learn; a `MemberRecipe`; a
        sequence of these; or a mapping from the users' own names to them.
    n_rows : int, optional
        Number of rows of the fit; "stack" leaves out members that are not for so many or so few.
    powers : bool, default=True
        Whether the spline core has parabolas and cubics.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> list(member_fit(["core", "trees", LinearRegression()]).recipes)
    ['core', 'trees', 'LinearRegression']
    >>> list(member_fit("stack", n_rows=50_000).recipes)
    ['core', 'core, boosted early', 'core, boosted', 'linear trees', 'trees']
    """
    recipes: dict[str, MemberRecipe] = {}
    for_binary: dict[str, MemberRecipe] = {}
    for name, given in _named(outcome_model):
        if isinstance(given, str) and given == "stack":
            recipes |= {line: member.made() for line, member in _lines("default", n_rows)}
            for_binary |= {line: member.made() for line, member in _lines("binary", n_rows)}
        else:
            recipes[name] = _recipe(given)
    if not recipes:
        raise ValueError(
            "The 'outcome_model' parameter must have a member at least. "
            f"Got {outcome_model!r} instead."
        )
    return StackFit(recipes, for_binary, powers)


def _lines(among: str, n_rows: int | None) -> list[tuple[str, OutcomeMember]]:
    return [
        (name, member)
        for name, member in OUTCOME_MEMBERS.items()
        if member.among == among
        and (n_rows is None or member.fewest_rows <= n_rows <= member.most_rows)
    ]


def _named(outcome_model: Any) -> list[tuple[str, Any]]:
    """Members with their names; objects go by their classes, numbered from the second on."""
    if isinstance(outcome_model, Mapping):
        return [(str(name), given) for name, given in outcome_model.items()]
    if isinstance(outcome_model, str):
        return [(outcome_model, outcome_model)]
    if not isinstance(outcome_model, list | tuple):
        return [("regressor" if hasattr(outcome_model, "predict") else "model", outcome_model)]
    seen: Counter[str] = Counter()
    named = []
    for given in outcome_model:
        name = given if isinstance(given, str) else type(given).__name__
        seen[name] += 1
        named.append((f"{name} {seen[name]}" if seen[name] > 1 else name, given))
    return named


def _recipe(given: Any) -> MemberRecipe:
    if isinstance(given, str) and given in OUTCOME_MEMBERS:
        named: MemberRecipe = OUTCOME_MEMBERS[given].made()
        return named
    if isinstance(given, str) or not hasattr(given, "fit"):
        raise ValueError(
            "The 'outcome_model' parameter must be made of 'stack', names of members "
            f"({sorted(OUTCOME_MEMBERS)}), regressors and objects with 'fit'. "
            f"Got {given!r} instead."
        )
    recipe: MemberRecipe = RegressorMember(given) if hasattr(given, "predict") else given
    return recipe
