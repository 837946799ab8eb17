"""Designs of the studies: those of the library, the paper's, and others that were published.

To add one: a class with the members of `Design`, and a line here.
"""

from __future__ import annotations

from bench.designs.colangelo_lee_design import ColangeloLeeDesign
from bench.designs.paper_designs import (
    DOSE_CURVES,
    SLOPES,
    SPARSE_CONFOUNDERS,
    PublishedDesign,
)
from doseforest import datasets
from doseforest.datasets import (
    DISCOUNT_DESIGNS,
    JOINT_DESIGNS,
    Design,
    DiscountDesign,
    JointDesign,
    OverlapDesign,
    Simulation,
)

DESIGNS: dict[str, Design] = {
    **datasets.DESIGNS,  # randomised, confounded, steps, binary, linear
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
