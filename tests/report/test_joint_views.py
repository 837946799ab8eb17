"""The look inside a forest whose dose has several components: what is drawn is what is computed."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

from bench.designs import JOINT_DESIGNS
from doseforest import GeneralizedCausalForest
from doseforest.doses.dose_labels import dose_labels
from doseforest.doses.dose_values import Doses
from doseforest.estimator.unit_support import FEWEST_SUPPORTED
from doseforest.evaluation import effect_importance
from doseforest.nuisance.treatment.chained import ChainedDensity, joint_support
from doseforest.report.overlap.overlap_components import component_ratios
from doseforest.report.surface_plot import HATCHED_BELOW

pyplot = pytest.importorskip("matplotlib.pyplot")
NAMES = [f"x{place}" for place in range(10)]


@pytest.fixture(autouse=True)
def _pictures_are_closed():
    yield
    pyplot.close("all")


def fit(x, y, dose, **parameters):
    defaults = {
        "n_trees": 40,
        "outcome_model": LinearRegression(),
        "density": "none",
        "random_state": 0,
        "n_jobs": 1,
    }
    forest = GeneralizedCausalForest(**{**defaults, **parameters})
    return forest.fit(x, pd.Series(y, name="orders"), treatment=dose)


@pytest.fixture(scope="module")
def discounts():
    data = JOINT_DESIGNS["two_discounts"].draw(n=300, seed=310)
    x = pd.DataFrame(data.X, columns=NAMES)
    dose = pd.DataFrame(data.treatment, columns=["price", "coupon"])
    return fit(x, data.y, dose, baseline=[0.5, 0.5]), x


@pytest.fixture(scope="module")
def arms():
    data = JOINT_DESIGNS["arms"].draw(n=300, seed=311)
    x = pd.DataFrame(data.X, columns=NAMES)
    return fit(x, data.y, data.treatment, baseline=[0.0, 0.0]), x


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(240, 3))
    dose = np.column_stack([rng.random((240, 2)), rng.integers(0, 3, 240)])
    y = x[:, 0] + dose.sum(axis=1) * (1 + x[:, 1]) + rng.normal(size=240)
    return fit(x, y, dose, baseline=[0.5, 0.5, 0.0], correction="none"), x


def line_of(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def assert_contours_have(ax, axis, values):
    """Contours cross the lines of the grid where interpolation between two doses has the level."""
    table = np.reshape(values, (len(axis), len(axis)))
    lines = next(own for own in ax.collections if not own.filled)
    n_crossings = 0
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        for across, up in path.vertices:
            if not np.isclose([across, up], axis[:, None]).any():
                continue  # an end that was cut for a label
            rows = np.array([np.interp(up, axis, line) for line in table])
            assert np.interp(across, axis, rows) == pytest.approx(level, abs=1e-6)
            n_crossings += 1
    assert n_crossings > 5


def hatched(ax):
    return [own for own in ax.collections if own.filled and any(own.hatches)]


def test_components_are_named_by_the_columns_of_the_treatment():
    table = np.random.default_rng(0).random((60, 2))
    for kind in (pd.DataFrame, pl.DataFrame):
        frame = kind({"price": table[:, 0], "coupon": table[:, 1]})
        assert dose_labels(frame, Doses.of_table(table).values) == ("price", "coupon")
    assert dose_labels(table, Doses.of_table(table).values) == ("dose[0]", "dose[1]")
    assert dose_labels(pd.DataFrame(table), Doses.of_table(table).values) == ("dose[0]", "dose[1]")
    assert dose_labels(pd.Series(table[:, 0], name="price"), table[:, 0]) == ("price",)


def test_the_report_of_two_components_counts_jointly(discounts):
    forest, x = discounts
    report = forest.overlap_report()
    assert report.components == ("price", "coupon")
    assert report.doses.shape == forest.doses_.shape
    assert report.supported == pytest.approx(forest.supported(x).mean(axis=0))
    assert report.kernel_sample == pytest.approx(report.weighted_sample)  # no weights are used
    assert report.variance_ratios.shape == (300, 2)
    weak = (report.variance_ratios < 0.1).any(axis=1)
    assert report.weak_share == pytest.approx(weak.mean())
    first = pd.DataFrame(report.to_dict()["doses"])
    assert first[["price", "coupon"]].to_numpy().tolist() == forest.doses_.tolist()


def test_covariates_are_balanced_against_each_component(discounts):
    forest, x = discounts
    report = forest.overlap_report([[0.5, 0.5]])
    balance, dose = report.balance, report.observed_doses
    assert balance.targets == ("price", "price squared", "coupon", "coupon squared")
    for k, name in enumerate(NAMES):
        exact = [np.corrcoef(x[name], dose[:, own])[0, 1] for own in (0, 1)]
        assert balance.before[k, [0, 2]] == pytest.approx(exact)


def test_the_balance_of_arms_is_of_arms_and_of_doses_within_them(arms):
    forest, x = arms
    report = forest.overlap_report()
    arm, dose = report.observed_doses.T
    assert report.balance.targets == ("arm 0", "arm 1", "arm 2", "dose of arm 1", "dose of arm 2")
    within = np.where(arm == 1, dose - dose[arm == 1].mean(), 0.0)
    exact = [np.corrcoef(x["x0"], own)[0, 1] for own in (arm == 1, within)]
    assert report.balance.before[0, [1, 3]] == pytest.approx(exact)
    # A dose that is always 0 leaves nothing to choose, and is not held against the unit.
    assert np.isnan(report.variance_ratios[arm == 0, 1]).all()
    assert np.isfinite(report.variance_ratios[arm > 0]).all()


def test_a_component_that_follows_the_one_before_has_no_room():
    """The second dose is the first but for noise: exact variances, 1 and .01 of 1.01."""

    class First:
        def density(self, X, doses):
            return norm.pdf(np.broadcast_to(doses, (len(X), np.shape(doses)[-1])))

    class Second:
        def density(self, X, doses):
            return norm.pdf(doses - X[:, -1:], scale=0.1)

    rng = np.random.default_rng(0)
    first = rng.normal(size=2000)
    dose = Doses.of_table(np.column_stack([first, first + 0.1 * rng.normal(size=2000)]))
    ratios = component_ratios(
        ChainedDensity((First(), Second())),
        np.zeros((2000, 1)),
        dose,
        joint_support(dose),
        None,
        arms=False,
    )
    # The range of 2,000 normal doses cuts tails of about 1 % of the variance; variances of the
    # sample are known to sqrt(2 / 2000) = 3 %, three times over.
    assert ratios[:, 0] == pytest.approx(np.full(2000, 1.0), abs=0.12)
    middle = np.abs(first) < 2
    assert ratios[middle, 1] == pytest.approx(np.full(middle.sum(), 0.0099), rel=0.15)


def test_texts_show_cells_of_two_components_and_doses_of_arms(discounts, arms, three):
    report = discounts[0].overlap_report()
    cells = str(report)
    assert "supported: price down, coupon across" in cells
    first = np.unique(report.doses[:, 0])[0]
    line = next(own for own in cells.splitlines() if own.startswith(f"{first:.3g} "))
    shares = report.supported[report.doses[:, 0] == first]
    assert line.split()[1:] == [f"{share:.0%}" for share in shares]
    listed = str(arms[0].overlap_report())
    assert "(arm, dose)  supported" in listed
    assert "(0, 0)" in listed
    listed = str(three[0].overlap_report())
    assert "the 11 doses of" in listed
    assert "(dose[0], dose[1], dose[2])" in listed


def test_messages_name_doses_of_several_components():
    rng = np.random.default_rng(1)
    first = rng.random(200)
    dose = np.column_stack([first, first + 0.03 * rng.normal(size=200)])
    with pytest.warns(UserWarning, match="could have had the dose"):
        forest = fit(rng.normal(size=(200, 2)), first, dose, baseline=[0.5, 0.5])
    said = " ".join(forest.overlap_report([[0.5, 0.5], [0.1, 0.9]]).messages)
    assert "could have had the dose(s) (0.1, 0.9): curves are extrapolated" in said
    assert "no choice of some component (most of dose[1])" in said


def test_cells_of_support_are_drawn_as_reported(discounts):
    forest, _ = discounts
    report = forest.overlap_report()
    ax = forest.plot.overlap()
    drawn = np.asarray(ax.images[0].get_array())
    n_first = len(np.unique(report.doses[:, 0]))
    assert pytest.approx(report.supported.reshape(n_first, -1)) == drawn.T
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("price", "coupon")
    assert ax.texts[0].get_text() == f"{report.supported[0]:.0%}"


@pytest.mark.parametrize("kind", ["arms", "three"])
def test_support_of_arms_and_three_components_is_drawn_as_bars(kind, request):
    forest, _ = request.getfixturevalue(kind)
    report = forest.overlap_report()
    ax = forest.plot.overlap()
    widths = np.sort([bar.get_width() for bar in ax.patches])
    assert len(widths) == min(30, len(report.doses))
    assert widths == pytest.approx(np.sort(report.supported)[: len(widths)])
    figure = report.plot()[0, 0].figure
    figure.canvas.draw()


def test_the_summary_describes_each_component(discounts, arms, three):
    text = " ".join(str(discounts[0].summary()).split())
    assert "2 components; baseline (0.5, 0.5) price: a quantity from" in text
    top = discounts[0].doses_[-1]
    average = discounts[0].average_effect(top)
    assert f"({top[0]:.4g}, {top[1]:.4g}) {average.value:.3g} {average.standard_error:.2g}" in text
    text = " ".join(str(arms[0].summary()).split())
    assert "arms with doses of their own; baseline (0, 0) arm 0 (" in text
    assert "): always 0 arm 1 (" in text
    text = " ".join(str(three[0].summary()).split())
    assert "dose[2]: levels 0 (" in text


def test_curves_run_along_a_component_with_the_others_held(discounts):
    forest, x = discounts
    ax = forest.plot.dose_response(x, component=1, at=[0.2, 0.9], units=[3], color_by=None)
    points = ax.collections[0].get_segments()[0]
    asked = np.column_stack([np.full(len(points), 0.2), points[:, 0]])
    curves = forest.dose_response(x, asked)
    assert points[:, 1] == pytest.approx(curves[3])
    assert line_of(ax, "average").get_ydata() == pytest.approx(curves.mean(axis=0))
    assert ax.get_xlabel() == "coupon (price 0.2)"
    chosen = forest.plot.dose_response(x, component=0, doses=[0.3, 0.6], units=[3], effects=True)
    points = chosen.collections[0].get_segments()[0]
    assert points[:, 1] == pytest.approx(
        [forest.effect(x[3:4], [own, 0.5])[0] for own in (0.3, 0.6)]
    )
    assert chosen.get_ylabel() == "effect on orders against (0.5, 0.5)"


def test_averages_run_along_a_component(discounts, three):
    forest, _ = discounts
    values = np.array([0.3, 0.5, 0.7])
    ax = forest.plot.average_dose_response(values, component=1)
    exact = forest.average_dose_response(np.column_stack([np.full(3, 0.5), values]))
    assert line_of(ax, "average orders").get_ydata() == pytest.approx(exact.values)
    assert ax.patches  # bars of the observed coupons
    levels = three[0].plot.average_dose_response(component=2, at=[0.4, 0.6, 0.0])
    dots = levels.containers[0].lines[0]
    exact = three[0].average_dose_response([[0.4, 0.6, level] for level in (0.0, 1.0, 2.0)])
    assert dots.get_xdata().tolist() == [0.0, 1.0, 2.0]
    assert dots.get_ydata() == pytest.approx(exact.values)


def test_arms_stand_side_by_side(arms):
    forest, x = arms
    ax = forest.plot.dose_response(x, units=[0, 1])
    control, _ = (own for own in ax.collections[::-1])
    assert np.asarray(control.get_offsets())[:, 1] == pytest.approx(
        forest.dose_response(x[:2], [[0.0, 0.0]])[:, 0]
    )
    segment = ax.collections[0].get_paths()[1].vertices
    heights = segment[np.isfinite(segment[:, 1]), 1]
    gap = np.flatnonzero(np.isnan(segment[:, 1]))
    assert len(gap) == 1  # no line from one arm to the other
    n_points = gap[0]
    asked = [
        [arm, dose]
        for arm in (1.0, 2.0)
        for dose in np.linspace(*forest.doses_[forest.doses_[:, 0] == arm, 1][[0, -1]], n_points)
    ]
    assert heights == pytest.approx(forest.dose_response(x[1:2], asked)[0])
    texts = " ".join(text.get_text() for text in ax.get_xticklabels())
    assert all(f"arm {arm}" in texts for arm in (0, 1, 2))


def test_averages_of_arms_stand_side_by_side(arms):
    forest, _ = arms
    asked = np.array([[0.0, 0.0], [1.0, 10.0], [1.0, 20.0], [2.0, 1.5], [2.0, 2.5]])
    exact = forest.average_dose_response(asked)
    ax = forest.plot.average_dose_response(asked)
    drawn = line_of(ax, "average orders").get_ydata()
    assert drawn[np.isfinite(drawn)] == pytest.approx(exact.values[1:])
    assert ax.containers[0].lines[0].get_ydata() == pytest.approx(exact.values[:1])
    one = forest.plot.average_dose_response([10.0, 20.0], component=1, at=[1.0, 10.0])
    assert line_of(one, "average orders").get_ydata() == pytest.approx(exact.values[1:3])
    bands = forest.plot.dose_response(arms[1], quantiles=[0.1, 0.9])
    bands.figure.canvas.draw()


def test_effects_of_a_joint_dose_are_drawn(discounts, arms):
    forest, x = discounts
    effects = forest.effect(x, [0.8, 0.2])
    ax = forest.plot.effects(x, [0.8, 0.2], feature="x3")
    assert np.asarray(ax.collections[0].get_offsets())[:, 1] == pytest.approx(effects)
    assert ax.get_ylabel() == "effect on orders of (0.8, 0.2) against (0.5, 0.5)"
    top = arms[0].effect(arms[1], arms[0].doses_[-1])
    ax = arms[0].plot.effects(arms[1])
    assert f"mean {top.mean():.3g}" in [text.get_text() for text in ax.get_legend().texts]


def test_contours_of_a_surface_have_the_forests_values(discounts):
    forest, x = discounts
    axis = np.linspace(0.2, 0.8, 4)
    grid = [[first, second] for first in axis for second in axis]
    averages = forest.average_dose_response([*grid, [0.5, 0.5]]).values
    curves = forest.dose_response(x, [*grid, [0.5, 0.5]])
    for ask, values in (
        ({}, averages),
        ({"X": x}, curves.mean(axis=0)),
        ({"X": x, "unit": 7}, curves[7]),
    ):
        ax = forest.plot.surface(**ask, doses=(axis, axis))
        assert_contours_have(ax, axis, values[:-1])
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("price", "coupon")
        ax = forest.plot.surface(**ask, doses=(axis, axis), effects=True)
        assert_contours_have(ax, axis, values[:-1] - values[-1])
        assert "effect on orders against (0.5, 0.5)" in ax.figure.axes[1].get_ylabel()


def test_a_surface_is_hatched_where_nobody_could_have_been():
    assert HATCHED_BELOW == FEWEST_SUPPORTED
    rng = np.random.default_rng(1)
    first = rng.random(200)
    dose = np.column_stack([first, first + 0.05 * rng.normal(size=200)])
    x = rng.normal(size=(200, 2))
    forest = fit(x, first, dose, baseline=[0.5, 0.5], doses=[[0.5, 0.5]], correction="none")
    ax = forest.plot.surface(x)
    (part,) = hatched(ax)
    corners = part.get_paths()[0]
    assert corners.contains_point((0.1, 0.9))
    assert not corners.contains_point((0.5, 0.5))
    alone = forest.model_.plot.surface(x)  # knows nothing of support
    assert not hatched(alone)


def test_a_forest_without_its_rows_draws_the_same(discounts, arms):
    forest, x = discounts
    own, other = (
        model.plot.dose_response(x, component=0, units=[4]) for model in (forest, forest.model_)
    )
    assert other.get_xlabel() == "dose[0] (dose[1] 0.5)"
    first, second = (ax.collections[0].get_segments()[0] for ax in (own, other))
    np.testing.assert_array_equal(first, second)
    assert "arm 2" in " ".join(
        text.get_text() for text in arms[0].model_.plot.dose_response(arms[1]).get_xticklabels()
    )
    framed = forest.model_.set_output(transform="pandas")
    assert framed.plot.effects(x, [0.8, 0.8]).get_xlabel().startswith("effect on outcome")


def test_permutation_importance_finds_what_bends_the_surface(discounts):
    forest, _ = discounts
    found = effect_importance(forest, "permutation", n_repeats=1)
    assert np.isfinite(found.values).all()
    # x3 stands before the product of both discounts, 6 x3 t1 t2, x1 before the first alone.
    assert found.ranked()[0][0] == "x3"
    assert forest.plot.importance(found).patches


BAD_QUESTIONS = {
    "no component": (
        "discounts",
        lambda f, x: f.plot.dose_response(x),
        "'component' parameter must be an int from 0 to 1.*plot.surface",
    ),
    "no such component": (
        "three",
        lambda f, x: f.plot.average_dose_response(component=3),
        "'component' parameter must be an int from 0 to 2",
    ),
    "an arm that changes": (
        "arms",
        lambda f, x: f.plot.dose_response(x, component=0),
        "'component' parameter must be 1, the dose of the arm",
    ),
    "held at one number": (
        "discounts",
        lambda f, x: f.plot.dose_response(x, component=0, at=0.5),
        "'at' parameter must be one dose of 2 components",
    ),
    "held outside": (
        "discounts",
        lambda f, x: f.plot.dose_response(x, component=0, at=[0.5, 7.0]),
        "'at' parameter must lie in the support",
    ),
    "a dose of one number": (
        "discounts",
        lambda f, x: f.plot.effects(x, 0.5),
        "'dose' parameter must be one dose of 2 components",
    ),
    "report of one number": (
        "discounts",
        lambda f, x: f.overlap_report([0.5]),
        "'doses' parameter must have doses of 2 components",
    ),
    "surface of arms": (
        "arms",
        lambda f, x: f.plot.surface(),
        "for plot.surface. Got arms instead: use plot.dose_response",
    ),
    "surface of three": (
        "three",
        lambda f, x: f.plot.surface(),
        "Got levels of dose.2. instead: use plot.dose_response with 'component'",
    ),
    "surface of one list": (
        "discounts",
        lambda f, x: f.plot.surface(doses=[0.1, 0.2, 0.3]),
        "'doses' parameter of plot.surface must be a pair",
    ),
    "surface outside": (
        "discounts",
        lambda f, x: f.plot.surface(doses=([0.1, 3.0], [0.1, 0.2])),
        "'doses' parameter must lie in the support",
    ),
    "unit without X": (
        "discounts",
        lambda f, x: f.plot.surface(unit=3),
        "'X' parameter must be given where 'unit'",
    ),
    "no such unit": (
        "discounts",
        lambda f, x: f.plot.surface(x, unit=300),
        "'unit' parameter must be a row of X, an int from 0 to 299. Got 300",
    ),
    "average without rows": (
        "discounts",
        lambda f, x: f.model_.plot.surface(),
        "'X' parameter must be given: a forest without its training rows",
    ),
}


@pytest.mark.parametrize("name", BAD_QUESTIONS)
def test_questions_that_make_no_sense_name_the_cure(name, request):
    kind, ask, message = BAD_QUESTIONS[name]
    with pytest.raises(ValueError, match=message):
        ask(*request.getfixturevalue(kind))


def test_one_component_has_nothing_to_hold():
    rng = np.random.default_rng(2)
    x, dose = rng.normal(size=(100, 2)), rng.random(100)
    forest = fit(x, dose, dose, baseline=0.5, correction="none")
    with pytest.raises(ValueError, match="'at' parameter must be left out where a dose has one"):
        forest.plot.dose_response(x, at=[0.5])
    with pytest.raises(ValueError, match="'component' parameter must be left out"):
        forest.plot.average_dose_response(component=1)
    with pytest.raises(ValueError, match=r"Got one component instead: use plot.dose_response\."):
        forest.plot.surface(x)


def test_levels_of_both_components_fill_cells():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(240, 2))
    dose = np.column_stack([rng.integers(0, 2, 240), rng.integers(0, 3, 240)]).astype(float)
    forest = fit(x, x[:, 0] + dose.sum(axis=1), dose, baseline=[0.0, 0.0], correction="none")
    report = forest.overlap_report()
    cells, counts = np.unique(dose, axis=0, return_counts=True)
    assert report.doses.tolist() == cells.tolist()
    assert report.kernel_sample == pytest.approx(counts)
    assert np.asarray(forest.plot.overlap().images[0].get_array()).shape == (3, 2)
    assert not report.continuous
    dots = forest.plot.average_dose_response(component=1, at=[1.0, 0.0]).containers[0].lines[0]
    assert dots.get_xdata().tolist() == [0.0, 1.0, 2.0]
    # A linear model without a correction has one effect for all units, but for rounding.
    assert sum(bar.get_height() for bar in forest.plot.effects(x).patches[:40]) == 240
    assert len(forest.plot.dose_response(x, component=1).figure.axes) == 1  # and no colours
