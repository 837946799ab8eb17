"""The parts of a stored outcome model, spline cores and trees: to arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from doseforest.base.container import ForestFileError
from doseforest.base.dtypes import (
    LEAF,
    MISSING_LEFT,
    NODE_DTYPE,
    ZERO_MISSING,
    Array,
    IntArray,
)
from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.doses.bases.stored_bases import checked_basis, read_basis
from doseforest.doses.stored_values import FLOATS, INTEGERS, FileChecks
from doseforest.doses.vectors import MAX_COMPONENTS
from doseforest.engine.node_checks import check_trees
from doseforest.nuisance.outcome.covariate_terms import POWERS, CovariateTerms
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.nuisance.outcome.tree_ensemble import LINKS, TreeEnsemble

OWNER = "outcome model"
CHECKS = FileChecks(OWNER)
require, checked_count = CHECKS.require, CHECKS.count

ArrayTypes = dict[str, tuple[np.dtype[Any], int]]  # type and number of dimensions
FARTHEST = 1e6  # deviations from a mean: no value of fewer than a trillion rows is as far out
_POWER_ARRAYS: ArrayTypes = {  # absent from older files
    "power_feature": (INTEGERS, 1),
    "power_degree": (INTEGERS, 1),
    "power_low": (FLOATS, 1),
    "power_high": (FLOATS, 1),
}
_TERM_ARRAYS: ArrayTypes = {
    "median": (FLOATS, 1),
    "mean": (FLOATS, 1),
    "scale": (FLOATS, 1),
    "gappy": (INTEGERS, 1),
    "hinge_feature": (INTEGERS, 1),
    "hinge_knot": (FLOATS, 1),
    "step_feature": (INTEGERS, 1),
    "step_knot": (FLOATS, 1),
}
_COEFFICIENT_ARRAYS: ArrayTypes = {
    "dose_coefficients": (FLOATS, 1),
    "term_coefficients": (FLOATS, 2),
}
_SPLINE_ARRAYS: ArrayTypes = {
    "dose_range": (FLOATS, 1),
    "knots": (FLOATS, 1),
    "basis_coefficients": (FLOATS, 2),
    "bends": (FLOATS, 1),
}
CORE_ARRAYS: ArrayTypes = {**_TERM_ARRAYS, **_SPLINE_ARRAYS, **_COEFFICIENT_ARRAYS}
TREE_ARRAYS: ArrayTypes = {
    "roots": (INTEGERS, 1),
    "nodes": (NODE_DTYPE, 1),
    "leaf_values": (FLOATS, 1),
    "leaf_constants": (FLOATS, 1),
    "leaf_slopes": (FLOATS, 1),
    "term_starts": (INTEGERS, 1),
    "term_features": (np.dtype("<i4"), 1),
    "term_coefficients": (FLOATS, 1),
}


def core_to_arrays(core: SplineCore) -> tuple[dict[str, Any], dict[str, Array]]:
    """Plain values and arrays of a spline core."""
    basis = core.basis
    arrays: dict[str, Array] = {
        **{name: getattr(core.terms, name) for name in (*_TERM_ARRAYS, *_POWER_ARRAYS)},
        "dose_coefficients": core.dose_coefficients,
        "term_coefficients": core.term_coefficients,
    }
    if isinstance(basis, SplineProductBasis):
        return {"binary": core.binary, "basis": basis.to_json()}, arrays
    arrays |= {
        "dose_range": np.array([basis.low, basis.high]),
        "knots": np.array(basis.knots),
        "basis_coefficients": np.array(basis.coefficients),
        "bends": np.array(basis.bends),
    }
    return {"binary": core.binary}, arrays


def core_from_arrays(
    values: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
) -> SplineCore:
    """Put a spline core together again; ForestFileError if its parts do not fit."""
    own = _checked(arrays, {**_TERM_ARRAYS, **_COEFFICIENT_ARRAYS})
    powers = _checked(arrays, _POWER_ARRAYS) if "power_low" in arrays else _no_powers()
    terms = CovariateTerms(**{name: own[name] for name in _TERM_ARRAYS}, **powers)
    _check_terms(terms, n_features)
    basis = _product_basis(values["basis"]) if "basis" in values else _spline_basis(arrays)
    require(
        len(own["dose_coefficients"]) == basis.n_functions
        and len(own["term_coefficients"]) == terms.n_terms
        and own["term_coefficients"].shape[1] <= basis.n_functions,
        "has coefficients that do not fit its terms",
    )
    require(isinstance(values["binary"], bool), "does not say whether outcomes are binary")
    return SplineCore(
        terms=terms,
        basis=basis,
        dose_coefficients=own["dose_coefficients"],
        term_coefficients=own["term_coefficients"],
        binary=values["binary"],
    )


def _no_powers() -> dict[str, Any]:
    return {name: np.empty(0, dtype) for name, (dtype, _) in _POWER_ARRAYS.items()}


def _check_terms(terms: CovariateTerms, n_features: int) -> None:
    require(
        all(len(own) == n_features for own in (terms.median, terms.mean, terms.scale))
        and len(terms.power_feature) == len(terms.power_degree)
        and len(terms.power_low) == len(terms.power_high) == len(terms.power_degree)
        and len(terms.hinge_feature) == len(terms.hinge_knot)
        and len(terms.step_feature) == len(terms.step_knot),
        "has terms that do not fit its covariates",
    )
    require(bool((terms.scale > 0).all()), "has a covariate without a scale")
    require(bool(np.isin(terms.power_degree, POWERS).all()), "has a power of unknown degree")
    fences = np.stack([terms.power_low, terms.power_high])
    require(
        bool((fences[0] <= fences[1]).all() and (np.abs(fences) <= FARTHEST).all()),
        "has powers with fences out of order or out of reach",
    )
    for features in (terms.gappy, terms.power_feature, terms.hinge_feature, terms.step_feature):
        _require_covariates(features, n_features)


def _spline_basis(arrays: Mapping[str, Array]) -> SplineBasis:
    own = _checked(arrays, _SPLINE_ARRAYS)
    require(len(own["dose_range"]) == 2, "has no range of doses")
    basis = SplineBasis(
        low=float(own["dose_range"][0]),
        high=float(own["dose_range"][1]),
        knots=tuple(own["knots"].tolist()),
        coefficients=tuple(map(tuple, own["basis_coefficients"].tolist())),
        bends=tuple(own["bends"].tolist()),
    )
    checked_basis(basis)
    return basis


def _product_basis(values: dict[str, Any]) -> SplineProductBasis:
    basis = read_basis(values)
    if not isinstance(basis, SplineProductBasis):
        raise ForestFileError(f"the {OWNER} has splines of an unknown kind")
    return basis


def trees_to_arrays(trees: TreeEnsemble) -> tuple[dict[str, Any], dict[str, Array]]:
    """Plain values and arrays of boosted trees."""
    values: dict[str, Any] = {"n_trees": trees.n_trees, "link": trees.link}
    if trees.n_components > 1:
        values["n_components"] = trees.n_components
    return values, {name: getattr(trees, name) for name in TREE_ARRAYS}


def trees_from_arrays(
    values: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
) -> TreeEnsemble:
    """Put boosted trees together again; ForestFileError if they cannot be walked."""
    own = _checked(arrays, TREE_ARRAYS)
    n_leaves, n_terms = len(own["leaf_values"]), len(own["term_features"])
    n_components = 1
    if "n_components" in values:
        n_components = checked_count(values, "n_components", 2, MAX_COMPONENTS)
    check_trees(
        own["nodes"],
        own["roots"],
        n_leaves=n_leaves,
        n_features=n_features + n_components,  # the dose comes last
        flags=LEAF | MISSING_LEFT | ZERO_MISSING,
        owner=OWNER,
    )
    starts = own["term_starts"]
    require(
        len(own["leaf_constants"]) == n_leaves
        and len(own["leaf_slopes"]) == n_leaves
        and len(own["term_coefficients"]) == n_terms
        and len(starts) == n_leaves + 1,
        "has terms that do not fit its leaves",
    )
    require(
        starts[0] == 0 and starts[-1] == n_terms and bool((starts[1:] >= starts[:-1]).all()),
        "has terms out of order",
    )
    _require_covariates(own["term_features"], n_features + n_components - 1)
    link = values["link"]
    require(link in LINKS, f"has the unknown link {link!r:.80}")
    n_trees = checked_count(values, "n_trees", 1, len(own["roots"]))
    return TreeEnsemble(
        **own, n_features=n_features, n_trees=n_trees, link=link, n_components=n_components
    )


def _checked(arrays: Mapping[str, Array], types: ArrayTypes) -> dict[str, Any]:
    """Arrays of the right types, with nothing but finite numbers in them."""
    return {
        name: CHECKS.array(arrays, name, dtype, n_dimensions)
        for name, (dtype, n_dimensions) in types.items()
    }


def _require_covariates(features: IntArray, n_features: int) -> None:
    inside = (features >= 0) & (features < n_features)
    require(bool(inside.all()), "has a term of no covariate")
