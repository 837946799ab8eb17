"""Outcome models of tables with categories: an encoder in front of a model of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.encoding.category_encoding import (
    CategoryCounts,
    CategoryEncoder,
    fit_encoder,
)
from doseforest.nuisance.outcome.outcome_models import OutcomeModel, Stack

if TYPE_CHECKING:
    from doseforest.nuisance.outcome.cross_fitted_outcome import MemberFit


@dataclass(frozen=True, slots=True, eq=False)
class EncodedModel:
    """A model of the mean outcome that sees categories as numbers."""

    encoder: CategoryEncoder
    model: OutcomeModel

    @property
    def dose_components(self) -> set[int]:
        """Numbers of components of the doses that the model is of."""
        model: Any = self.model
        sizes: set[int] = model.dose_components
        return sizes

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.model.predict(self.encoder.encode(X), dose, n_threads=n_threads)

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        return self.model.curves(self.encoder.encode(X), doses, n_threads=n_threads)


@dataclass(frozen=True, slots=True)
class EncodedFit:
    """Fits members to numbers in place of categories; the form that `cross_fit_outcome` wants.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest.nuisance.outcome.outcome_stack import member_fit
    >>> X, dose = np.repeat([[0.0], [1.0]], 30, axis=0), np.tile([0.0, 1.0, 2.0], 20)
    >>> fit = EncodedFit(member_fit(LinearRegression()), {0: 2})
    >>> members = fit(X, dose, 5 * X[:, 0] + dose)
    >>> members["regressor"].predict(np.array([[1.0]]), np.array([2.0])).round(6)
    array([7.])
    """

    fit: MemberFit
    counts: CategoryCounts

    def __call__(
        self,
        X: FloatArray,
        dose: FloatArray,
        y: FloatArray,
        *,
        weights: FloatArray | None = None,
        binary: bool = False,
        seed: int = 0,
        n_threads: int = 1,
    ) -> Mapping[str, EncodedModel]:
        """Fit an encoder, then every member to what it encodes."""
        doses = Doses.of(dose).table
        encoder, encoded = fit_encoder(
            X, self.counts, np.column_stack([y, doses]), doses=doses, weights=weights, seed=seed
        )
        members = self.fit(
            encoded, dose, y, weights=weights, binary=binary, seed=seed, n_threads=n_threads
        )
        return {name: EncodedModel(encoder, member) for name, member in members.items()}


def stacked(members: Mapping[str, OutcomeModel], weights: Mapping[str, float]) -> OutcomeModel:
    """Stack the members of one fit; those that share an encoder share its work."""
    encoded = {name: own for name, own in members.items() if isinstance(own, EncodedModel)}
    if not encoded:
        return Stack(members, weights)
    (encoder,) = {id(own.encoder): own.encoder for own in encoded.values()}.values()
    return EncodedModel(encoder, Stack({name: own.model for name, own in encoded.items()}, weights))
