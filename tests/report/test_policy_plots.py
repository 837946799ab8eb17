"""Pictures of plans: the right numbers in the right artists, and nothing shown on its own."""

import re
from pathlib import Path

import numpy as np
import pytest

from doseforest.base.estimates import Estimate
from doseforest.policy import ExplorationPolicy, PolicyValue, budget_path, optimize_doses

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _pictures_are_closed(monkeypatch):
    def refuse(*args, **parameters):
        raise AssertionError("a picture was shown")

    monkeypatch.setattr(pyplot, "show", refuse)
    yield
    pyplot.close("all")


@pytest.fixture(name="market")
def _market():
    rng = np.random.default_rng(0)
    value = rng.random((200, 4)).cumsum(axis=1)
    return value, np.array([0.0, 1.0, 2.0, 3.0])


def test_the_path_shows_gain_and_price_at_every_budget(market):
    path = budget_path(*market)
    ax = path.plot(budget=100)
    line, mark = ax.lines
    budgets, gains = line.get_data()
    np.testing.assert_allclose(gains, path.bound(budgets) - path.values[0])
    assert mark.get_xdata()[0] == 100
    assert mark.get_ydata()[0] == pytest.approx(path.bound(100) - path.values[0])
    assert "100 buys" in ax.texts[0].get_text()
    with pytest.raises(ValueError, match=r"'budget' parameter must be at least 0. Got -1"):
        path.plot(budget=-1)


def held_out(gain, cost=0.5):
    return PolicyValue(
        n_units=50,
        baseline=0.0,
        predicted_value=0.0,
        value=0.0,
        standard_error=0.0,
        predicted_cost=0.0,
        cost=Estimate(cost, 0.0),
        predicted_gain=2 * gain,
        gain=Estimate(gain, 0.1),
        overstated=Estimate(gain, 0.1),
    )


def test_held_out_gains_stand_beside_the_path_as_totals_of_its_units(market):
    ax = budget_path(*market).plot(held_out=[held_out(0.3), held_out(0.4, cost=0.9)])
    points = ax.containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), [100, 180])  # 200 units
    np.testing.assert_allclose(points.get_ydata(), [60, 80])
    low, high = ax.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert (low, high) == pytest.approx((60 - 1.96 * 20, 60 + 1.96 * 20), rel=1e-4)


def test_predicted_and_held_out_gains_are_side_by_side():
    ax = held_out(0.3).plot(random=held_out(0.1))
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["policy", "random"]
    predicted = next(line for line in ax.lines if line.get_label() == "predicted")
    assert predicted.get_xdata().tolist() == [0.6, 0.2]
    np.testing.assert_allclose(ax.containers[0].lines[0].get_xdata(), [0.3, 0.1])


def test_decisions_are_drawn_as_plans_are():
    decisions = ExplorationPolicy([0.0, 5.0], key="unit", salt="a").decide(
        np.zeros((50, 1)), {"unit": np.arange(50)}
    )
    bars = [bar.get_height() for bar in decisions.plot_doses().patches]
    assert bars == decisions.counts().tolist()
    assert decisions.plot_segments(np.repeat(["a", "b"], 25)) is not None


def test_a_path_without_anything_to_gain_is_drawn_too():
    assert budget_path(np.zeros((3, 2)), [0, 1]).plot(budget=1) is not None


def test_bars_count_units_by_dose(market):
    value, cost = market
    plan = optimize_doses(value, cost, 200, doses=[0, 5, 10, 15])
    ax = plan.plot_doses()
    assert [bar.get_height() for bar in ax.patches] == plan.counts().tolist()
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "5", "10", "15"]
    shares = [float(text.get_text().rstrip("%")) for text in ax.texts if "%" in text.get_text()]
    assert sum(shares) == pytest.approx(100, abs=2)  # four numbers rounded to whole ones


def test_bars_of_segments_add_up_to_all_of_their_units(market):
    value, cost = market
    plan = optimize_doses(value, cost, 200, doses=np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    segments = np.repeat(["a", "b"], [150, 50])
    _, given_ax = pyplot.subplots()
    ax = plan.plot_segments(segments, ax=given_ax)
    assert ax is given_ax
    ends = {bar.get_y(): bar.get_x() + bar.get_width() for bar in ax.patches}
    assert list(ends.values()) == pytest.approx([1, 1])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a (150)", "b (50)"]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "(0, 1)" in labels


def test_the_page_about_plans_prints_what_it_says(capsys, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    first, second, third, fourth = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(first, names)
    assert capsys.readouterr().out in page
    exec(second, names)
    plan, orders = names["plan"], names["orders"]
    ordered = np.bincount(names["cells"], orders[np.arange(len(orders)), plan.dose_index])
    assert (ordered <= names["drivers"] + 1e-9).all()
    assert len(np.unique(plan.dose_index)) <= 3
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    exec(third, names)
    assert capsys.readouterr().out in page
    exec(fourth, names)
    assert capsys.readouterr().out in page
