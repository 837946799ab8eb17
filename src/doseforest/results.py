"""The classes that a fitted forest answers with, for annotations and `isinstance`.

An average is an `Estimate`, several are `Estimates`, those that move together `JointEstimates`; the
others are such with more to say. Results of comparisons of models are in `doseforest.evaluation`,
those of decisions in `doseforest.policy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.base.estimates import Estimate, Estimates, JointEstimates
    from doseforest.engine.look_inside.split_importance import FeatureImportance
    from doseforest.estimator.averages.average_curves import AverageDoseResponse
    from doseforest.estimator.distilled_forest import DistilledForest
    from doseforest.evaluation.permutation_importance import PermutationImportance
    from doseforest.inference.averages.projections import LinearProjection
    from doseforest.inference.changes.dose_changes import AverageChange
    from doseforest.inference.changes.score_forests import ChangeForest
    from doseforest.inference.doubts.refuters import Refutation
    from doseforest.inference.doubts.sensitivity import Sensitivity
    from doseforest.inference.heterogeneity.calibration import CalibrationTest, HeterogeneityTest
    from doseforest.inference.heterogeneity.targeting import RankedEffects
    from doseforest.inference.shapes.shape_test import ShapeTest
    from doseforest.inference.units.unit_results import BestDoses, UnitInference
    from doseforest.report.model_summary import ModelSummary
    from doseforest.report.overlap.overlap_report import OverlapReport

_HOMES = {
    "AverageChange": "doseforest.inference.changes.dose_changes",
    "AverageDoseResponse": "doseforest.estimator.averages.average_curves",
    "BestDoses": "doseforest.inference.units.unit_results",
    "CalibrationTest": "doseforest.inference.heterogeneity.calibration",
    "ChangeForest": "doseforest.inference.changes.score_forests",
    "DistilledForest": "doseforest.estimator.distilled_forest",
    "Estimate": "doseforest.base.estimates",
    "Estimates": "doseforest.base.estimates",
    "FeatureImportance": "doseforest.engine.look_inside.split_importance",
    "HeterogeneityTest": "doseforest.inference.heterogeneity.calibration",
    "JointEstimates": "doseforest.base.estimates",
    "LinearProjection": "doseforest.inference.averages.projections",
    "ModelSummary": "doseforest.report.model_summary",
    "OverlapReport": "doseforest.report.overlap.overlap_report",
    "PermutationImportance": "doseforest.evaluation.permutation_importance",
    "RankedEffects": "doseforest.inference.heterogeneity.targeting",
    "Refutation": "doseforest.inference.doubts.refuters",
    "Sensitivity": "doseforest.inference.doubts.sensitivity",
    "ShapeTest": "doseforest.inference.shapes.shape_test",
    "UnitInference": "doseforest.inference.units.unit_results",
}

__all__ = [
    "AverageChange",
    "AverageDoseResponse",
    "BestDoses",
    "CalibrationTest",
    "ChangeForest",
    "DistilledForest",
    "Estimate",
    "Estimates",
    "FeatureImportance",
    "HeterogeneityTest",
    "JointEstimates",
    "LinearProjection",
    "ModelSummary",
    "OverlapReport",
    "PermutationImportance",
    "RankedEffects",
    "Refutation",
    "Sensitivity",
    "ShapeTest",
    "UnitInference",
]

__getattr__, __dir__ = late_names(__name__, _HOMES)
