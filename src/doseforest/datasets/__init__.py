"""Simulated data whose dose-response curves are known exactly, to try methods on.

Examples
--------
>>> data = DESIGNS["steps"].draw(n=500, seed=0)
>>> data.mean([0.0, 3.0]).shape
(500, 2)
"""

from __future__ import annotations

from doseforest.datasets.discount_levels import DISCOUNT_DESIGNS, DiscountDesign
from doseforest.datasets.joint_designs import JOINT_DESIGNS, JointDesign
from doseforest.datasets.overlap_designs import OVERLAP_DESIGNS, OverlapDesign
from doseforest.datasets.simulation import Design, Simulation

DESIGNS: dict[str, Design] = {**OVERLAP_DESIGNS}  # randomised, confounded, steps, binary, linear

__all__ = [
    "DESIGNS",
    "DISCOUNT_DESIGNS",
    "JOINT_DESIGNS",
    "Design",
    "DiscountDesign",
    "JointDesign",
    "OverlapDesign",
    "Simulation",
]
