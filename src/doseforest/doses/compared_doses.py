"""Two doses that are compared, each checked under its own name."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.doses.curve_effects import one_dose
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import Support, check_doses


def compared_doses(
    first: Any, second: Any, names: tuple[str, str], support: Support, n_components: int
) -> Doses:
    """Both doses, shape (2,); errors name the one that is at fault.

    Examples
    --------
    >>> from doseforest.doses.grids import DoseRange
    >>> compared_doses(0, 5, ("baseline", "dose"), DoseRange(0.0, 9.0), 1).values
    array([0., 5.])
    """
    checked = [
        check_doses(one_dose(dose, name, n_components), support, name)
        for dose, name in zip((first, second), names, strict=True)
    ]
    return Doses(np.stack(checked))
