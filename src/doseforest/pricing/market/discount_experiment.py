"""Logs of views with their discounts and outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.pricing.market.discount_assignment import EXPERIMENT, rule_of
from doseforest.pricing.market.market_draws import LOGS, checked_seed, uniforms
from doseforest.pricing.market.traffic import FEATURES, WHOLE

if TYPE_CHECKING:
    from doseforest.pricing.market.marketplace import Marketplace

KINDS = {
    "propensity": "f8",
    "cell": "i4",
    "day": "i2",
    "drivers": "i4",
    "option": "i1",
    "requested": "i1",
    "finished": "i1",
    "wait_minutes": "f8",
    "revenue": "f8",
    "cost": "f8",
}  # types of the columns in tables, beside features and discounts


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Views, their discounts, and what became of them.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Features.
    treatment : array of shape (n_rows,) or (n_rows, 2)
        Discounts.
    propensity : array of shape (n_rows,)
        Density of the discounts given X.
    cell, day : array of int of shape (n_rows,)
        Cell and day of the view.
    drivers : array of int of shape (n_rows,)
        Idle drivers in the cell on that day.
    option : array of int of shape (n_rows,)
        Option that was requested; -1 for none.
    requested : array of shape (n_rows,)
        1 for a request.
    finished : array of shape (n_rows,)
        1 for a finished order.
    wait_minutes : array of shape (n_rows,)
        Waiting time; NaN without an order.
    revenue : array of shape (n_rows,)
        What the rider paid.
    cost : array of shape (n_rows,)
        Cost of the discount.

    Examples
    --------
    >>> from doseforest.pricing.market import Marketplace
    >>> drawn = draw_experiment(Marketplace("mixed"), n_rows=100, seed=1)
    >>> drawn.X.shape, drawn.treatment.shape
    ((100, 16), (100,))
    >>> bool((drawn.finished <= drawn.requested).all())
    True
    """

    X: FloatArray = field(repr=False)  # (n_rows, n_features)
    treatment: FloatArray = field(repr=False)  # (n_rows,)
    propensity: FloatArray = field(repr=False)  # (n_rows,)
    cell: IntArray = field(repr=False)  # (n_rows,)
    day: IntArray = field(repr=False)  # (n_rows,)
    drivers: IntArray = field(repr=False)  # (n_rows,)
    option: IntArray = field(repr=False)  # (n_rows,)
    requested: FloatArray = field(repr=False)  # (n_rows,)
    finished: FloatArray = field(repr=False)  # (n_rows,)
    wait_minutes: FloatArray = field(repr=False)  # (n_rows,)
    revenue: FloatArray = field(repr=False)  # (n_rows,)
    cost: FloatArray = field(repr=False)  # (n_rows,)

    def __len__(self) -> int:
        return len(self.requested)

    def columns(self) -> dict[str, Array]:
        """Columns of a table by name, in types that hold them without loss.

        Returns
        -------
        dict of arrays
            By name.
        """
        table: dict[str, Array] = {
            name: self.X[:, place].astype(np.int32 if name in WHOLE else np.float32)
            for place, name in enumerate(FEATURES)
        }
        names = ("discount",) if self.treatment.ndim == 1 else ("discount", "shared_discount")
        doses = self.treatment.reshape(len(self), -1)
        table |= {name: doses[:, place] for place, name in enumerate(names)}
        return table | {name: getattr(self, name).astype(kind) for name, kind in KINDS.items()}


def draw_experiment(
    market: Marketplace,
    n_rows: int = 10_000,
    seed: int = 0,
    assignment: str = EXPERIMENT,
    log_share: float = 1.0,
) -> Experiment:
    """Draw the first rows of an experiment over cells and days in a random order.

    Parameters
    ----------
    market : Marketplace
        The marketplace.
    n_rows : int, default=10_000
        Number of rows.
    seed : int, default=0
        The rows of a smaller experiment with the same seed are the first of a larger one.
    assignment : {"levels", "continuous", "history", "history_continuous"}, default="levels"
        Randomised discounts (six levels, or any), or confounded ones.
    log_share : float, default=1.0
        Share of the views that are logged, at random. All views of a visit have about 20 rows that
        are alike; a small share spreads few rows over the whole city.

    Returns
    -------
    Experiment
        The rows.

    Examples
    --------
    >>> from doseforest.pricing.market import Marketplace
    >>> sorted(set(draw_experiment(Marketplace(), n_rows=500).treatment.tolist()))
    [0.0, 0.06, 0.12, 0.18, 0.24, 0.3]
    """
    pieces = list(
        experiment_pieces(market, checked_rows(n_rows), checked_seed(seed), assignment, log_share)
    )
    names = Experiment.__slots__
    joined = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in names}
    return Experiment(**joined)


def experiment_pieces(
    market: Marketplace, n_rows: int, seed: int, assignment: str, log_share: Any = 1.0
) -> Iterator[Experiment]:
    """Blocks of visits with their outcomes, cut off after so many rows."""
    rule, left, share = rule_of(assignment), n_rows, _checked_share(log_share)
    for traffic in market.blocks(seed):
        doses = market.assigned(traffic, assignment, seed)
        result = market.draw_results(traffic, doses, seed)
        chance = uniforms(seed, LOGS, traffic.visit_keys[traffic.visit], traffic.rank)
        kept = np.flatnonzero(chance < share)[:left]
        yield Experiment(
            X=traffic.X[kept],
            treatment=doses[kept, 0] if market.n_options == 1 else doses[kept],
            propensity=rule.density(doses[kept], traffic.X[kept]),
            cell=traffic.cells[kept],
            day=traffic.days[kept],
            drivers=traffic.drivers[traffic.visit][kept],
            option=result.option[kept],
            requested=result.requests[kept],
            finished=result.orders[kept],
            wait_minutes=result.wait_minutes[kept],
            revenue=result.revenue[kept],
            cost=result.cost[kept],
        )
        left -= len(kept)
        if left <= 0:
            return
    raise ValueError(
        f"The 'n_rows' parameter must be at most {n_rows - left:,}, the logged views of a season. "
        f"Got {n_rows:,} instead."
    )


def checked_rows(n_rows: Any, name: str = "n_rows") -> int:
    """A number of rows, or an error."""
    if not isinstance(n_rows, Integral) or isinstance(n_rows, bool) or n_rows < 1:
        raise ValueError(
            f"The {name!r} parameter must be an int of at least 1. Got {n_rows!r} instead."
        )
    return int(n_rows)


def _checked_share(share: Any) -> float:
    if not isinstance(share, Real) or isinstance(share, bool) or not 0 < float(share) <= 1:
        raise ValueError(
            f"The 'log_share' parameter must be a number in (0, 1]. Got {share!r} instead."
        )
    return float(share)
