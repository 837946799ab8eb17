"""The study of policies in the marketplace, on a few rows with weak models."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from bench.studies.market import market_study
from bench.studies.market.market_part import (
    CF,
    EXACT,
    FLAT,
    GCF,
    NOTHING,
    ORACLE,
    MarketEffort,
    measure,
)
from bench.studies.market.market_study import PARTS, MarketplaceStudy
from bench.studies.market.market_tables import increments, report, shares
from bench.studies.request import Request
from bench.studies.study_workers import Clock

pytestmark = pytest.mark.filterwarnings("ignore")  # small forests
SMALL = MarketEffort(
    n_train=1000,
    n_trees=8,
    n_cf_trees=8,
    outcome_model=LinearRegression(),
    cells_apart=(500, 1000),
)


@pytest.fixture(scope="module")
def records():
    return [own for seed in (1, 2) for own in measure("nonlinear", 1, seed, SMALL)]


def test_all_policies_cost_the_budget_and_exact_curves_bring_most(records):
    for seed in (1, 2):
        own = {record["row"]: record for record in records if record["seed"] == seed}
        budget = own[FLAT]["cost"]
        for name, record in own.items():
            if name != NOTHING:
                # A price is a step function: the last rider may not fit into the budget.
                assert 0.97 * budget <= record["cost"] <= budget * (1 + 1e-12), name
        most = max(own.values(), key=lambda record: record["orders"])
        assert most["row"] == ORACLE


def test_shares_and_increments_are_those_of_the_orders(records):
    by_row = {(own["row"], own["seed"]): own["orders"] for own in records}
    gain = by_row[GCF, 1] - by_row[NOTHING, 1]
    assert shares(records, "nonlinear", GCF)[0] == pytest.approx(
        gain / (by_row[ORACLE, 1] - by_row[NOTHING, 1])
    )
    np.testing.assert_allclose(shares(records, "nonlinear", ORACLE), 1.0)
    found = increments(records, "nonlinear", CF, extra=False)[1]
    assert found == pytest.approx(by_row[GCF, 2] / by_row[CF, 2] - 1)


def test_the_report_has_a_line_for_each_regime_and_its_bars(records):
    made = report(records, SMALL)
    text = "\n".join(made.parts)
    assert "Seeds by regime: nonlinear 2" in text
    assert "over boosting" in text
    assert len(made.verdicts) == 3
    assert (shares(records, "nonlinear", EXACT) > 0.9).all()  # crowding is all that it lacks


def test_a_single_seed_has_no_intervals_and_no_verdicts(records):
    made = report([own for own in records if own["seed"] == 1], SMALL)
    assert made.verdicts == []


def test_two_discounts_are_measured_too():
    own = {record["row"]: record for record in measure("mixed", 2, 3, SMALL)}
    assert own[ORACLE]["orders"] > own[FLAT]["orders"]


def test_parts_are_kept_until_they_are_asked_for_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(market_study, "digest_of_market", lambda regime, options: regime)
    measured = []

    def fake(regime, options, seed, effort):
        measured.append((regime, options, seed))
        if regime == "linear" and seed == 2:
            raise RuntimeError("no luck")
        names = (NOTHING, FLAT, EXACT, ORACLE, GCF, CF, "boosting", "GCF's outcome model")
        return [
            {"design": regime, "seed": seed, "row": name, "orders": 0.1 + place + 0.01 * seed}
            for place, name in enumerate(names)
        ]

    monkeypatch.setattr(market_study, "measure", fake)
    own = MarketplaceStudy("about", ("engine",), SMALL)
    request = Request(designs=("mixed", "linear"), simulations=2, seed=1, processes=1, out=tmp_path)
    _, complete = own.run(request, Clock())
    assert not complete
    assert len(measured) == 4
    own.run(request, Clock())
    assert measured[4:] == [("linear", 1, 2)]
    assert set(PARTS) == {"linear", "mixed", "nonlinear", "linear-dual", "mixed-dual",
                          "nonlinear-dual"}  # fmt: skip
