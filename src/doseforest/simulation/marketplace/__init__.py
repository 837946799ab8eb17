"""A ride-hailing marketplace with exact counterfactuals; see docs/marketplace.md.

Examples
--------
>>> market = Marketplace("mixed")
>>> simulation = market.draw(n=200, seed=0)
>>> simulation.effect([0.1, 0.3]).shape
(200, 2)
"""

from __future__ import annotations

from doseforest.simulation.marketplace.assignment import ASSIGNMENTS, Assignment
from doseforest.simulation.marketplace.budgets import flat_discount
from doseforest.simulation.marketplace.city import City, make_city
from doseforest.simulation.marketplace.experiment import Experiment, draw_experiment
from doseforest.simulation.marketplace.files import PAPER_ROWS, write_experiment
from doseforest.simulation.marketplace.market import Marketplace
from doseforest.simulation.marketplace.matching import expected_orders
from doseforest.simulation.marketplace.oracle import oracle_plan
from doseforest.simulation.marketplace.outcomes import DrawnOutcomes, ExpectedOutcomes
from doseforest.simulation.marketplace.plots import (
    plot_city,
    plot_hours,
    plot_marketplace,
    plot_matching,
    plot_request_curves,
)
from doseforest.simulation.marketplace.policies import plan_of
from doseforest.simulation.marketplace.regimes import LEVELS, MAX_DISCOUNT, REGIMES, Regime
from doseforest.simulation.marketplace.traffic import FEATURES, Traffic

__all__ = [
    "ASSIGNMENTS",
    "FEATURES",
    "LEVELS",
    "MAX_DISCOUNT",
    "PAPER_ROWS",
    "REGIMES",
    "Assignment",
    "City",
    "DrawnOutcomes",
    "ExpectedOutcomes",
    "Experiment",
    "Marketplace",
    "Regime",
    "Traffic",
    "draw_experiment",
    "expected_orders",
    "flat_discount",
    "make_city",
    "oracle_plan",
    "plan_of",
    "plot_city",
    "plot_hours",
    "plot_marketplace",
    "plot_matching",
    "plot_request_curves",
    "write_experiment",
]
