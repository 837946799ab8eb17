"""Encoders of categories as JSON and named arrays, and back with checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from doseforest.base.dtypes import MAX_FEATURES, Array, FloatArray
from doseforest.doses.stored_values import FLOATS
from doseforest.nuisance.encoding.category_encoding import CategoryEncoder, ColumnEncoding
from doseforest.nuisance.outcome.stored_outcome_parts import CHECKS

MOST_CODES = 2**31


def store_encoder(encoder: CategoryEncoder, prefix: str) -> tuple[list[Any], dict[str, Array]]:
    """Take an encoder apart into plain JSON and named arrays.

    >>> column = ColumnEncoding(2, 3, np.array([0, 3]), np.zeros((4, 1)))
    >>> described, arrays = store_encoder(CategoryEncoder(5, (column,)), "outcome")
    >>> described, list(arrays)
    ([{'feature': 2, 'n_codes': 3, 'indicators': [0, 3]}], ['outcome/encoder/2'])
    """
    described = [
        {
            "feature": int(own.feature),
            "n_codes": int(own.n_codes),
            "indicators": own.indicators.tolist(),
        }
        for own in encoder.columns
    ]
    return described, {f"{prefix}/encoder/{own.feature}": own.learned for own in encoder.columns}


def read_encoder(
    described: Any, arrays: Mapping[str, Array], prefix: str, n_features: int
) -> CategoryEncoder:
    """Put an encoder together that `store_encoder` took apart.

    Raises
    ------
    ForestFileError
        Features are out of order, or numbers do not fit their codes.
    """
    CHECKS.require(isinstance(described, list) and len(described) > 0, "has an empty encoder")
    columns: list[ColumnEncoding] = []
    for own in described:
        least = columns[-1].feature + 1 if columns else 0
        feature = CHECKS.count(own, "feature", least, n_features - 1)
        n_codes, indicators = CHECKS.count(own, "n_codes", 0, MOST_CODES), own["indicators"]
        CHECKS.require(
            isinstance(indicators, list)
            and all(type(code) is int and 0 <= code <= n_codes for code in indicators)
            and sorted(set(indicators)) == indicators,
            "has indicators of codes that there are not",
        )
        name = f"{prefix}/encoder/{feature}"
        learned: FloatArray = CHECKS.array(arrays, name, FLOATS, 2)
        CHECKS.require(len(learned) == n_codes + 1, "has not one number per code")
        CHECKS.moderate(learned, name)
        codes = np.array(indicators, np.int64)
        columns.append(ColumnEncoding(feature, n_codes, codes, learned))
    encoder = CategoryEncoder(n_features, tuple(columns))
    CHECKS.require(1 <= encoder.n_columns <= MAX_FEATURES, "has an encoder with too many columns")
    return encoder
