"""Prices by label: of groups with a budget of their own, of cells with a supply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray

FALLBACK = "baseline"  # of a unit whose label has no price: it is not decided on


@dataclass(frozen=True, slots=True)
class PartPrices:
    """A price for each label of a column.

    Parameters
    ----------
    column : str
        Name of the column of labels.
    prices : mapping from label to price
        Labels are text or numbers. Prices are not negative.
    unseen : float or "baseline", default="baseline"
        Price of labels that have none, missing ones among them; by default such units get the
        policy's baseline dose, since nobody knows what their part can still take.

    Examples
    --------
    >>> regions = PartPrices("region", {"north": 0.4, "south": 0.0}, unseen=0.1)
    >>> regions.of_units(np.array(["south", "north", "east"]))
    array([0. , 0.4, 0.1])
    """

    column: str
    prices: Mapping[Any, float]
    unseen: float | str = FALLBACK

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ValueError(
                "The 'column' parameter must be the name of a column of labels. "
                f"Got {self.column!r} instead."
            )
        plain = {_label(label): _price(price, "prices") for label, price in self.prices.items()}
        object.__setattr__(self, "prices", plain)
        if self.unseen != FALLBACK:
            object.__setattr__(self, "unseen", _price(self.unseen, "unseen"))

    def of_units(self, labels: Array) -> FloatArray:
        """Price of each unit.

        Parameters
        ----------
        labels : array of shape (n_units,)
            The units' labels.

        Returns
        -------
        array of shape (n_units,)
            Prices; NaN where a label has none and such units get the baseline.
        """
        otherwise = np.nan if isinstance(self.unseen, str) else self.unseen
        result = (self.prices.get(label, otherwise) for label in labels.tolist())
        return np.fromiter(result, np.float64, len(labels))

    def to_json(self) -> dict[str, Any]:
        """Describe the prices by plain values, for a file: labels that are numbers stay numbers.

        Returns
        -------
        dict
            The fields by name.
        """
        pairs = [[label, price] for label, price in self.prices.items()]
        return {"column": self.column, "prices": pairs, "unseen": self.unseen}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> PartPrices:
        """Make prices of plain values.

        Parameters
        ----------
        described : mapping
            What `to_json` made.

        Returns
        -------
        PartPrices
            The prices.
        """
        pairs = [(label, price) for label, price in described["prices"]]
        if len(dict(pairs)) < len(pairs):
            raise ValueError("The 'prices' must name each label once.")
        return cls(described["column"], dict(pairs), described["unseen"])


def _label(label: Any) -> Any:
    plain = label.item() if isinstance(label, np.generic) else label
    if not isinstance(plain, str | Real) or (isinstance(plain, Real) and not isfinite(plain)):
        raise TypeError(
            "The 'prices' parameter must have labels that are text or finite numbers, which a file "
            f"can hold. Got {label!r} instead; write labels of several parts as one text."
        )
    return plain


def _price(price: Any, name: str) -> float:
    if not isinstance(price, Real) or isinstance(price, bool) or not 0 <= float(price) < np.inf:
        rule = " or 'baseline'" if name == "unseen" else ""
        raise ValueError(
            f"The {name!r} parameter must hold finite prices of at least 0{rule}. "
            f"Got {price!r} instead."
        )
    return float(price)
