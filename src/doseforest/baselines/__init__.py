"""Baselines with the effect API of the forest; docs/baselines.md says what each can do.

- `random_forest`, `boosting`, `xgboost_trees`: trees on [X, T]; `OutcomeRegressor`: any regressor.
- `EconMLForest`: EconML's causal forest on splines of the dose; `EconMLForest.linear`: as it comes.
- `LinearCausalForest`: a causal forest linear in the dose, as grf's, on our engine.
- `KennedyCurve`: the doubly robust average curve, the same for every unit.
- `AverageCurve`: a given average curve for every unit, "ADRF only".
- `ConstantCurve`: the average of a model's curves for every unit.
- `ZeroEffect`: the mean outcome at every dose.

Two more are the forest itself: `GeneralizedCausalForest(correction="none")` is the outcome model
alone, as is `outcome_model_` of any fitted one, and `GeneralizedCausalForest.paper()` the published
algorithm.
"""

from __future__ import annotations

from doseforest.baselines.econml_forest import EconMLForest
from doseforest.baselines.kennedy_curve import KennedyCurve
from doseforest.baselines.linear_causal_forest import LinearCausalForest
from doseforest.baselines.outcome_regressors import OutcomeRegressor, boosting, random_forest
from doseforest.baselines.reference_curves import AverageCurve, ConstantCurve, ZeroEffect
from doseforest.baselines.xgboost_trees import xgboost_trees

__all__ = [
    "AverageCurve",
    "ConstantCurve",
    "EconMLForest",
    "KennedyCurve",
    "LinearCausalForest",
    "OutcomeRegressor",
    "ZeroEffect",
    "boosting",
    "random_forest",
    "xgboost_trees",
]
