"""Designs with a known truth. To add one: a class with the members of `Design`, a line here.

Examples
--------
>>> simulation = DESIGNS["steps"].draw(n=500, seed=0)
>>> simulation.mean([0.0, 3.0]).shape
(500, 2)
"""

from __future__ import annotations

from doseforest.simulation.colangelo_lee import ColangeloLeeDesign
from doseforest.simulation.design import Design, Simulation
from doseforest.simulation.joint_designs import JOINT_DESIGNS, JointDesign
from doseforest.simulation.overlap_designs import OVERLAP_DESIGNS, OverlapDesign
from doseforest.simulation.published import PublishedDesign

DESIGNS: dict[str, Design] = {
    **OVERLAP_DESIGNS,  # randomised, confounded, steps, binary, linear
    "polynomial": PublishedDesign("polynomial"),
    "sinusoidal": PublishedDesign("sinusoidal"),
    "exponential": PublishedDesign("exponential"),
    "colangelo_lee_2": ColangeloLeeDesign(),
}  # JOINT_DESIGNS: doses of several components, point masses, arms

__all__ = [
    "DESIGNS",
    "JOINT_DESIGNS",
    "ColangeloLeeDesign",
    "Design",
    "JointDesign",
    "OverlapDesign",
    "PublishedDesign",
    "Simulation",
]
