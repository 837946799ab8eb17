"""Pictures of effects: the right data in the right artists, and nothing shown on its own."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.evaluation import effect_importance
from doseforest.report.curve_plots import spread_units
from doseforest.report.pictures import KINDS
from doseforest.report.surface_plot import plot_surface

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _pictures_are_closed(monkeypatch):
    def refuse(*args, **parameters):
        raise AssertionError("a picture was shown")

    monkeypatch.setattr(pyplot, "show", refuse)
    yield
    pyplot.close("all")


def draw(kind, n=300):
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(n, 3)), columns=["income", "age", "visits"])
    x["premium"] = (rng.random(n) < 0.4) * 1.0
    dose = {
        "quantity": rng.uniform(0, 10, size=n),
        "levels": rng.integers(0, 3, size=n) * 1.0,
        "mixed": np.where(rng.random(n) < 0.3, 0.0, rng.uniform(2, 10, size=n)),
    }[kind]
    y = 5 + dose * (1 + 0.5 * x["age"] + x["premium"]) + rng.normal(size=n)
    return x, pd.Series(dose, name="discount (%)"), pd.Series(y, name="orders")


def fit(kind):
    x, dose, y = draw(kind)
    forest = GeneralizedCausalForest(
        n_trees=40,
        outcome_model=make_pipeline(PolynomialFeatures(2), LinearRegression()),
        density="none",
        baseline=5.0 if kind == "quantity" else 0.0,
        random_state=0,
        n_jobs=1,
    )
    return forest.fit(x, y, treatment=dose), x


@pytest.fixture(scope="module", name="quantity")
def _quantity():
    return fit("quantity")


@pytest.fixture(scope="module", name="levels")
def _levels():
    return fit("levels")


@pytest.fixture(scope="module", name="mixed")
def _mixed():
    return fit("mixed")


def line_of(ax, label):
    return next(line for line in ax.lines if line.get_label() == label)


def test_units_are_thin_lines_with_the_average_of_all_on_top(quantity):
    forest, x = quantity
    ax = forest.plot.dose_response(x, units=[3, 11], color_by=None)
    segments = ax.collections[0].get_segments()
    assert len(segments) == 2
    exact = forest.dose_response(x, segments[1][:, 0])
    assert segments[1][:, 1] == pytest.approx(exact[11])
    average = line_of(ax, "average")
    assert average.get_ydata() == pytest.approx(exact.mean(axis=0))
    assert average.get_linewidth() > ax.collections[0].get_linewidth()[0]
    assert ax.get_xlabel() == "discount (%)"
    assert ax.get_ylabel() == "orders"


def test_effects_start_at_nothing_at_the_baseline(quantity):
    forest, x = quantity
    ax = forest.plot.dose_response(x, units=[0], effects=True, doses=[2.0, 5.0, 8.0])
    points = ax.collections[0].get_segments()[0]
    assert points[:, 1] == pytest.approx(
        [forest.effect(x[:1], dose)[0] for dose in (2.0, 5.0, 8.0)]
    )
    assert points[1, 1] == pytest.approx(0.0, abs=1e-9)


def test_by_default_the_units_shown_stand_for_all(quantity):
    forest, x = quantity
    ax = forest.plot.dose_response(x, n_shown=30)
    assert len(ax.collections[0].get_segments()) == 30
    values = np.random.default_rng(0).normal(size=1000)
    shown = spread_units(values, 101)
    assert np.quantile(values[shown], [0, 0.5, 1]) == pytest.approx(
        np.quantile(values, [0, 0.5, 1]), abs=0.01
    )


def test_a_feature_of_few_values_has_a_colour_for_each(quantity):
    forest, x = quantity
    ax = forest.plot.dose_response(x, units=np.arange(40), color_by="premium")
    from matplotlib.colors import to_rgb

    drawn = ax.collections[0].get_colors()[:, :3]
    wanted = [to_rgb(KINDS[int(kind)]) for kind in x["premium"][:40]]
    np.testing.assert_allclose(drawn, wanted)
    assert [text.get_text() for text in ax.get_legend().texts] == ["premium:", "0", "1", "average"]


def test_a_feature_of_many_values_has_a_colour_bar(quantity):
    forest, x = quantity
    ax = forest.plot.dose_response(x, color_by=1)
    assert [own.get_ylabel() for own in ax.figure.axes[1:]] == ["age"]
    by_effect = forest.plot.dose_response(x)
    assert "effect of discount (%)" in by_effect.figure.axes[1].get_ylabel()


def test_levels_are_dots_and_never_joined(levels):
    forest, x = levels
    ax = forest.plot.dose_response(x, units=np.arange(25))
    assert not any(line.get_linestyle() == "-" and len(line.get_xdata()) > 1 for line in ax.lines)
    assert len(ax.collections) == 3  # a strip of dots for each level
    for level, strip in enumerate(ax.collections):
        dots = np.asarray(strip.get_offsets())
        assert np.abs(dots[:, 0] - level).max() < 0.5
        assert dots[:, 1] == pytest.approx(forest.dose_response(x)[:25, level])
    assert line_of(ax, "average").get_ydata() == pytest.approx(forest.dose_response(x).mean(0))


def test_a_point_mass_is_a_dot_beside_the_line(mixed):
    forest, x = mixed
    ax = forest.plot.dose_response(x, units=[1, 2, 3])
    lines, dots = ax.collections
    assert min(segment[:, 0].min() for segment in lines.get_segments()) > 0.0
    assert len(dots.get_offsets()) == 3
    heights = np.asarray(dots.get_offsets())[:, 1]
    assert heights == pytest.approx(forest.dose_response(x[1:4], [0.0])[:, 0])


def test_the_average_curve_has_its_pointwise_band(quantity):
    forest, _ = quantity
    doses = np.array([2.0, 5.0, 8.0])
    exact = forest.average_dose_response(doses)
    ax = forest.plot.average_dose_response(doses, show_doses=False)
    assert line_of(ax, "average orders").get_ydata() == pytest.approx(exact.values)
    corners = ax.collections[0].get_paths()[0].vertices
    for place, dose in enumerate(doses):
        low, high = np.sort(np.unique(corners[corners[:, 0] == dose, 1]))[[0, -1]]
        reach = 1.959964 * exact.standard_errors[place]
        assert (high - low) / 2 == pytest.approx(reach, rel=1e-5)
    assert not ax.patches
    assert forest.plot.average_dose_response(doses).patches  # bars of the observed doses


def test_average_levels_are_points_with_error_bars(levels):
    forest, _ = levels
    ax = forest.plot.average_dose_response(level=0.9, show_doses=False)
    exact = forest.average_dose_response()
    (container,) = ax.containers
    dots, _, (bars,) = container.lines
    assert dots.get_ydata() == pytest.approx(exact.values)
    assert dots.get_linestyle() == "None"
    lengths = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
    assert lengths == pytest.approx(2 * 1.644854 * exact.standard_errors, rel=1e-5)


def test_bands_are_quantiles_of_the_units(quantity):
    forest, x = quantity
    ax = forest.plot.dose_response(x, quantiles=[0.9, 0.1], doses=[4.0, 6.0])
    curves = forest.dose_response(x, [4.0, 6.0])
    corners = ax.collections[0].get_paths()[0].vertices
    at = np.unique(corners[corners[:, 0] == 4.0, 1])
    assert at[[0, -1]] == pytest.approx(np.quantile(curves[:, 0], [0.1, 0.9]))


def test_effects_are_drawn_as_a_distribution_or_over_a_feature(quantity):
    forest, x = quantity
    effects = forest.effect(x, 8.0)
    ax = forest.plot.effects(x, 8.0)
    assert sum(bar.get_height() for bar in ax.patches[:40]) == len(x)
    assert f"mean {effects.mean():.3g}" in [text.get_text() for text in ax.get_legend().texts]
    over = forest.plot.effects(x, 8.0, feature="age")
    dots = np.asarray(over.collections[0].get_offsets())
    assert dots == pytest.approx(np.column_stack([x["age"], effects]))
    assert over.get_xlabel() == "age"
    assert over.get_ylabel() == "effect on orders of discount (%) 8 against 5"
    means = over.lines[0].get_ydata()
    assert means.mean() == pytest.approx(effects.mean())  # parts of equal numbers of units
    few = forest.plot.effects(x, 8.0, feature=3)
    assert line_of(few, "mean").get_ydata() == pytest.approx(
        [effects[x["premium"] == kind].mean() for kind in (0, 1)]
    )


def test_importance_is_drawn_with_its_errors(quantity):
    forest, _ = quantity
    found = effect_importance(forest, "permutation", n_repeats=1)
    ax = forest.plot.importance(found, n_shown=2)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx(np.sort(found.values)[-2:])
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == [name for name, _ in found.ranked()[:2]][::-1]
    bars = ax.containers[1].lines[2][0].get_segments()
    top = int(np.argmax(found.values))
    assert np.ptp(bars[-1][:, 0]) == pytest.approx(2 * 1.96 * found.standard_errors[top])
    assert len(forest.plot.importance().patches) == 4


@pytest.mark.parametrize("kind", ["quantity", "levels", "mixed"])
def test_overlap_is_drawn_as_reported(kind, request):
    forest, _ = request.getfixturevalue(kind)
    report = forest.overlap_report()
    ax = forest.plot.overlap()
    drawn = np.concatenate([line.get_ydata() for line in ax.lines])
    assert np.sort(drawn) == pytest.approx(np.sort(report.supported))
    rows = ax.figure.axes[1]
    both = np.concatenate([line.get_ydata() for line in rows.lines])
    assert np.sort(both) == pytest.approx(
        np.sort(np.concatenate([report.kernel_sample, report.weighted_sample]))
    )
    assert ax.get_xlabel() == "discount (%)"
    assert forest.plot.weights().get_xlabel() == "treatment weight (mean 1)"


def test_the_report_has_four_pictures_also_in_axes_that_are_given(quantity, tmp_path):
    forest, _ = quantity
    report = forest.overlap_report()
    axes = report.plot()
    assert axes.shape == (2, 2)
    balance = axes[1, 0]
    worst = report.balance.worst()
    assert np.sort(balance.lines[0].get_xdata()) == pytest.approx(np.sort(worst[:, 0]))
    assert np.sort(balance.lines[1].get_xdata()) == pytest.approx(np.sort(worst[:, 1]))
    axes[0, 0].figure.savefig(tmp_path / "overlap.png")
    picture = pyplot.imread(tmp_path / "overlap.png")
    assert picture[..., :3].std() > 0.01  # not blank
    _, mine = pyplot.subplots(1, 4)
    assert report.plot(mine) is mine
    with pytest.raises(ValueError, match=r"'axes' parameter must hold four axes\. Got 2"):
        report.plot(mine[:2])


def test_pictures_are_drawn_where_they_are_wanted(quantity):
    forest, x = quantity
    for draw_in in (
        lambda ax: forest.plot.dose_response(x, ax=ax),
        lambda ax: forest.plot.average_dose_response(ax=ax),
        lambda ax: forest.plot.effects(x, ax=ax),
        lambda ax: forest.plot.importance(ax=ax),
        lambda ax: forest.plot.overlap(ax=ax),
        lambda ax: forest.plot.weights(ax=ax),
        lambda ax: plot_surface([0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [1.0, 3.0]], ax=ax),
    ):
        figure, ax = pyplot.subplots()
        assert draw_in(ax) is ax
        figure.canvas.draw()


@pytest.mark.parametrize("kind", ["quantity", "levels", "mixed"])
def test_a_forest_without_its_rows_draws_the_same_curves(kind, request):
    forest, x = request.getfixturevalue(kind)
    alone = forest.model_
    own, other = (model.plot.dose_response(x, units=[4]) for model in (forest, alone))
    assert other.get_xlabel() == "dose"  # names of the columns stay with the rows
    for first, second in zip(own.collections, other.collections, strict=True):
        np.testing.assert_array_equal(first.get_offsets(), second.get_offsets())
        assert len(first.get_paths()) == len(second.get_paths())
        for path, same in zip(first.get_paths(), second.get_paths(), strict=True):
            np.testing.assert_array_equal(path.vertices, same.vertices)


def test_a_loaded_forest_draws_too(tmp_path):
    x, dose, y = draw("mixed", 120)
    settings = {"density": "none", "baseline": 0.0, "random_state": 0, "n_jobs": 1}
    forest = GeneralizedCausalForest(40, **settings).fit(x, y, treatment=dose)
    forest.save(tmp_path / "forest.dose")
    loaded = load_forest(tmp_path / "forest.dose")
    lines, dots = loaded.plot.dose_response(x, units=[4]).collections
    segment = lines.get_segments()[0]
    assert segment[:, 1] == pytest.approx(forest.dose_response(x[4:5], segment[:, 0])[0])
    assert len(dots.get_offsets()) == 1  # the file tells of the point mass
    assert loaded.plot.importance().get_xlabel() == "share of the forests' gain"
    assert loaded.plot.effects(x, feature="age").get_xlabel() == "age"


def test_a_surface_has_its_values_over_both_doses():
    first, second = np.linspace(0, 4, 9), np.linspace(0, 2, 5)
    values = first[:, None] + 10 * second
    ax = plot_surface(
        first, second, values, labels=("price", "coupon", "orders"), observed=[[1.0, 1.0]]
    )
    assert ax.get_xlabel() == "price"
    assert ax.get_ylabel() == "coupon"
    assert ax.figure.axes[1].get_ylabel() == "orders"
    contours = ax.collections[1]
    for level, path in zip(contours.levels, contours.get_paths(), strict=True):
        if len(path.vertices):
            across, up = path.vertices.T
            assert across + 10 * up == pytest.approx(np.full(len(across), level), abs=1e-6)
    assert ax.lines[-1].get_xdata().tolist() == [1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0], [0.0, 1.0], [[1.0, 2.0]]), "'first' parameter must hold at least two ascending"),
        (([0.0, 1.0], [1.0, 0.0], np.eye(2)), "'second' parameter must hold .* ascending"),
        (([0.0, 1.0], [0.0, 1.0], np.eye(3)), r"'values' parameter must have shape \(2, 2\)"),
    ],
)
def test_a_surface_that_does_not_fit_its_doses_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_surface(*arguments)
    with pytest.raises(ValueError, match="'observed' parameter must have shape"):
        plot_surface([0.0, 1.0], [0.0, 1.0], np.eye(2), observed=[1.0, 2.0])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f, x: f.plot.dose_response(x, units=[300]), "'units' parameter must hold rows"),
        (lambda f, x: f.plot.dose_response(x, units=[0.5]), "'units' parameter must hold rows"),
        (lambda f, x: f.plot.dose_response(x, n_shown=0), "'n_shown' parameter must be an int"),
        (lambda f, x: f.plot.dose_response(x, color_by="size"), "'color_by' parameter .* 'size'"),
        (lambda f, x: f.plot.dose_response(x, quantiles=[0.5]), "'quantiles' parameter .* two"),
        (lambda f, x: f.plot.dose_response(x, quantiles=[0, 1]), "'quantiles' parameter"),
        (lambda f, x: f.plot.dose_response(x, doses=[99.0]), "'doses' parameter must lie in"),
        (lambda f, x: f.plot.dose_response(x[["age"]]), "'X' parameter"),
        (lambda f, x: f.plot.effects(x, feature="size"), "'feature' parameter .* 'size'"),
        (lambda f, x: f.plot.importance("shap"), "'method' parameter must be one of"),
        (lambda f, x: f.plot.importance(n_shown=0), "'n_shown' parameter must be an int"),
        (lambda f, x: f.plot.average_dose_response(level=95), "'level' parameter must be a float"),
    ],
)
def test_errors_name_parameter_rule_and_value(quantity, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(*quantity)


@pytest.mark.parametrize(
    "ask",
    [
        lambda f, x: f.plot.dose_response(x),
        lambda f, x: f.plot.average_dose_response(),
        lambda f, x: f.plot.effects(x),
        lambda f, x: f.plot.importance(),
        lambda f, x: f.plot.overlap(),
        lambda f, x: f.plot.weights(),
        lambda f, x: f.overlap_report().plot(),
    ],
)
def test_a_missing_matplotlib_names_its_cure(quantity, ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install doseforest\[plot\]"):
        ask(*quantity)
