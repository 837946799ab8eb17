"""The marketplace: views, the exact answer of each to any discount, and what a plan brings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.datasets.simulation import Simulation, cell_middles
from doseforest.doses.curve_effects import dose_table
from doseforest.pricing.market import market_draws
from doseforest.pricing.market.city import City, make_city
from doseforest.pricing.market.demand import request_probabilities, tastes_of
from doseforest.pricing.market.discount_assignment import EXPERIMENT, rule_of
from doseforest.pricing.market.discount_experiment import draw_experiment
from doseforest.pricing.market.discount_policies import plan_of
from doseforest.pricing.market.market_inputs import checked_cells, checked_days, checked_views
from doseforest.pricing.market.matching import service_probabilities
from doseforest.pricing.market.regimes import (
    BASELINE,
    MAX_DISCOUNT,
    OPTIONS,
    REGIMES,
    MobilityOption,
    Regime,
)
from doseforest.pricing.market.traffic import FEATURES, Traffic, draw_traffic
from doseforest.pricing.market.view_outcomes import (
    DrawnOutcomes,
    ExpectedOutcomes,
    draw_outcomes,
    expected_outcomes,
)

Generator = np.random.Generator
SPREAD = 0.05  # share of views that simulations have, one or two of a visit
BLOCK_VISITS = 4096  # drawn at a time; results do not depend on it
EVALUATED = {1: 15, 2: 5}  # doses of errors, along each discount


@dataclass(frozen=True)
class Marketplace:
    """A ride-hailing city whose riders' answers to discounts have exact formulas.

    One row is one price view: a rider sees the fare of a trip, less a discount, and requests it or
    not; a request becomes a finished order when it finds an idle driver.

    Parameters
    ----------
    regime : {"linear", "mixed", "nonlinear"}, default="mixed"
        How riders answer discounts.
    n_options : {1, 2}, default=1
        With 2 there is a shared ride beside the express one, with another discount.

    Examples
    --------
    >>> market = Marketplace("nonlinear")
    >>> traffic = market.draw_traffic(days=2, cells=[0, 1, 2], seed=0)
    >>> traffic.n_visits, traffic.X.shape[1]
    (6, 16)
    >>> none, some = (market.expected(traffic, policy).orders.sum() for policy in (0.0, 0.2))
    >>> bool(some > none)
    True
    """

    regime: str = "mixed"
    n_options: int = 1

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            names = ", ".join(map(repr, REGIMES))
            raise ValueError(
                f"The 'regime' parameter must be one of {names}. Got {self.regime!r} instead."
            )
        if self.n_options not in EVALUATED or isinstance(self.n_options, bool):
            raise ValueError(
                f"The 'n_options' parameter must be 1 or 2. Got {self.n_options!r} instead."
            )

    @property
    def city(self) -> City:
        """Zones and cells, the same for all marketplaces."""
        return make_city()

    @property
    def n_cells(self) -> int:
        """Number of cells: origin, destination and hour."""
        return self.city.n_cells

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return FEATURES

    @property
    def options(self) -> tuple[MobilityOption, ...]:
        """What riders choose from."""
        return OPTIONS[: self.n_options]

    @property
    def table(self) -> Regime:
        """Parameters of the regime."""
        return REGIMES[self.regime]

    @cached_property
    def fare_shares(self) -> FloatArray:
        """Fare of each option over that of the first, shape (n_options,)."""
        return np.array([option.fare_share for option in self.options])

    # Exact answers of single views.

    def option_probabilities(self, X: Any, doses: Any) -> FloatArray:
        """Exact probability that each option is requested.

        Parameters
        ----------
        X : array of shape (n_views, n_features)
            Features of views.
        doses : array of shape (n_views, n_doses) or, with two options, (n_views, n_doses, 2)
            Discounts.

        Returns
        -------
        array of shape (n_views, n_doses, n_options)
            The probabilities.
        """
        units, table = checked_views(X, doses, self.n_options)
        tastes = tastes_of(units, self.table, self.options)
        return request_probabilities(table, tastes, self.table)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact probability of a request, of any option.

        Parameters
        ----------
        doses : array of shape (n_views, n_doses) or, with two options, (n_views, n_doses, 2)
            Discounts.
        X : array of shape (n_views, n_features)
            Features of views.

        Returns
        -------
        array of shape (n_views, n_doses)
            The probabilities.
        """
        total: FloatArray = self.option_probabilities(X, doses).sum(axis=2)
        return total

    def fares(self, X: FloatArray) -> FloatArray:
        """Fare of each option without discount.

        Parameters
        ----------
        X : array of shape (n_views, n_features)
            Features of views.

        Returns
        -------
        array of shape (n_views, n_options)
            The fares.
        """
        fares: FloatArray = X[:, FEATURES.index("fare")][:, None] * self.fare_shares
        return fares

    # Views, and what becomes of them under a plan.

    def draw_traffic(self, *, days: Any = 7, cells: Any = None, seed: int = 0) -> Traffic:
        """Draw all views of cells on days.

        Parameters
        ----------
        days : int or array of int, default=7
            Number of days from the first on, or the days themselves; day 0 is a Monday.
        cells : array of int, optional
            By default all of them.
        seed : int, default=0
            Seed of the traffic.

        Returns
        -------
        Traffic
            The views.
        """
        own_days = checked_days(days, self.city.settings.season_days)
        own_cells = checked_cells(cells, self.n_cells)
        visited = np.tile(own_cells, len(own_days)), np.repeat(own_days, len(own_cells))
        return draw_traffic(self.city, *visited, market_draws.checked_seed(seed))

    def plan(self, policy: Any, traffic: Traffic) -> FloatArray:
        """Discounts of a policy for views.

        Parameters
        ----------
        policy : number, array, callable or object with a method ``decide``
            The same discount for all, one for each view, or what makes discounts of ``X``.
        traffic : Traffic
            The views.

        Returns
        -------
        array of shape (n_views, n_options)
            The discounts.
        """
        return plan_of(policy, traffic.X, self.n_options)

    def expected(self, traffic: Traffic, policy: Any) -> ExpectedOutcomes:
        """Exact expectations for each view where all views of a visit compete for its drivers.

        Parameters
        ----------
        traffic : Traffic
            The views.
        policy : policy
            As in `plan`.

        Returns
        -------
        ExpectedOutcomes
            Requests, orders, revenue and cost.
        """
        doses = self.plan(policy, traffic)
        return expected_outcomes(
            self._chosen(traffic, doses), self.fares(traffic.X), doses, traffic
        )

    def order_curves(self, traffic: Traffic, doses: Any, policy: Any) -> FloatArray:
        """Exact probability of a finished order of each view at doses.

        All other views have the discounts of the policy. What one rider's discount takes from
        those who come later is not in the curve, but in the sums of `expected`.

        Parameters
        ----------
        traffic : Traffic
            The views.
        doses : array of shape (n_doses,) or (n_views, n_doses), with two options one axis more
            Discounts.
        policy : policy
            As in `plan`.

        Returns
        -------
        array of shape (n_views, n_doses)
            The probabilities.
        """
        table = dose_table(doses, len(traffic), n_components=self.n_options).plain
        requests = self.expected(traffic, policy).requests
        served = service_probabilities(requests, traffic)
        return self.mean(table, traffic.X) * served[:, None]

    def draw_results(self, traffic: Traffic, policy: Any, seed: int = 0) -> DrawnOutcomes:
        """Draw what happens to each view; the luck of a rider is the same under any policy.

        Parameters
        ----------
        traffic : Traffic
            The views.
        policy : policy
            As in `plan`.
        seed : int, default=0
            Seed of the luck.

        Returns
        -------
        DrawnOutcomes
            Requests, orders, waits, revenue and cost.
        """
        doses, seed = self.plan(policy, traffic), market_draws.checked_seed(seed)
        chosen, fares = self._chosen(traffic, doses), self.fares(traffic.X)
        return draw_outcomes(chosen, fares, doses, traffic, seed)

    def _chosen(self, traffic: Traffic, doses: FloatArray) -> FloatArray:
        return self.option_probabilities(traffic.X, doses[:, None, :])[:, 0]

    # Experiments.

    def blocks(self, seed: int = 0) -> Iterator[Traffic]:
        """Draw traffic of the whole season in a random order of cells and days, block by block.

        Parameters
        ----------
        seed : int, default=0
            Seed of the order and of the traffic.

        Yields
        ------
        Traffic
            A block of visits.
        """
        n_visits = self.n_cells * self.city.settings.season_days
        seed = market_draws.checked_seed(seed)
        for start in range(0, n_visits, BLOCK_VISITS):
            places = np.arange(start, min(start + BLOCK_VISITS, n_visits))
            days, cells = np.divmod(market_draws.shuffled(places, n_visits, seed), self.n_cells)
            yield draw_traffic(self.city, cells, days, seed)

    def assigned(self, traffic: Traffic, assignment: str, seed: int) -> FloatArray:
        """Discounts of views by one of the ASSIGNMENTS.

        Parameters
        ----------
        traffic : Traffic
            The views.
        assignment : {"levels", "continuous", "history", "history_continuous"}
            Randomised discounts (six levels, or any), or confounded ones.
        seed : int
            Seed of the draw.

        Returns
        -------
        array of shape (n_views, n_options)
            The discounts.
        """
        keys = traffic.visit_keys[traffic.visit]
        chances = [
            market_draws.uniforms(
                seed, market_draws.DISCOUNTS, keys, traffic.rank * len(OPTIONS) + option
            )
            for option in range(self.n_options)
        ]
        return rule_of(assignment).doses(traffic.X, np.stack(chances, axis=1))

    def draw(self, n: int = 2000, seed: int = 0, assignment: str = EXPERIMENT) -> Simulation:
        """Draw requests of an experiment as a simulation with its exact curves.

        Rows are spread over the city, one or two for each cell and day.

        Parameters
        ----------
        n : int, default=2000
            Number of rows.
        seed : int, default=0
            Seed of the draw.
        assignment : {"levels", "continuous", "history", "history_continuous"}, default="levels"
            Randomised discounts (six levels, or any), or confounded ones.

        Returns
        -------
        Simulation
            Rows, and the exact probability of a request at any discount.
        """
        drawn = draw_experiment(self, n, seed, assignment, log_share=SPREAD)
        axis = cell_middles(0.0, MAX_DISCOUNT, EVALUATED[self.n_options])
        square = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
        return Simulation(
            name=f"marketplace, {self.regime}",
            description=self.table.description,
            X=drawn.X,
            treatment=drawn.treatment,
            y=drawn.requested,
            doses=axis if self.n_options == 1 else square,
            baseline=BASELINE if self.n_options == 1 else (BASELINE, BASELINE),
            population=self,
        )

    # What a population of `simulation.design` has beside `mean`.

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """Draw features of views.

        Parameters
        ----------
        n_units : int
            Number of views.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array of shape (n_units, n_features)
            The features.
        """
        return draw_experiment(self, n_units, int(rng.integers(2**62)), log_share=SPREAD).X

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Draw randomised levels of the discount.

        Parameters
        ----------
        X : array of shape (n_views, n_features)
            Features of views.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array of shape (n_views,) or (n_views, 2)
            The discounts.
        """
        doses = rule_of(EXPERIMENT).doses(X, rng.random((len(X), self.n_options)))
        return doses[:, 0] if self.n_options == 1 else doses

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """Standard deviation of a request or none: sqrt(p (1 - p)).

        Parameters
        ----------
        mean : array of shape (n_views, n_doses)
            Probabilities of a request.
        X : array of shape (n_views, n_features)
            Features of views.

        Returns
        -------
        array of shape (n_views, n_doses)
            The standard deviations.
        """
        scale: FloatArray = np.sqrt(mean * (1.0 - mean))
        return scale

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Draw requests: 1 for a request, else 0.

        Parameters
        ----------
        mean : array of shape (n_views, n_doses)
            Probabilities of a request.
        X : array of shape (n_views, n_features)
            Features of views.
        rng : numpy.random.Generator
            The generator.

        Returns
        -------
        array of shape (n_views, n_doses)
            The requests.
        """
        return (rng.random(mean.shape) < mean).astype(np.float64)
