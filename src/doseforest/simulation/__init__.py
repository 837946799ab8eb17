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
from doseforest.simulation.discount_levels import DISCOUNT_DESIGNS, DiscountDesign
from doseforest.simulation.joint_designs import JOINT_DESIGNS, JointDesign
from doseforest.simulation.overlap_designs import OVERLAP_DESIGNS, OverlapDesign
from doseforest.simulation.published import (
    DOSE_CURVES,
    SLOPES,
    SPARSE_CONFOUNDERS,
    PublishedDesign,
)

DESIGNS: dict[str, Design] = {
    **OVERLAP_DESIGNS,  # randomised, confounded, steps, binary, linear
    **{name: PublishedDesign(name) for name in DOSE_CURVES},  # polynomial, sinusoidal, exponential
    **{
        f"{name}_sparse": PublishedDesign(f"{name}_sparse", curve, n_relevant=SPARSE_CONFOUNDERS)
        for name, curve in DOSE_CURVES.items()
    },
    **{  # the polynomial with other slopes than the paper's
        f"slope_{name}": PublishedDesign(f"slope_{name}", DOSE_CURVES["polynomial"], name)
        for name in SLOPES
        if name != "square"
    },
    "colangelo_lee_2": ColangeloLeeDesign(),
}  # JOINT_DESIGNS: doses of several components, point masses, arms; DISCOUNT_DESIGNS: six levels

__all__ = [
    "DESIGNS",
    "DISCOUNT_DESIGNS",
    "JOINT_DESIGNS",
    "ColangeloLeeDesign",
    "Design",
    "DiscountDesign",
    "JointDesign",
    "OverlapDesign",
    "PublishedDesign",
    "Simulation",
]
