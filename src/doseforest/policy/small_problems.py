"""Small problems whose limits leave next to nothing: an integer program, as a last resort."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from doseforest.base.dtypes import IntArray
from doseforest.policy.problem import DoseProblem, Limit

MOST_ENTRIES = 2000  # units x doses
MOST_NODES = 10_000  # of the search tree: a limit that does not depend on the machine


def is_small(problem: DoseProblem) -> bool:
    """Whether an integer program is worth a try."""
    return problem.n_units * problem.n_doses <= MOST_ENTRIES


def solve_small(problem: DoseProblem) -> tuple[IntArray | None, bool]:
    """The best choice by SciPy's HiGHS, None where it finds none, and whether there is proof."""
    shape = problem.value.shape
    values = problem.values_at(slice(0, problem.n_units))
    allowed = values > -np.inf
    one_each = csr_array(np.kron(np.eye(shape[0]), np.ones((1, shape[1]))))
    rules = [LinearConstraint(one_each, 1.0, 1.0)]
    rules += [
        LinearConstraint(_rows(limit, shape[1]), -np.inf, limit.caps) for limit in problem.limits
    ]
    result = milp(
        -np.where(allowed, values, 0.0).ravel(),
        integrality=np.ones(values.size),
        bounds=Bounds(0.0, allowed.ravel().astype(np.float64)),
        constraints=rules,
        options={"node_limit": MOST_NODES},
    )
    if result.x is None:
        return None, result.status == 2
    choice = np.argmax(result.x.reshape(shape), axis=1)
    return (choice, True) if problem.meets_limits(choice) else (None, False)


def _rows(limit: Limit, n_doses: int) -> csr_array:
    """Weights of a limit's parts over all units and doses, (n_parts, n_units x n_doses)."""
    weights = limit.weights.astype(np.float64).ravel()
    parts = limit.parts_of(np.arange(len(limit.weights)))
    where = (np.repeat(parts, n_doses), np.arange(len(weights)))
    return csr_array((weights, where), shape=(len(limit.caps), len(weights)))
