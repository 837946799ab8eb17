"""Designs of the studies: those of the library, the paper's, and others that were published.

A design is an object with the members of `Design`. To add one: a line here. A study takes one from
another file by its place, ``--designs my_module:MyDesign``, without a line here.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from bench.designs.colangelo_lee_design import ColangeloLeeDesign
from bench.designs.held_out_designs import HELD_OUT_DESIGNS, PublishedSplits
from bench.designs.paper_designs import (
    DOSE_CURVES,
    PRINTED_CURVES,
    SLOPES,
    SPARSE_CONFOUNDERS,
    PublishedDesign,
)
from bench.designs.worlds import CATEGORY_COLUMNS, WORLDS
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
    **{  # as the paper's supplement prints curves; the polynomial is the one above
        f"{name}_printed": PublishedDesign(f"{name}_printed", PRINTED_CURVES[name])
        for name in ("sinusoidal", "exponential")
    },
    **{  # and with Psi as it prints that, too
        f"{name}_density": PublishedDesign(f"{name}_density", curve, dose_transform="pdf")
        for name, curve in PRINTED_CURVES.items()
    },
    "colangelo_lee_2": ColangeloLeeDesign(),
}  # JOINT_DESIGNS: doses of several components, point masses, arms; DISCOUNT_DESIGNS: six levels;
# WORLDS: designs that no term of the model was made for; HELD_OUT_DESIGNS: published splits


@cache
def find_design(name: str) -> Design:
    """A design by its name, or by the place of an object or a class, ``module:MyDesign``.

    Examples
    --------
    >>> find_design("steps").name
    'steps'
    >>> find_design("bench.designs:ColangeloLeeDesign").name
    'colangelo_lee_2'
    """
    known: dict[str, Design] = {
        **DESIGNS,
        **WORLDS,
        **HELD_OUT_DESIGNS,
        **JOINT_DESIGNS,
        **DISCOUNT_DESIGNS,
    }
    if name in known:
        return known[name]
    module, colon, member = name.partition(":")
    if not colon:
        raise ValueError(
            f"The 'design' parameter must be one of {', '.join(known)}, or a place such as "
            f"'my_module:MyDesign'. Got {name!r} instead."
        )
    found = getattr(import_module(module), member, None)
    design = found() if isinstance(found, type) else found
    members = ("name", "description", "draw")
    if not all(hasattr(design, member) for member in members):
        raise ValueError(
            "The 'design' parameter must be the place of a design, an object or class with "
            f"`name`, `description` and `draw(n, seed)`. Got {name!r} instead."
        )
    return design


__all__ = [
    "CATEGORY_COLUMNS",
    "DESIGNS",
    "DISCOUNT_DESIGNS",
    "HELD_OUT_DESIGNS",
    "JOINT_DESIGNS",
    "WORLDS",
    "ColangeloLeeDesign",
    "Design",
    "DiscountDesign",
    "JointDesign",
    "OverlapDesign",
    "PublishedDesign",
    "PublishedSplits",
    "Simulation",
    "find_design",
]
