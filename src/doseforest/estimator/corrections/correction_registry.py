"""Corrections by name, one line each."""

from __future__ import annotations

from typing import Any

from doseforest.estimator.corrections.correction_recipe import MEMBERS, METHODS, CorrectionRecipe
from doseforest.estimator.corrections.kernel_recipes import PublishedKernel, Stabilized
from doseforest.estimator.corrections.orthogonal_recipe import Orthogonal
from doseforest.estimator.corrections.paper_recipe import Paper
from doseforest.estimator.corrections.uncorrected import Uncorrected

CORRECTIONS: dict[str, CorrectionRecipe] = {
    recipe.name: recipe
    for recipe in (Orthogonal(), Stabilized(), PublishedKernel(), Paper(), Uncorrected())
}


def recipe_of(correction: Any) -> CorrectionRecipe:
    """The correction of a name, or one that is given as an object.

    Parameters
    ----------
    correction : str or CorrectionRecipe

    Returns
    -------
    CorrectionRecipe

    Examples
    --------
    >>> recipe_of("orthogonal")
    Orthogonal(n_rounds=2, leaf_sizes=(5, 15, 50, 150))
    """
    if isinstance(correction, str) and correction in CORRECTIONS:
        return CORRECTIONS[correction]
    missing = [each for each in (*MEMBERS, *METHODS) if not hasattr(correction, each)]
    if isinstance(correction, type) or missing:
        lacks = f" without {missing[0]!r}" if missing and not isinstance(correction, str) else ""
        raise ValueError(
            f"The 'correction' parameter must be one of {', '.join(CORRECTIONS)} or an object like "
            f"those of doseforest.corrections. Got {correction!r}{lacks} instead."
        )
    recipe: CorrectionRecipe = correction
    return recipe
