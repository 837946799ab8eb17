"""A ride-hailing marketplace with exact counterfactuals; see docs/marketplace.md.

Examples
--------
>>> market = Marketplace("mixed")
>>> simulation = market.draw(n=200, seed=0)
>>> simulation.effect([0.1, 0.3]).shape
(200, 2)
"""

from __future__ import annotations

from doseforest.pricing.market.budgets import flat_discount
from doseforest.pricing.market.city import City, make_city
from doseforest.pricing.market.discount_assignment import ASSIGNMENTS, Assignment
from doseforest.pricing.market.discount_experiment import Experiment, draw_experiment
from doseforest.pricing.market.discount_policies import plan_of
from doseforest.pricing.market.experiment_files import PAPER_ROWS, write_experiment
from doseforest.pricing.market.market_plots import (
    plot_city,
    plot_hours,
    plot_marketplace,
    plot_matching,
    plot_request_curves,
)
from doseforest.pricing.market.marketplace import Marketplace
from doseforest.pricing.market.matching import expected_orders
from doseforest.pricing.market.oracle import oracle_plan
from doseforest.pricing.market.regimes import LEVELS, MAX_DISCOUNT, REGIMES, Regime
from doseforest.pricing.market.traffic import FEATURES, Traffic
from doseforest.pricing.market.view_outcomes import DrawnOutcomes, ExpectedOutcomes

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
