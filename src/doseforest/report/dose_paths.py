"""Which doses a curve runs through and where on the axis each is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import dose_table, one_dose
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import as_doses, check_doses
from doseforest.report.dose_axes import DoseAxes
from doseforest.report.pictures import SMOOTH_POINTS, DoseMarks

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest

GAP = 0.3  # between arms, each of length 1


@dataclass(frozen=True, slots=True)
class ArmSpan:
    """Where the doses of an arm lie on the axis."""

    arm: float
    low: float  # its lowest and highest dose
    high: float
    start: float  # place of the lowest dose; the highest is 1 further, unless both are the same

    def places(self, doses: FloatArray) -> FloatArray:
        """Places of doses of the arm."""
        width = self.high - self.low
        return self.start + (doses - self.low) / (width if width > 0 else 1.0)

    @property
    def end(self) -> float:
        """Place of the highest dose."""
        return self.start + float(self.high > self.low)


@dataclass(frozen=True, slots=True, eq=False)
class DosePath:
    """Doses from left to right: of one component, or of arms side by side on their own scales."""

    doses: Doses  # (n_drawn,)
    places: FloatArray  # (n_drawn,)
    marks: DoseMarks  # by places, which for one component are the doses
    component: int = 0
    spans: tuple[ArmSpan, ...] = ()
    arm: float | None = None  # the one arm that is drawn

    @property
    def breaks(self) -> FloatArray:
        """Places between arms, where no line may run."""
        lines = [span for span in self.spans if span.end > span.start]
        return np.array([span.start - GAP / 2 for span in lines[1:]])

    @property
    def x(self) -> FloatArray:
        """Places of doses and breaks."""
        return np.concatenate([self.places, self.breaks])

    def broken(self, values: FloatArray) -> FloatArray:
        """Values (..., n_drawn) with NaN at the breaks, (..., n_drawn + n_breaks)."""
        holes = np.full((*values.shape[:-1], len(self.breaks)), np.nan)
        return np.concatenate([values, holes], axis=-1)

    def observed(self, dose: Doses) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Places of observed doses, and which of the rows are of the arms drawn."""
        table = dose.table
        places = table[:, self.component].copy()
        seen = np.full(len(table), not self.spans)
        if self.arm is not None:
            seen = table[:, 0] == self.arm
        for span in self.spans:
            mine = table[:, 0] == span.arm
            places[mine], seen[mine] = span.places(places[mine]), True
        return places[seen], seen

    def label(self, ax: Any) -> None:
        """Name the arms and their lowest and highest doses on the axis."""
        if not self.spans:
            return
        ticks, texts = [], []
        for span in self.spans:
            if span.end == span.start:
                ticks.append(span.start)
                texts.append(f"{span.low:.3g}\narm {span.arm:g}")
                continue
            middle = (span.low + span.high) / 2
            ticks += [span.start, (span.start + span.end) / 2, span.end]
            texts += [f"{span.low:.3g}", f"{middle:.3g}\narm {span.arm:g}", f"{span.high:.3g}"]
        ax.set_xticks(ticks, texts)


def dose_path(
    model: EffectForest,
    axes: DoseAxes,
    *,
    doses: Any = None,
    component: int | None = None,
    at: Any = None,
) -> DosePath:
    """Doses that a curve is drawn over.

    Parameters
    ----------
    doses : array, optional
        Of one component (n_doses,); of arms (n_doses, 2). By default over the forest's grid.
    component : int, optional
        Which of several components changes; arms need none: they are drawn side by side.
    at : array of shape (n_components,), optional
        What the other components are held at; by default the baseline.
    """
    if model.n_components == 1:
        if component not in (None, 0) or at is not None:
            name, got = ("at", at) if at is not None else ("component", component)
            raise ValueError(
                f"The {name!r} parameter must be left out where a dose has one component. "
                f"Got {got!r} instead."
            )
        marks = axes.parts[0]
        drawn = marks.drawn_doses(model.doses) if doses is None else as_doses(doses)
        return DosePath(Doses(drawn), drawn, marks)
    if axes.arms and component is None and at is None:
        return _arms_path(model, axes, doses)
    return _component_path(model, axes, doses, _checked_component(model, axes, component), at)


def _checked_component(model: EffectForest, axes: DoseAxes, component: Any) -> int:
    last = model.n_components - 1
    if axes.arms:
        first, cure = 1, "for curves of every arm leave it and 'at' out"
    else:
        first, cure = 0, "the others stay as 'at' says"
        if model.n_components == 2:
            cure += "; for both at once there is plot.surface"
    if type(component) is not int or not first <= component <= last:
        rule = f"{last}, the dose of the arm" if first == last else f"an int from 0 to {last}"
        raise ValueError(
            f"The 'component' parameter must be {rule}, the component that changes ({cure}). "
            f"Got {component!r} instead."
        )
    return component


def _component_path(
    model: EffectForest, axes: DoseAxes, doses: Any, component: int, at: Any
) -> DosePath:
    start = one_dose(model.baseline if at is None else at, "at", model.n_components)
    held = check_doses(start, model.support, "at").table
    marks = axes.parts[component]
    if doses is not None:
        values = as_doses(doses)
    else:
        table = Doses.of(model.doses).table
        if axes.arms:
            table = table[table[:, 0] == held[0]]
        values = _drawn_values(np.unique(table[:, component]), marks, axes, held)
    if axes.arms and len(values) == 1:
        marks = replace(marks, masses=tuple(values), continuous=False)
    drawn = np.tile(held, (len(values), 1))
    drawn[:, component] = values
    others = ", ".join(
        f"{label} {value:.3g}"
        for k, (label, value) in enumerate(zip(axes.labels, held, strict=True))
        if k != component
    )
    named = replace(marks, dose=f"{marks.dose} ({others})")
    arm = float(held[0]) if axes.arms else None
    return DosePath(Doses.of_table(drawn), values, named, component, arm=arm)


def _drawn_values(
    values: FloatArray, marks: DoseMarks, axes: DoseAxes, held: FloatArray
) -> FloatArray:
    if not len(values):
        raise ValueError(
            f"The 'doses' parameter must be given: the forest's grid has no dose of the arm "
            f"{held[0]:g}."
        )
    if not axes.arms:
        return marks.drawn_doses(values)
    if len(values) == 1:
        return values
    return np.linspace(values[0], values[-1], SMOOTH_POINTS)


def _arms_path(model: EffectForest, axes: DoseAxes, doses: Any) -> DosePath:
    asked = dose_table(model.doses if doses is None else doses, 1, n_components=2)
    table = asked.distinct.table
    arms = np.unique(table[:, 0])
    n_points = max(SMOOTH_POINTS // len(arms), 11)
    spans, drawn, places = [], [], []
    start = 0.0
    for arm in arms:
        amounts = table[table[:, 0] == arm, 1]
        span = ArmSpan(float(arm), float(amounts[0]), float(amounts[-1]), start)
        if doses is None and len(amounts) > 1:
            amounts = np.linspace(amounts[0], amounts[-1], n_points)
        drawn.append(np.column_stack([np.full(len(amounts), arm), amounts]))
        places.append(span.places(amounts))
        spans.append(span)
        start = span.end + GAP
    lone = tuple(span.start for span in spans if span.end == span.start)
    marks = DoseMarks(lone, len(lone) < len(spans), axes.parts[1].dose, axes.outcome)
    drawn_doses = Doses.of_table(np.vstack(drawn))
    return DosePath(drawn_doses, np.concatenate(places), marks, 1, tuple(spans))
