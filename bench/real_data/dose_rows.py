"""A data set as a forest takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.real_data.data_folder import Frame
from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.treatment.known_densities import Strata


@dataclass(frozen=True, slots=True, eq=False)
class DoseRows:
    """Covariates, outcomes and doses, with what is known of how doses were assigned.

    Examples
    --------
    >>> rows = DoseRows(np.eye(3), np.arange(3.0), np.ones(3), density=Strata(np.array([1, 1, 2])))
    >>> part = rows.take(np.array([True, False, True]))
    >>> part.y, part.density.labels
    (array([0., 2.]), array([1, 2]))
    """

    X: Frame  # (n_rows, n_features)
    y: FloatArray  # (n_rows,)
    treatment: FloatArray  # (n_rows,)
    density: Any = "auto"  # of GeneralizedCausalForest: "auto", Strata, or (n_rows, n_levels)
    groups: Any = None  # (n_rows,) rows that are not independent share a label

    def __len__(self) -> int:
        return len(self.y)

    def take(self, kept: NDArray[np.bool_]) -> DoseRows:
        """Those rows where `kept`, of shape (n_rows,), is true."""
        density = self.density
        if isinstance(density, Strata):
            density = Strata(density.labels[kept])
        elif isinstance(density, np.ndarray):
            density = density[kept]
        groups = None if self.groups is None else self.groups[kept]
        return DoseRows(self.X[kept], self.y[kept], self.treatment[kept], density, groups)
