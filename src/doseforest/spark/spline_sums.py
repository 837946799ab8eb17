"""The spline core of a cluster: for all rows and without each fold, in four passes over the rows.

The steps are those of `doseforest.nuisance.outcome.spline_core`. Sums of products are kept by fold,
so one pass serves every fit; penalties of a fit without a fold are chosen by its other folds.
"""

from __future__ import annotations

import numpy as np

from doseforest.doses.bases.spline_products import SplineProductBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.nuisance.outcome.spline_core import choose_terms
from doseforest.nuisance.outcome.spline_design import SplineDesign
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.spark.cluster_units import Units
from doseforest.spark.feature_summaries import FeatureSummaries

MOST_TERMS = 150  # that a fit may choose from: products of all that some fit wants are summed


def fit_cores(
    units: Units,
    summaries: FeatureSummaries,
    basis: SplineBasis | SplineProductBasis,
    level: float,
) -> tuple[SplineCore, ...]:
    """Fit a core without each fold, and last one with all rows; `level` is the mean outcome."""
    empty = np.zeros((0, units.n_numbers)), np.zeros(0)
    design = SplineDesign(*empty, summaries.terms, basis)
    choices = choose_terms(
        units, design, summaries.knots, level, without_folds=True, most=MOST_TERMS
    )
    return tuple(choice.core(level) for choice in choices)
