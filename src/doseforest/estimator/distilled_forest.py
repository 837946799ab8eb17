"""A single forest of curves with the effect API, for serving."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.base.late import late
from doseforest.data.feature_table import Categories
from doseforest.doses.boxes import DoseBox, observed_support
from doseforest.doses.curve_effects import CurveEffects, dose_table, each_its_own
from doseforest.doses.curve_interpolation import interpolated
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange, check_doses
from doseforest.doses.levels import DoseLevels
from doseforest.engine.forest import Forest
from doseforest.estimator.answer_frames import FramedAnswers, as_frame, as_series


@dataclass(frozen=True, slots=True, eq=False)
class DistilledForest(FramedAnswers, CurveEffects):
    """Curves of one forest on a grid of doses, linear between them: small and fast.

    `GeneralizedCausalForest.distill` and `load_forest` make it.

    Attributes
    ----------
    forest : Forest
        Its leaves hold the curves.
    baseline : dose
        The dose that effects are measured against.
    error : float
        Root mean square of what effects lose against the full model, out of bag.
    spread : float
        Standard deviation of the full model's effects, to compare the error with.
    grid : array of shape (n_doses,) or None
        The grid, where doses have several components.
    output : {"default", "pandas", "polars"}
        What answers come in, see `set_output`.
    has_levels : bool
        Whether the doses of the grid are levels of the treatment; between them answers come with an
        `OverlapWarning`.
    support : DoseRange or DoseBox
        Doses that it answers for.

    Examples
    --------
    >>> from doseforest.policy import unit_table
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> distilled = unit_table(x, x * [0.0, 1.0], doses=[0.0, 1.0])
    >>> distilled.effect([[0.5]], dose=0.5).round(1)
    array([0.2])
    """

    forest: Forest
    baseline: Any
    error: float
    spread: float
    grid: DoseArray | None = None
    output: str = "default"
    has_levels: bool = False
    support: DoseRange | DoseBox = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", observed_support(self.doses))

    @property
    def doses(self) -> DoseArray:
        """The grid."""
        return np.array(self.forest.doses) if self.grid is None else self.grid

    @property
    def categories(self) -> Categories:
        """Labels of the categorical features."""
        return self.forest.categories

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return 1 if self.grid is None else Doses.of(self.grid).n_components

    def check_asked(self, **asked: Doses) -> None:
        """Refuse doses beyond the grid, and warn of those between levels.

        Parameters
        ----------
        **asked : Doses
            Doses of a call by the names of its parameters.
        """
        for name, doses in asked.items():
            check_doses(doses, self.support, name)
        if self.has_levels:
            every = np.concatenate([doses.values.ravel() for doses in asked.values()])
            DoseLevels(tuple(self.doses.tolist())).warn(every)

    def dose_response(self, X: Any, doses: Any = None) -> FloatArray:
        """Expected outcome of each unit, shape (n_units, n_doses), on a grid or unit by unit."""
        table = self.forest.checked_table(X)
        grid = self.doses
        curves = self.forest.predict(table)
        shown = grid
        if doses is not None:
            own = dose_table(doses, table.n_rows, n_components=self.n_components)
            different = each_its_own(doses, self.n_components) and (own != own[:1]).any()
            asked = own if different else own[:1]
            self.check_asked(doses=asked)
            curves = interpolated(grid, curves, asked.values)
            shown = own.values if different else own.values[0]
        framed: FloatArray = as_frame(curves, shown, X, self.output)
        return framed

    def curves(self, X: FloatArray, doses: DoseArray | None = None) -> FloatArray:
        """Curves of units of a checked table.

        Parameters
        ----------
        X : array of shape (n_units, n_features)
            Features in the order of the training table, categories as codes.
        doses : array of shape (n_doses,) or (n_units, n_doses), optional
            Checked doses; by default the grid.

        Returns
        -------
        array of shape (n_units, n_doses)
            The curves.
        """
        curves = self.forest.curves(X)
        return curves if doses is None else interpolated(self.doses, curves, doses[None])

    def effect(self, X: Any, dose: Any, baseline: Any = None) -> FloatArray:
        """Theta: outcome at `dose` less outcome at `baseline`, by default that of the forest."""
        start = self.baseline if baseline is None else baseline
        effects = CurveEffects.effect(self, X, dose, start)
        named: FloatArray = as_series(effects, "effect", X, self.output)
        return named

    def partial_effect(self, X: Any, first: Any, second: Any) -> FloatArray:
        """Change of the outcome per unit of dose between two doses, shape (n_units,)."""
        slopes = CurveEffects.partial_effect(self, X, first, second)
        named: FloatArray = as_series(slopes, "partial_effect", X, self.output)
        return named

    def effect_interval(self, X: Any, *doses: Any, **options: Any) -> NoReturn:
        """Raise ValueError: a distilled forest has no intervals.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Not read.
        *doses
            Not read.
        **options
            Not read.
        """
        raise ValueError(
            "The 'inference' parameter must be 'bags' for intervals of units' effects; a distilled "
            "forest has none. Ask the forest that it was distilled from, or save that one."
        )

    def save(self, path: str | Path) -> None:
        """Write the forest to one file, which `load_forest` reads.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        late("doseforest.files.distilled_file:save_distilled_forest")(self, path)
