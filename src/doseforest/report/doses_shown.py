"""A few doses that stand for a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.doses.dose_values import Doses
from doseforest.report.dose_axes import DoseAxes

N_DOSES = 5
MOST_LEVELS = 8


def few_doses(doses: Doses, baseline: Any, axes: DoseAxes) -> Doses:
    """A few doses beside the baseline, ascending.

    Of several components: the lowest and the highest value of each with the others at the
    baseline, and the highest of all together; of arms: the lowest and the highest dose of each.
    """
    others = doses[doses != baseline]
    most = N_DOSES if axes.parts[0].continuous and not doses.joint else MOST_LEVELS
    if len(others) <= most:
        return others
    if axes.arms:
        arms = others.table[:, 0]
        first = np.flatnonzero(np.append(True, np.diff(arms) != 0))
        places = np.union1d(first, np.append(first[1:], len(arms)) - 1)
    elif doses.joint:
        places = _corners(others, baseline)
    else:
        places = np.empty(0, np.int64)
    if not 2 <= len(places) <= 2 * MOST_LEVELS:
        places = np.linspace(0, len(others) - 1, most).round().astype(int)
    return others[places]


def _corners(doses: Doses, baseline: Any) -> Any:
    """Places of the lowest and highest values of each component with the others at the baseline."""
    table, start = doses.table, Doses.of(baseline).table
    picked = []
    for place in range(table.shape[1]):
        alone = np.flatnonzero(np.delete(table == start, place, axis=1).all(axis=1))
        if len(alone):
            picked += [alone[0], alone[-1]]
    return np.unique([*picked, len(doses) - 1]) if picked else np.empty(0, np.int64)
