"""Outcome models as JSON and named arrays, for a file that holds numbers and no code.

A model is written as a list of descriptions, parts before what is made of them, so a description
refers only to earlier ones. Parts and arrays that are shared are written once. On the way in a file
is trusted with nothing: what does not fit is refused before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from doseforest.base.container import ForestFileError
from doseforest.base.dtypes import MAX_FEATURES, Array
from doseforest.doses.bases.dose_basis import basis_components
from doseforest.nuisance.encoding.stored_encoders import read_encoder, store_encoder
from doseforest.nuisance.outcome.encoded_models import EncodedModel
from doseforest.nuisance.outcome.outcome_models import BoostedCore, OutcomeModel, Stack
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.nuisance.outcome.stored_outcome_parts import (
    OWNER,
    checked_count,
    core_from_arrays,
    core_to_arrays,
    require,
    trees_from_arrays,
    trees_to_arrays,
)
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble


def store_outcome_model(
    model: OutcomeModel, prefix: str = "outcome"
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a model apart into metadata, which is plain JSON, and named arrays.

    Parameters
    ----------
    model : Stack, SplineCore, TreeEnsemble, BoostedCore, or one of them behind an encoder
    prefix : str, default="outcome"
        Of the arrays' names, to keep them apart from others in one file.

    Raises
    ------
    TypeError
        The model or a member is of a foreign type: a file holds numbers, not code.

    Examples
    --------
    >>> import numpy as np
    >>> from doseforest.nuisance.outcome.boosting import BoostingRecipe, fit_boosting
    >>> x, t = np.arange(60.0)[:, None], np.tile([0.0, 1.0], 30)
    >>> trees = fit_boosting(x, t, x[:, 0] * t, BoostingRecipe(9, 4, linear=True))
    >>> metadata, arrays = store_outcome_model(trees)
    >>> metadata["n_features"], sorted(arrays)[:2]
    (1, ['outcome/0/leaf_constants', 'outcome/0/leaf_slopes'])
    >>> again = read_outcome_model(metadata, arrays)
    >>> np.array_equal(again.predict(x, t), trees.predict(x, t))
    True
    """
    if isinstance(model, EncodedModel):
        encoder, numbers = store_encoder(model.encoder, prefix)
        inner, arrays = store_outcome_model(model.model, prefix)
        described = {"n_features": model.encoder.n_features, "encoder": encoder, "encoded": inner}
        return described, numbers | arrays
    shelf = _Shelf(prefix)
    shelf.put(model)
    if len(shelf.n_features) != 1:
        raise ValueError(
            "The members of an outcome model must have the same number of covariates. "
            f"Got {sorted(shelf.n_features)} instead."
        )
    return {"n_features": shelf.n_features.pop(), "models": shelf.descriptions}, shelf.arrays


def read_outcome_model(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str = "outcome"
) -> OutcomeModel:
    """Put a model together that `store_outcome_model` took apart.

    Raises
    ------
    ForestFileError
        The metadata or an array is damaged, or a newer version wrote them.
    """
    try:
        n_features = checked_count(metadata, "n_features", 0, MAX_FEATURES)
        if "encoder" not in metadata:
            return _read_numeric(metadata, arrays, n_features)
        encoder = read_encoder(metadata["encoder"], arrays, prefix, n_features)
        inner = metadata["encoded"]
        n_columns = checked_count(inner, "n_features", encoder.n_columns, encoder.n_columns)
        return EncodedModel(encoder, _read_numeric(inner, arrays, n_columns))
    except ForestFileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ForestFileError(
            f"the description of the {OWNER} is not valid ({type(error).__name__}: {error}); "
            f"the file is damaged, save the {OWNER} again"
        ) from error


def _read_numeric(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
) -> OutcomeModel:
    """Read a model of numbers, without an encoder."""
    models: list[OutcomeModel] = []
    for description in metadata["models"]:
        models.append(_read(description, models, arrays, n_features))
    require(len(models) > 0, "is empty")
    return models[-1]


def outcome_components(model: OutcomeModel) -> set[int]:
    """Numbers of components of the doses that the parts of a model are of; one if they fit."""
    if isinstance(model, Stack):
        return set().union(*map(outcome_components, model.members.values()))
    if isinstance(model, EncodedModel):
        return outcome_components(model.model)
    if isinstance(model, BoostedCore):
        return outcome_components(model.core) | outcome_components(model.trees)
    if isinstance(model, SplineCore):
        return {basis_components(model.basis)}
    return {model.n_components} if isinstance(model, TreeEnsemble) else set()


@dataclass(slots=True)
class _Shelf:
    """What has been written so far; models and arrays are known by identity."""

    prefix: str
    descriptions: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    n_features: set[int] = field(default_factory=set)
    numbers: dict[int, int] = field(default_factory=dict)  # of models
    names: dict[int, str] = field(default_factory=dict)  # of arrays

    def put(self, model: Any) -> int:
        """Return the number of a model's description, which is written if it is new."""
        if id(model) not in self.numbers:
            description = self._describe(model)
            self.numbers[id(model)] = len(self.descriptions)
            self.descriptions.append(description)
        return self.numbers[id(model)]

    def _describe(self, model: Any) -> dict[str, Any]:
        kind = {stored.type: kind for kind, stored in STORED_KINDS.items()}.get(type(model))
        if kind is None:
            known = ", ".join(stored.type.__name__ for stored in STORED_KINDS.values())
            raise TypeError(
                f"The outcome model must be made of {known} to be stored. A foreign regressor "
                "cannot be: a file holds numbers, not the code that would answer with them. "
                f"Got {type(model).__name__} instead."
            )
        stored = STORED_KINDS[kind]
        if isinstance(stored, StoredCompound):
            return {"kind": kind, **stored.to_numbers(model, self.put)}
        values, arrays = stored.to_arrays(model)
        self.n_features.add(model.n_features)
        return {"kind": kind, **values, "arrays": self._put_arrays(arrays)}

    def _put_arrays(self, arrays: Mapping[str, Array]) -> dict[str, str]:
        for own_name, array in arrays.items():
            if id(array) not in self.names:
                name = f"{self.prefix}/{len(self.descriptions)}/{own_name}"
                self.names[id(array)], self.arrays[name] = name, array
        return {own_name: self.names[id(array)] for own_name, array in arrays.items()}


def _read(
    description: Mapping[str, Any],
    models: list[OutcomeModel],
    arrays: Mapping[str, Array],
    n_features: int,
) -> OutcomeModel:
    kind = description["kind"]
    if kind not in STORED_KINDS:
        raise ForestFileError(f"the {OWNER} has the unknown kind {kind!r:.80}; upgrade doseforest")
    stored = STORED_KINDS[kind]
    if isinstance(stored, StoredCompound):
        return stored.from_numbers(description, models)
    own = {name: arrays[own_name] for name, own_name in description["arrays"].items()}
    return stored.from_arrays(description, own, n_features)


def _boosted_to_numbers(model: BoostedCore, put: Callable[[Any], int]) -> dict[str, Any]:
    return {"core": put(model.core), "trees": put(model.trees)}


def _boosted_from_numbers(
    description: Mapping[str, Any], models: list[OutcomeModel]
) -> BoostedCore:
    core, trees = _model(models, description["core"]), _model(models, description["trees"])
    if not isinstance(core, SplineCore) or not isinstance(trees, TreeEnsemble):
        raise ForestFileError(f"the {OWNER} boosts something else than a spline core with trees")
    return BoostedCore(core, trees)


def _stack_to_numbers(stack: Stack, put: Callable[[Any], int]) -> dict[str, Any]:
    # A list: answers are added in the order of the members, and a JSON object may lose it.
    # Members without a share answer nothing and need no room.
    used = {name: float(share) for name, share in stack.weights.items() if share > 0}
    return {"members": [[name, put(stack.members[name]), share] for name, share in used.items()]}


def _stack_from_numbers(description: Mapping[str, Any], models: list[OutcomeModel]) -> Stack:
    members: dict[str, OutcomeModel] = {}
    shares: dict[str, float] = {}
    for name, number, share in description["members"]:
        require(isinstance(name, str) and name not in members, "has members without a name")
        require(isinstance(share, float) and 0 <= share <= 1, "has a member without a share")
        members[name], shares[name] = _model(models, number), share
        # Stacks of stacks of stacks would double the work with every line of the description.
        require(not isinstance(members[name], Stack), "has a stack in a stack")
    require(abs(sum(shares.values()) - 1) < 1e-6, "has shares that do not add up to 1")
    return Stack(members, shares)


def _model(models: list[OutcomeModel], number: Any) -> OutcomeModel:
    require(type(number) is int and 0 <= number < len(models), "refers to a part it lacks")
    return models[int(number)]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A type of model that is arrays and a few values."""

    type: type
    to_arrays: Callable[[Any], tuple[dict[str, Any], dict[str, Array]]]
    from_arrays: Callable[[Mapping[str, Any], Mapping[str, Array], int], OutcomeModel]


@dataclass(frozen=True, slots=True)
class StoredCompound:
    """A type of model that is made of others, each known by its number."""

    type: type
    to_numbers: Callable[[Any, Callable[[Any], int]], dict[str, Any]]
    from_numbers: Callable[[Mapping[str, Any], list[OutcomeModel]], OutcomeModel]


STORED_KINDS: dict[str, StoredPart | StoredCompound] = {
    "spline_core": StoredPart(SplineCore, core_to_arrays, core_from_arrays),
    "tree_ensemble": StoredPart(TreeEnsemble, trees_to_arrays, trees_from_arrays),
    "boosted_core": StoredCompound(BoostedCore, _boosted_to_numbers, _boosted_from_numbers),
    "stack": StoredCompound(Stack, _stack_to_numbers, _stack_from_numbers),
}
