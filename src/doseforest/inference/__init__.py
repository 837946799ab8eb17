"""How far answers can be trusted: intervals of averages, shifts, tests, shapes, sensitivity.

Most of it is asked for on a fitted forest, as ``forest.average``, ``forest.intervals`` and
``forest.tests``; `shaped_forest` makes another forest of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.inference.shapes.shaped_forest import shaped_forest

__all__ = ["shaped_forest"]

__getattr__, __dir__ = late_names(
    __name__, {"shaped_forest": "doseforest.inference.shapes.shaped_forest"}
)
