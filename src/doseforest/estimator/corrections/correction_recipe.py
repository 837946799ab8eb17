"""What the parameter `correction` takes: an object that holds how an outcome model is corrected."""

from __future__ import annotations

from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from sklearn.utils._param_validation import (
    InvalidParameterError,
    validate_parameter_constraints,
)

if TYPE_CHECKING:
    from doseforest.estimator.corrections.fitted_correction import FittedCorrection
    from doseforest.estimator.fit_plan import FitPlan
    from doseforest.estimator.training_rows import TrainingRows
    from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome


class CorrectionRecipe(Protocol):
    """How an outcome model is corrected, before anything is fitted.

    Any object with these members can be the `correction` of a `GeneralizedCausalForest`; a class
    that inherits from this one needs `name`, `n_forests` and `fit` alone. Make it a frozen
    dataclass, so that scikit-learn can clone it and searches can set its fields. A fitted
    correction of a type that is not in ``STORED_CORRECTIONS`` cannot be saved, and says so.

    Attributes
    ----------
    name : str
        As errors and summaries call it.
    divides_by_density : bool
        Whether it needs the density of the dose at every dose, and not only weights.
    judged_out_of_bag : bool
        Whether curves of the training rows come from trees that have not seen them, which tests
        and projections need.
    splits_sample : bool
        Whether the rows are split once, into those that grow trees and those that fill leaves.

    Examples
    --------
    >>> from doseforest.corrections import Orthogonal
    >>> recipe = Orthogonal(n_rounds=1)
    >>> recipe.name, recipe.n_sizes
    ('orthogonal', 4)
    """

    name: ClassVar[str]
    divides_by_density: ClassVar[bool] = False
    judged_out_of_bag: ClassVar[bool] = True
    splits_sample: ClassVar[bool] = False

    @property
    def n_sizes(self) -> int:
        """Leaf sizes that share the trees."""
        return 1

    def check(self, rows: TrainingRows, forest: Any) -> None:
        """Raise ValueError where the rows, or parameters of the forest, do not suit it.

        Parameters
        ----------
        rows : TrainingRows
            Checked rows that the fit will see.
        forest : GeneralizedCausalForest
            Whose parameters are to fit.
        """
        return

    def n_forests(self, plan: FitPlan) -> int:
        """Forests that a fit grows, each a step of its progress bar.

        Parameters
        ----------
        plan : FitPlan
            Of the fit.

        Returns
        -------
        int
            The number of forests of one part.
        """
        ...

    def fit(
        self, rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan
    ) -> FittedCorrection:
        """Correct an outcome model.

        Parameters
        ----------
        rows : TrainingRows
            Features, doses, outcomes, weights and groups.
        outcome : CrossFittedOutcome
            The outcome model, with curves of each row by models that have not seen it.
        plan : FitPlan
            Grid, basis, density, growth, seed and threads of the fit.

        Returns
        -------
        FittedCorrection
            What corrects curves of new units, what it adds to those of the training rows, and a
            report.
        """
        ...


MEMBERS = ("name", "n_sizes", "divides_by_density", "judged_out_of_bag", "splits_sample")
METHODS = ("check", "n_forests", "fit")


def check_fields(recipe: Any, constraints: dict[str, list[Any]]) -> None:
    """Raise where a field of a recipe breaks its rule, as scikit-learn does.

    Parameters
    ----------
    recipe : dataclass
    constraints : dict
        Rules of each field.
    """
    values = {field.name: getattr(recipe, field.name) for field in fields(recipe)}
    validate_parameter_constraints(constraints, values, caller_name=type(recipe).__name__)


def take_sizes(recipe: Any) -> None:
    """Keep the field `leaf_sizes` of a frozen recipe as ascending ints, or raise.

    Parameters
    ----------
    recipe : dataclass
        Its `leaf_sizes` are an int or a sequence of ints.
    """
    given = recipe.leaf_sizes
    sizes = np.atleast_1d(np.asarray(given))
    if sizes.dtype.kind not in "iu" or sizes.ndim != 1 or not len(sizes) or sizes.min() < 1:
        raise InvalidParameterError(
            f"The 'leaf_sizes' parameter of {type(recipe).__name__} must be one or more ints of "
            f"at least 1. Got {given!r} instead."
        )
    object.__setattr__(recipe, "leaf_sizes", tuple(np.unique(sizes).tolist()))


def take_size(recipe: Any) -> None:
    """Raise unless the field `leaf_size` of a recipe is an int of at least 1.

    Parameters
    ----------
    recipe : dataclass
    """
    size = recipe.leaf_size
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
        raise InvalidParameterError(
            f"The 'leaf_size' parameter of {type(recipe).__name__} must be an int of at least 1. "
            f"Got {size!r} instead."
        )
