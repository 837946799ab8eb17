"""How an outcome model is corrected: objects that `GeneralizedCausalForest(correction=…)` takes.

`CorrectionRecipe` says what an object of your own must have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.estimator.corrections.correction_recipe import CorrectionRecipe
    from doseforest.estimator.corrections.correction_registry import CORRECTIONS
    from doseforest.estimator.corrections.kernel_recipes import PublishedKernel, Stabilized
    from doseforest.estimator.corrections.orthogonal_recipe import Orthogonal
    from doseforest.estimator.corrections.paper_recipe import Paper
    from doseforest.estimator.corrections.uncorrected import Uncorrected

__all__ = [
    "CORRECTIONS",
    "CorrectionRecipe",
    "Orthogonal",
    "Paper",
    "PublishedKernel",
    "Stabilized",
    "Uncorrected",
]

_PLACE = "doseforest.estimator.corrections."
_HOMES = {
    "CORRECTIONS": _PLACE + "correction_registry",
    "CorrectionRecipe": _PLACE + "correction_recipe",
    "Orthogonal": _PLACE + "orthogonal_recipe",
    "Paper": _PLACE + "paper_recipe",
    "PublishedKernel": _PLACE + "kernel_recipes",
    "Stabilized": _PLACE + "kernel_recipes",
    "Uncorrected": _PLACE + "uncorrected",
}

__getattr__, __dir__ = late_names(__name__, _HOMES)
