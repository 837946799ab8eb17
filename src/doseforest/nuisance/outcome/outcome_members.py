"""The members of the outcome stack: one line each says what fits it and how a file holds it.

Nothing here imports what fits: places are named and looked up when they are needed, so that a file
is read without scikit-learn and LightGBM.

To add a member, a file with two classes and a line::

    class Line:  # the recipe, `MemberRecipe`
        def fit(self, X, dose, y, *, weights=None, binary=False, seed=0, n_threads=1): ...

    class FittedLine:  # what it fits, `MemberModel`
        def curves(self, X, doses): ...
        def to_arrays(self): ...
        @classmethod
        def from_arrays(cls, values, arrays, n_features): ...

    OUTCOME_MEMBERS["line"] = OutcomeMember(Line(), "line", FittedLine)

An object without a line joins the stack too; what it fits is in no file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from doseforest.base.dtypes import Array, DoseArray, FloatArray
from doseforest.base.late import late

HERE = "doseforest.nuisance.outcome"


class MemberModel(Protocol):
    """A fitted member of the outcome stack, as a user may write one."""

    def curves(self, X: FloatArray, doses: DoseArray) -> FloatArray:
        """Mean outcome of each row at each dose, shape (n_rows, n_doses).

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Categories as numbers; NaN is missing.
        doses : array of shape (n_doses,) or (n_rows, n_doses)
            A grid, or each row's own doses.
        """


class StoredModel(MemberModel, Protocol):
    """A fitted member that a file can hold."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Plain values (JSON) and arrays of numbers, by name."""

    @classmethod
    def from_arrays(
        cls, values: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
    ) -> Self:
        """The model again; `ForestFileError` or ValueError where the parts do not fit.

        A file is trusted with nothing: check shapes and ranges before they are used.
        """


class MemberRecipe(Protocol):
    """What fits a member of the outcome stack."""

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
    ) -> MemberModel:
        """Fit to rows; called once without each fold and once with all rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Categories as numbers; NaN is missing.
        dose, y : arrays of shape (n_rows,)
        weights : array of shape (n_rows,), optional
        binary : bool
            Whether all outcomes are zeros and ones; answers are then kept to [0, 1].
        seed : int
            Of all that is drawn.
        n_threads : int
            It must not change a bit of the answers.
        """


@dataclass(frozen=True, slots=True)
class OutcomeMember:
    """A line of `OUTCOME_MEMBERS`.

    Parameters
    ----------
    recipe : MemberRecipe or str
        What fits the member, or its place, "module:name".
    kind : str, optional
        What a file calls the fitted model; members of one class share it.
    model : class or str, optional
        Class of the fitted model, with `to_arrays` and `from_arrays`, or its place: a module that
        imports nothing heavy. Without one a file cannot hold the member.
    among : {"default", "binary", "named"}, default="named"
        Whether the member is one of outcome_model="stack": always, for a binary outcome, or not.
    fewest_rows, most_rows : int
        Numbers of rows between which it is one: what costs more than it earns stays out.
    """

    recipe: Any
    kind: str | None = None
    model: Any = None
    among: Literal["default", "binary", "named"] = "named"
    fewest_rows: int = 0
    most_rows: float = math.inf

    def made(self) -> Any:
        """The recipe, imported if need be."""
        return _placed(self.recipe)


STACK = f"{HERE}.outcome_stack"
CORE = "spline_core", f"{HERE}.spline_model:SplineCore"
BOOSTED = "boosted_core", f"{HERE}.outcome_models:BoostedCore"
TREES = "tree_ensemble", f"{HERE}.tree_ensemble:TreeEnsemble"

PROCESS = "curve_process", f"{HERE}.curve_process:CurveProcess"

MANY = 2_000  # rows: boosting many trees hardly earns its time on fewer beside processes
PROCESS_ROWS = 10_000  # of more, what a process keeps of them says too little

OUTCOME_MEMBERS: dict[str, OutcomeMember] = {
    "core": OutcomeMember(f"{STACK}:CORE", *CORE, "default"),
    "core, boosted early": OutcomeMember(f"{STACK}:CORE_BOOSTED_EARLY", *BOOSTED, "default"),
    "core, boosted": OutcomeMember(f"{STACK}:CORE_BOOSTED", *BOOSTED, "default", MANY),
    "linear trees": OutcomeMember(f"{STACK}:LINEAR", *TREES, "default", MANY),
    "trees": OutcomeMember(f"{STACK}:PLAIN", *TREES, "default"),
    "core, process": OutcomeMember(
        f"{STACK}:CORE_PROCESS", *BOOSTED, "default", most_rows=PROCESS_ROWS
    ),
    "process": OutcomeMember(f"{STACK}:PROCESS", *PROCESS, "default", most_rows=PROCESS_ROWS),
    "process of doses as they are": OutcomeMember(
        f"{STACK}:PLAIN_PROCESS", *PROCESS, "default", most_rows=PROCESS_ROWS
    ),
    "process of one kernel": OutcomeMember(
        f"{STACK}:ONE_KERNEL", *PROCESS, "default", most_rows=PROCESS_ROWS
    ),
    "trees, squared error, early": OutcomeMember(f"{STACK}:SQUARED_EARLY", *TREES, "binary"),
    "trees, squared error": OutcomeMember(f"{STACK}:SQUARED", *TREES, "binary"),
}
AROUND_MEMBERS = {  # kinds of what holds members
    "stack": f"{HERE}.outcome_models:Stack",
    "checked": f"{HERE}.outcome_models:CheckedModel",
}


def model_class(kind: Any) -> Any:
    """Class of a fitted model that a file names; KeyError where no line has it."""
    places = {own.kind: own.model for own in OUTCOME_MEMBERS.values() if own.kind is not None}
    return _placed({**places, **AROUND_MEMBERS}[kind])


def kind_of(model: Any) -> str | None:
    """What a file calls a fitted model; None where no line has its class."""
    for kind in [*AROUND_MEMBERS, *(own.kind for own in OUTCOME_MEMBERS.values())]:
        if kind is not None and model_class(kind) is type(model):
            return kind
    return None


def _placed(given: Any) -> Any:
    return late(given) if isinstance(given, str) else given
