"""What every correction gives: corrected curves for new units, and what it adds to its own rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from doseforest.base.dtypes import FloatArray
from doseforest.estimator.effect_forest import Correction


class AddedCurves(Protocol):
    """What a correction adds to the out-of-fold curves of the training rows, out of bag."""

    def curves(self, doses: FloatArray) -> FloatArray:
        """Additions at each dose of a grid, shape (n_rows, n_doses)."""

    def observed(self, dose: FloatArray) -> FloatArray:
        """Additions at each row's own dose, shape (n_rows,)."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedCorrection:
    """A correction, what it adds to the rows that it was fitted to, and how it came about."""

    correction: Correction
    added: AddedCurves
    report: tuple[Mapping[str, Any], ...]  # one for each round: what was chosen, what it gained
    treatment_means: str | None = None  # "known", "partly known", "estimated"; None: not used
