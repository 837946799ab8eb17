"""What a picture knows of a dose: its components, their names, and whether the first is an arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doseforest.base.dtypes import DoseArray
from doseforest.doses.bases.arms import ArmsBasis, has_arms
from doseforest.doses.bases.dose_basis import component_of
from doseforest.doses.dose_labels import default_labels
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.report.pictures import DoseMarks

if TYPE_CHECKING:
    from doseforest.estimator.fitted import Fitted


@dataclass(frozen=True, slots=True)
class DoseAxes:
    """Each component of a dose as it is drawn.

    Examples
    --------
    >>> axes = DoseAxes((DoseMarks(dose="price"), DoseMarks(dose="coupon")))
    >>> axes.labels, axes.told((0.5, 0.25)), DoseAxes((DoseMarks(),)).told(0.5)
    (('price', 'coupon'), '(0.5, 0.25)', 'dose 0.5')
    """

    parts: tuple[DoseMarks, ...]  # (n_components,)
    arms: bool = False  # the first of two components is an arm, the second its dose

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the components."""
        return tuple(part.dose for part in self.parts)

    @property
    def outcome(self) -> str:
        """Name of the outcome."""
        return self.parts[0].outcome

    def told(self, dose: Any, digits: int = 4) -> str:
        """A dose as text, by its name where it has one component."""
        text = dose_text(dose, digits)
        return text if len(self.parts) > 1 else f"{self.parts[0].dose} {text}"


def fitted_axes(fitted: Fitted) -> DoseAxes:
    """Components as the training rows show them."""
    labels, outcome = fitted.labels
    marks = (
        DoseMarks(ground.masses, ground.continuous, label, outcome)
        for ground, label in zip(fitted.grounds, labels, strict=True)
    )
    arms = isinstance(fitted.plan.basis, ArmsBasis) or has_arms(fitted.rows.dose)
    return DoseAxes(tuple(marks), arms)


def known_axes(bases: list[Any], grid: DoseArray) -> DoseAxes:
    """Components as the bases of corrections know them, without training rows."""
    width, own = Doses.of(grid).n_components, [basis for basis in bases if basis is not None]
    arms = any(isinstance(basis, ArmsBasis) for basis in own) or (not own and has_arms(grid))
    labels = default_labels(width, arms)
    return DoseAxes(tuple(_known_marks(own, k, label) for k, label in enumerate(labels)), arms)


def _known_marks(bases: list[Any], place: int, label: str) -> DoseMarks:
    for basis in bases:
        part = component_of(basis, place)
        if hasattr(part, "levels"):
            return DoseMarks(tuple(part.levels), continuous=False, dose=label)
        if hasattr(part, "masses"):
            return DoseMarks(tuple(part.masses), dose=label)
    return DoseMarks(dose=label)
