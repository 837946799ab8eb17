"""Which parameters of a forest act in which mode of correction, and what is tried of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.estimator.corrections.correction_registry import recipe_of

FORESTS = ("orthogonal", "stabilized", "kernel", "paper")
KERNELS = ("stabilized", "kernel", "paper")


@dataclass(frozen=True, slots=True)
class TunedParameter:
    """A parameter, the corrections that it acts in, and what is tried by default."""

    corrections: tuple[str, ...]
    values: Callable[[Any, Any], Sequence[Any]] | None = None  # of forest and doses; None: nothing
    needs: Mapping[str, tuple[Any, ...]] | None = None  # values of others without which it is idle


def _leaf_sizes(forest: Any, dose: Any) -> Sequence[Any]:
    recipe: Any = recipe_of(forest.correction)
    several: Sequence[Any] = [(15, 50, 150), (50, 150), (5, 15)]
    others = several if recipe.name == "orthogonal" else [(5,), (15,), (50,)]
    return [recipe.leaf_sizes, *(sizes for sizes in others if sizes != recipe.leaf_sizes)]


def _leaf_size(forest: Any, dose: Any) -> Sequence[Any]:
    recipe: Any = recipe_of(forest.correction)
    return [recipe.leaf_size, *(size for size in (5, 15, 50) if size != recipe.leaf_size)]


def _bandwidths(forest: Any, dose: Any) -> Sequence[Any]:
    usual = rule_of_thumb(np.asarray(dose, np.float64), forest.kernel)
    return [None, *(float(share * usual) for share in (0.5, 1.0, 2.0, 4.0))]


PARAMETERS: dict[str, TunedParameter] = {
    "correction__leaf_sizes": TunedParameter(("orthogonal", "stabilized"), _leaf_sizes),
    "correction__leaf_size": TunedParameter(("kernel", "paper"), _leaf_size),
    "mtry": TunedParameter(FORESTS, lambda forest, dose: [None, 0.67, 0.33]),
    "honesty_fraction": TunedParameter(
        FORESTS, lambda forest, dose: [0.5, 0.35, 0.65], {"honesty": ("tree", "forest")}
    ),
    "correction__bandwidth": TunedParameter(KERNELS, _bandwidths),
    "correction__zeta": TunedParameter(("paper",), lambda forest, dose: [0.0, 0.1, 1.0]),
    "n_trees": TunedParameter(FORESTS),
    "honesty": TunedParameter(("orthogonal", "stabilized", "kernel")),
    "sample_fraction": TunedParameter(("orthogonal", "stabilized", "kernel")),
    "correction__n_rounds": TunedParameter(
        ("orthogonal",), None, {"honesty": ("tree", "forest", "none")}
    ),
    "basis": TunedParameter(("orthogonal",)),
    "treatment_model": TunedParameter(("orthogonal",)),
    "correction__distance": TunedParameter(KERNELS),
    "kernel": TunedParameter(KERNELS),
    "density": TunedParameter(KERNELS),
    "correction__criterion": TunedParameter(("paper",)),
    "correction__min_info_gain": TunedParameter(("paper",)),
    "outcome_model": TunedParameter((*FORESTS, "none")),
    "n_folds": TunedParameter(("orthogonal", "stabilized", "kernel", "none")),
    "n_repeats": TunedParameter(("orthogonal", "stabilized", "kernel", "none")),
    "max_bins": TunedParameter(FORESTS),
}


def checked_params(
    forest: Any, params: Mapping[str, Sequence[Any]] | None, treatment: Any
) -> dict[str, list[Any]]:
    """Lists of values by parameter, those given or what suits the forest, or an error."""
    for method in ("fit", "dose_response", "get_params", "set_params"):
        if not hasattr(forest, method):
            raise TypeError(
                "The 'forest' parameter must be an estimator with the methods fit, dose_response, "
                f"get_params and set_params. Got {type(forest).__name__} without {method} instead."
            )
    correction = getattr(forest, "correction", None)
    if correction is not None:
        correction = recipe_of(correction).name
    if params is None:
        defaults = _defaults(forest, correction, treatment)
        if not defaults:
            raise ValueError(
                "The 'params' parameter must be given where nothing is tuned by default, as with "
                f"correction={correction!r}. Got None instead."
            )
        return defaults
    if not isinstance(params, Mapping) or not params:
        raise TypeError(
            "The 'params' parameter must be a mapping from names of parameters to lists of values. "
            f"Got {params!r} instead."
        )
    for name, values in params.items():
        _check_one(forest, correction, name, values)
    return {name: list(values) for name, values in params.items()}


def _defaults(forest: Any, correction: Any, treatment: Any) -> dict[str, list[Any]]:
    several = np.ndim(treatment) == 2 and np.shape(treatment)[1] > 1
    return {
        name: list(parameter.values(forest, treatment))
        for name, parameter in PARAMETERS.items()
        if parameter.values is not None
        and correction in parameter.corrections
        and _idle(forest, parameter) is None
        and not (name == "correction__bandwidth" and several)
    }


def _check_one(forest: Any, correction: Any, name: Any, values: Any) -> None:
    if name not in forest.get_params():
        raise ValueError(
            f"The 'params' parameter must name parameters of the forest. Got {name!r} instead."
        )
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise TypeError(
            f"The 'params' parameter must have a list of values for {name!r}. "
            f"Got {values!r} instead."
        )
    if correction is None:  # not a forest of ours: it knows itself what acts
        return
    parameter = PARAMETERS.get(name)
    if parameter is None or correction not in parameter.corrections:
        acting = sorted(key for key, each in PARAMETERS.items() if correction in each.corrections)
        raise ValueError(
            f"The 'params' parameter must name what acts with correction={correction!r}: "
            f"{', '.join(acting)}. Got {name!r}, which does nothing, instead."
        )
    idle = _idle(forest, parameter)
    if idle is not None:
        raise ValueError(
            f"The 'params' parameter must name what acts with {idle}={getattr(forest, idle)!r}. "
            f"Got {name!r}, which does nothing, instead."
        )


def _idle(forest: Any, own: TunedParameter) -> str | None:
    """The parameter whose value makes another one idle, if one does."""
    needs = own.needs or {}
    return next((other for other, fit in needs.items() if getattr(forest, other) not in fit), None)
