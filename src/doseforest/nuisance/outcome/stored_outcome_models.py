"""Outcome models as JSON and named arrays, for a file that holds numbers and no code.

A model is written as a list of descriptions, parts before what is made of them, so a description
refers only to earlier ones. Parts and arrays that are shared are written once. On the way in a file
is trusted with nothing: what does not fit is refused before it is used. How a kind of model is
stored stands beside it, and which kinds there are in `outcome_members`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from doseforest.base.container import ForestFileError
from doseforest.base.dtypes import MAX_FEATURES, Array
from doseforest.nuisance.encoding.category_encoding import CategoryEncoder
from doseforest.nuisance.outcome.encoded_models import EncodedModel
from doseforest.nuisance.outcome.outcome_members import kind_of, model_class
from doseforest.nuisance.outcome.outcome_models import (
    CHECKS,
    CheckedModel,
    OutcomeModel,
    SizedModel,
)


def store_outcome_model(
    model: OutcomeModel, prefix: str = "outcome"
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take a model apart into metadata, which is plain JSON, and named arrays.

    Parameters
    ----------
    model : model of a kind of `OUTCOME_MEMBERS`, a stack of them, or one behind an encoder
    prefix : str, default="outcome"
        Of the arrays' names, to keep them apart from others in one file.

    Raises
    ------
    TypeError
        The model or a member is of a type without a line: a file holds numbers, not code.

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
        encoder, numbers = model.encoder.to_arrays(prefix)
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
) -> SizedModel:
    """Put a model together that `store_outcome_model` took apart.

    Raises
    ------
    ForestFileError
        The metadata or an array is damaged, or a newer version wrote them.
    """
    try:
        n_features = CHECKS.count(metadata, "n_features", 0, MAX_FEATURES)
        if "encoder" not in metadata:
            return _read_numeric(metadata, arrays, n_features)
        encoder = CategoryEncoder.from_arrays(metadata["encoder"], arrays, prefix, n_features)
        inner = metadata["encoded"]
        n_columns = CHECKS.count(inner, "n_features", encoder.n_columns, encoder.n_columns)
        return EncodedModel(encoder, _read_numeric(inner, arrays, n_columns))
    except ForestFileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ForestFileError(
            f"the description of the {CHECKS.owner} is not valid ({type(error).__name__}: "
            f"{error}); the file is damaged, save the {CHECKS.owner} again"
        ) from error


def _read_numeric(
    metadata: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
) -> SizedModel:
    """Read a model of numbers, without an encoder."""
    models: list[SizedModel] = []
    for description in metadata["models"]:
        models.append(_read(description, models, arrays, n_features))
    CHECKS.require(len(models) > 0, "is empty")
    CHECKS.require(hasattr(models[-1], "dose_components"), "is not checked")
    return models[-1]


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
        kind = kind_of(model)
        if kind is None:
            raise _without_a_line(model)
        if isinstance(model, CheckedModel) and kind_of(model.model) is None:
            raise _without_a_line(model.model, f"member {model.name!r} of the ")
        if hasattr(model, "n_features"):
            self.n_features.add(model.n_features)
        if hasattr(model, "to_parts"):
            return {"kind": kind, **model.to_parts(self.put)}
        values, arrays = model.to_arrays()
        return {"kind": kind, **values, "arrays": self._put_arrays(arrays)}

    def _put_arrays(self, arrays: Mapping[str, Array]) -> dict[str, str]:
        for own_name, array in arrays.items():
            if id(array) not in self.names:
                name = f"{self.prefix}/{len(self.descriptions)}/{own_name}"
                self.names[id(array)], self.arrays[name] = name, array
        return {own_name: self.names[id(array)] for own_name, array in arrays.items()}


def _without_a_line(model: Any, member: str = "") -> TypeError:
    """What tells the user that a file cannot hold a model, and what would help."""
    return TypeError(
        f"The {member}outcome model cannot be saved: a file holds numbers, not code, and no line "
        f"of OUTCOME_MEMBERS says how a {type(model).__name__} becomes numbers and comes back "
        "('to_arrays' and 'from_arrays')."
    )


def _read(
    description: Mapping[str, Any],
    models: list[SizedModel],
    arrays: Mapping[str, Array],
    n_features: int,
) -> SizedModel:
    kind = description["kind"]
    try:
        form = model_class(kind)
    except KeyError:
        raise ForestFileError(
            f"the {CHECKS.owner} has the unknown kind {kind!r:.80}; upgrade doseforest, or import "
            "the module that adds it to OUTCOME_MEMBERS"
        ) from None

    def part(number: Any) -> SizedModel:
        fits = type(number) is int and 0 <= number < len(models)
        CHECKS.require(fits, "refers to a part it lacks")
        return models[int(number)]

    model: SizedModel
    if hasattr(form, "from_parts"):
        model = form.from_parts(description, part, n_features)
    else:
        own = {name: arrays[own_name] for name, own_name in description["arrays"].items()}
        model = form.from_arrays(description, own, n_features)
    return model
