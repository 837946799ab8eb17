"""Categories as numbers from sums over a cluster, see `doseforest.nuisance.encoding`.

Learned numbers of a training row come from the rows of the other folds, as all that is said of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.binning import MAX_CATEGORIES, FeatureBins
from doseforest.data.row_blocks import NUMBERS, RowBlock
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.encoding.category_encoding import (
    CategoryEncoder,
    encode_out_of_fold,
    fit_encoders,
)
from doseforest.spark.cluster_units import Units
from doseforest.spark.fold_forests import BINS, CODE_BINS, BinnedFeatures


def encode_units(
    units: Units, counts: Mapping[int, int], n_components: int = 1
) -> CategoryEncoder | None:
    """Add the covariates as numbers to every block; the encoder of all rows is for new units.

    Parameters
    ----------
    counts : mapping
        Number of codes of each categorical feature; where there is none, nothing is done.
    n_components : int
        Of the dose.
    """
    if not counts:
        return None

    def columns(block: RowBlock) -> FloatArray:
        doses = Doses.of(block.dose).table
        return np.column_stack([block.y, doses, doses])

    encoders = fit_encoders(units, counts, columns, n_targets=1 + n_components)
    units.add("categories as numbers", lambda block: {NUMBERS: encode_out_of_fold(encoders, block)})
    units.n_numbers = encoders[-1].n_columns
    return encoders[-1]


def split_features(
    numbers: FeatureBins, encoder: CategoryEncoder | None, counts: Mapping[int, int]
) -> BinnedFeatures:
    """The covariates as trees split on them: sets of codes, where the others have their bins.

    Parameters
    ----------
    numbers : FeatureBins
        Of the covariates as numbers: those that are no categories come first.
    """
    if encoder is None:
        return BinnedFeatures(numbers, BINS)
    starts = numbers.edge_starts
    edges = {
        feature: numbers.edges[starts[place] : starts[place + 1]]
        for place, feature in enumerate(encoder.numeric.tolist())
    }
    for feature, n_codes in counts.items():
        edges[feature] = 0.5 + np.arange(min(n_codes, MAX_CATEGORIES) - 1, dtype=np.float64)
    listed = [edges[feature] for feature in range(encoder.n_features)]
    places = np.cumsum([0, *(len(each) for each in listed)], dtype=np.int64)
    return BinnedFeatures(FeatureBins(np.concatenate(listed), places), CODE_BINS, counts)
