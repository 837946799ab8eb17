"""The orthogonal correction as plain values and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray
from doseforest.doses.bases.dose_basis import FittedBasis, basis_components, read_basis, store_basis
from doseforest.doses.dose_values import Doses
from doseforest.doses.stored_values import FLOATS, FileChecks
from doseforest.engine.stored_forest import read_forest, store_forest
from doseforest.estimator.corrections.projection import Projection
from doseforest.estimator.corrections.shape_stack import ShapeStack
from doseforest.estimator.corrections.sieve_forests import (
    OrthogonalCorrection,
    Reading,
    SieveForest,
    SieveRound,
)

CHECKS = FileChecks("effect forest")
SHARE_ROUNDING = 1e-6  # by which shares may add up to more than 1
_GAINS = ("strength", "t_value", "risk", "corrected_risk")  # of a round's stack


def store_orthogonal(
    correction: OrthogonalCorrection, prefix: str
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Take an orthogonal correction apart; TypeError if its basis is the user's own code."""
    arrays: dict[str, Array] = {
        f"{prefix}/projection_nodes": Doses.of(correction.projection.nodes).plain,
        f"{prefix}/projection_matrix": correction.projection.matrix,
    }
    rounds = []
    for number, round_ in enumerate(correction.rounds):
        values, added = _store_round(round_, f"{prefix}/rounds/{number}")
        rounds.append(values)
        arrays |= added
    return {"basis": store_basis(correction.basis), "rounds": rounds}, arrays


def read_orthogonal(
    values: Mapping[str, Any], arrays: Mapping[str, Array], prefix: str, n_features: int
) -> OrthogonalCorrection:
    """Put an orthogonal correction together; ForestFileError if its parts do not fit."""
    basis = read_basis(values["basis"])
    n_functions = basis.n_functions - 1
    projection = _projection(basis, arrays, prefix)
    rounds = [
        _read_round(each, arrays, f"{prefix}/rounds/{number}", n_functions, n_features)
        for number, each in enumerate(values["rounds"])
    ]
    return OrthogonalCorrection(basis, projection, tuple(rounds))


def check_shares(shares: Sequence[float] | FloatArray) -> None:
    """Refuse shares that are negative or add up to more than 1."""
    CHECKS.require(
        all(share >= 0 for share in shares) and sum(shares) <= 1 + SHARE_ROUNDING,
        "has shares out of range",
    )


def _projection(basis: FittedBasis, arrays: Mapping[str, Array], prefix: str) -> Projection:
    nodes = CHECKS.doses(arrays, f"{prefix}/projection_nodes")
    CHECKS.require(
        Doses.of(nodes).n_components == basis_components(basis),
        "has a projection that does not fit its functions of the dose",
    )
    matrix: FloatArray = CHECKS.array(arrays, f"{prefix}/projection_matrix", FLOATS, 2)
    CHECKS.require(
        matrix.shape == (len(nodes), basis.n_functions - 1),
        "has a projection that does not fit its functions of the dose",
    )
    CHECKS.moderate(matrix, f"{prefix}/projection_matrix")
    # Finite numbers may still make functions that are not: a scale next to 0, say.
    with np.errstate(all="ignore"):
        CHECKS.moderate(basis.evaluate(nodes), "its functions of the dose")
    return Projection(nodes, matrix)


def _store_round(own: SieveRound, prefix: str) -> tuple[dict[str, Any], dict[str, Array]]:
    arrays: dict[str, Array] = {
        f"{prefix}/constant": own.constant,
        f"{prefix}/shares": own.stack.shares,
    }
    forests = []
    for number, grown in enumerate(own.forests):
        forest, added = store_forest(grown.forest, f"{prefix}/forests/{number}")
        readings = [
            {
                "name": reading.name,
                "n_used": reading.n_used,
                "penalty": None if reading.penalty is None else list(reading.penalty),
                "share": float(share),
            }
            for reading, share in zip(grown.readings, grown.shares, strict=True)
        ]
        forests.append({"forest": forest, "readings": readings})
        arrays |= added
    gains = {name: float(getattr(own.stack, name)) for name in _GAINS}
    return {"forests": forests, "names": list(own.names), **gains}, arrays


def _read_round(
    values: Mapping[str, Any],
    arrays: Mapping[str, Array],
    prefix: str,
    n_functions: int,
    n_features: int,
) -> SieveRound:
    forests = tuple(
        _read_forest(each, arrays, f"{prefix}/forests/{number}", n_functions, n_features)
        for number, each in enumerate(values["forests"])
    )
    check_shares([share for forest in forests for share in forest.shares])
    shares: FloatArray = CHECKS.array(arrays, f"{prefix}/shares", FLOATS, 1)
    check_shares(shares)
    return SieveRound(
        forests=forests,
        constant=CHECKS.vector(arrays, f"{prefix}/constant", n_functions),
        stack=ShapeStack(shares, **{name: CHECKS.number(values, name) for name in _GAINS}),
        names=CHECKS.names(values["names"], len(shares), "share"),
    )


def _read_forest(
    values: Mapping[str, Any],
    arrays: Mapping[str, Array],
    prefix: str,
    n_functions: int,
    n_features: int,
) -> SieveForest:
    forest = read_forest(values["forest"], arrays, prefix)
    n_moments = n_functions * (n_functions + 1) // 2 + n_functions
    CHECKS.require(
        forest.n_features == n_features and len(forest.fallback) == n_moments + n_functions,
        "has a forest that does not fit its functions of the dose or its features",
    )
    readings = tuple(_reading(each, n_functions) for each in values["readings"])
    shares = tuple(CHECKS.number(each, "share", 0.0, 1.0) for each in values["readings"])
    return SieveForest(forest, readings, shares)


def _reading(values: Mapping[str, Any], n_functions: int) -> Reading:
    name, penalty = values["name"], values["penalty"]
    CHECKS.require(isinstance(name, str), "has a reading without a name")
    n_used = CHECKS.count(values, "n_used", 1, n_functions)
    if penalty is None:
        return Reading(name, n_used, None)
    CHECKS.require(
        isinstance(penalty, list) and len(penalty) == n_used,
        "has a penalty that does not fit its functions of the dose",
    )
    numbers = (CHECKS.number({"penalty": each}, "penalty", 0.0) for each in penalty)
    return Reading(name, n_used, tuple(numbers))
