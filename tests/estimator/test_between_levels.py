"""Doses between the levels of a treatment: interpolated alike by all forests, with one warning."""

import warnings

import numpy as np
import pytest

from doseforest import GeneralizedCausalForest, load_forest, load_policy
from doseforest.doses.levels import DoseLevels, OverlapWarning
from doseforest.policy import DosePolicy
from recipes import recipe

LEVELS = np.array([0.0, 5.0, 10.0, 20.0])
X = np.random.default_rng(0).normal(size=(240, 2))
DOSE = np.random.default_rng(1).choice(LEVELS, 240)
Y = np.sqrt(DOSE) * (1 + X[:, 0]) + np.random.default_rng(2).normal(size=240)
UNITS = X[:6]


def fitted(correction="none", **parameters):
    settings = {
        "outcome_model": ["core"],
        "n_trees": 16,
        "n_folds": 2,
        "baseline": 0.0,
        "random_state": 0,
        "n_jobs": 1,
    }
    made = (
        recipe("orthogonal", n_rounds=1, leaves=(20,)) if correction == "orthogonal" else correction
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few trees
        return GeneralizedCausalForest(correction=made, **{**settings, **parameters}).fit(
            X, Y, treatment=DOSE
        )


@pytest.fixture(scope="module", name="forests")
def _forests():
    return {
        "none": fitted("none", inference="bags"),
        "orthogonal": fitted("orthogonal", inference="bags"),
        "stabilized": fitted("stabilized"),
    }


CORRECTIONS = ["none", "orthogonal", "stabilized"]


def warned(ask):
    """The answer, and the texts of the warnings on the way."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        answer = ask()
    assert all(issubclass(each.category, OverlapWarning) for each in record)
    return answer, record


def interpolated(at_levels, dose):
    """The naive twin: each unit's line through its answers at the levels."""
    return np.array([np.interp(dose, LEVELS, curve) for curve in at_levels])


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_curves_between_levels_are_lines_between_those_at_the_levels(forests, correction):
    forest, asked = forests[correction], [0.0, 2.0, 5.0, 7.0, 19.0, 20.0]
    at_levels = forest.dose_response(UNITS, LEVELS)
    curves, _ = warned(lambda: forest.dose_response(UNITS, asked))
    np.testing.assert_allclose(curves, interpolated(at_levels, asked), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(curves[:, [0, 2, 5]], at_levels[:, [0, 1, 3]])
    own = np.column_stack([asked, asked[::-1]])
    curves, _ = warned(lambda: forest.dose_response(UNITS, own))
    expected = [
        np.interp(doses, LEVELS, curve) for doses, curve in zip(own, at_levels, strict=True)
    ]
    np.testing.assert_allclose(curves, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_effects_between_levels_are_differences_of_these_lines(forests, correction):
    forest = forests[correction]
    at_levels = forest.dose_response(UNITS, LEVELS)
    at = {dose: interpolated(at_levels, dose) for dose in (3.0, 7.0, 12.0)}
    effect, _ = warned(lambda: forest.effect(UNITS, 7.0, 3.0))
    np.testing.assert_allclose(effect, at[7.0] - at[3.0], rtol=1e-9, atol=1e-12)
    slope, _ = warned(lambda: forest.partial_effect(UNITS, 7.0, 12.0))
    np.testing.assert_allclose(slope, (at[12.0] - at[7.0]) / 5, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_one_warning_a_call_names_the_doses_their_neighbours_and_the_cure(forests, correction):
    forest = forests[correction]
    calls = [
        lambda: forest.dose_response(UNITS, [3.0, 7.0]),
        lambda: forest.effect(UNITS, 7.0, 3.0),
        lambda: forest.partial_effect(UNITS, 7.0, 3.0),
        lambda: forest.average_dose_response([3.0, 7.0]),
        lambda: forest.average_effect(7.0, 3.0),
        lambda: forest.average.partial_effect(3.0, 7.0),
    ]
    if forest.inference == "bags":
        calls += [
            lambda: forest.effect_interval(UNITS, 7.0, 3.0),
            lambda: forest.intervals.effect(UNITS, baseline=3.0, doses=[5.0, 7.0]),
            lambda: forest.intervals.partial_effect(UNITS, 3.0, 7.0),
            lambda: forest.intervals.optimal_dose(UNITS, [3.0, 5.0, 7.0]),
        ]
    for call in calls:
        _, record = warned(call)
        (warning,) = record
        text = str(warning.message)
        assert "[0.0, 5.0, 10.0, 20.0]" in text
        assert "3 (between 0 and 5), 7 (between 5 and 10)" in text
        assert "basis='legendre'" in text
        assert warning.filename == __file__


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_levels_are_answered_without_a_warning(forests, correction):
    forest = forests[correction]
    for ask in (
        lambda: forest.dose_response(UNITS),
        lambda: forest.effect(UNITS, 10.0),
        lambda: forest.average_effect(10.0),
    ):
        assert not warned(ask)[1]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_no_unit_is_supported_between_levels(forests, correction):
    supported = forests[correction].supported(X, [5.0, 7.0])
    assert supported[:, 0].all()
    assert not supported[:, 1].any()


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_beyond_the_levels_the_rule_of_other_doses_holds(forests, correction):
    forest = forests[correction]
    beyond, record = warned(lambda: forest.dose_response(UNITS, [20.5]))
    np.testing.assert_allclose(beyond, forest.dose_response(UNITS, [20.0]), rtol=1e-12)
    assert "20.5 (above 20, whose answer it gets)" in str(record[0].message)
    with pytest.raises(ValueError, match=r"support of the dose, \[0, 20\].* Got 25"):
        forest.dose_response(UNITS, [25.0])


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_averages_between_levels_have_the_variance_of_the_combination(
    forests, correction, bias_correction
):
    forest = forests[correction]
    at_levels = forest.average_dose_response(LEVELS, bias_correction=bias_correction)
    shares = np.array([0.0, 0.6, 0.4, 0.0])  # 7 is 2 of the 5 from 5 to 10
    between, _ = warned(
        lambda: forest.average_dose_response([7.0], bias_correction=bias_correction)
    )
    np.testing.assert_allclose(between.values[0], shares @ at_levels.values, rtol=1e-10)
    variance = shares @ at_levels.covariance @ shares
    np.testing.assert_allclose(between.standard_errors[0] ** 2, variance, rtol=1e-9)
    half, _ = warned(lambda: forest.average_effect(2.5, bias_correction=bias_correction))
    whole = forest.average_effect(5.0, bias_correction=bias_correction)
    np.testing.assert_allclose(half.value, whole.value / 2, rtol=1e-9)
    np.testing.assert_allclose(half.standard_error, whole.standard_error / 2, rtol=1e-9)


@pytest.mark.parametrize("correction", ["none", "orthogonal"])
def test_intervals_between_levels_are_those_of_the_combination(forests, correction):
    intervals = forests[correction].intervals
    at = intervals.effect(UNITS, doses=[5.0, 10.0])
    half, _ = warned(lambda: intervals.effect(UNITS, dose=2.5))
    np.testing.assert_allclose(half.values, at.values[:, 0] / 2, rtol=1e-9)
    np.testing.assert_allclose(half.standard_errors, at.standard_errors[:, 0] / 2, rtol=1e-9)
    between, _ = warned(lambda: intervals.effect(UNITS, doses=[7.0]))
    np.testing.assert_allclose(between.values[:, 0], at.values @ [0.6, 0.4], rtol=1e-9)
    most = at.standard_errors @ [0.6, 0.4]  # were the two errors one and the same
    assert (between.standard_errors[:, 0] <= most * (1 + 1e-9)).all()


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_loaded_forests_answer_and_warn_alike(forests, correction, tmp_path):
    forest = forests[correction]
    forest.save(tmp_path / "forest.dose")
    loaded = load_forest(tmp_path / "forest.dose")
    assert loaded.levels() == tuple(LEVELS)
    expected, before = warned(lambda: forest.effect(UNITS, 7.0))
    answer, after = warned(lambda: loaded.effect(UNITS, 7.0))
    np.testing.assert_array_equal(answer, expected)
    assert [str(each.message) for each in after] == [str(each.message) for each in before]


def test_distilled_forests_warn_too_also_when_loaded(forests, tmp_path):
    small = forests["none"].distill(10, verbose=False)
    at_levels = small.dose_response(UNITS)
    between, record = warned(lambda: small.dose_response(UNITS, [7.0]))
    np.testing.assert_allclose(between[:, 0], interpolated(at_levels, 7.0), rtol=1e-12)
    small.save(tmp_path / "small.dose")
    loaded = load_forest(tmp_path / "small.dose")
    answer, again = warned(lambda: loaded.dose_response(UNITS, [7.0]))
    np.testing.assert_array_equal(answer, between)
    assert len(record) == len(again) == 1
    assert not warned(lambda: loaded.effect(UNITS, 10.0))[1]


def test_policies_say_once_that_they_choose_between_levels(forests, tmp_path):
    forest, doses = forests["none"], [0.0, 7.0, 10.0]
    policy, record = warned(lambda: DosePolicy(forest, doses=doses, support=None))
    assert len(record) == 1
    alternatives, silent = warned(lambda: policy.alternatives(UNITS))
    assert not silent
    curves, _ = warned(lambda: forest.dose_response(UNITS, doses))
    np.testing.assert_allclose(alternatives.response, curves, rtol=1e-12)
    policy.save(tmp_path / "policy.dose")
    loaded, _ = warned(lambda: load_policy(tmp_path / "policy.dose"))
    np.testing.assert_array_equal(loaded.alternatives(UNITS).response, alternatives.response)


def test_other_bases_model_the_curve_between_levels():
    forest = fitted("none", basis="legendre")
    curves, record = warned(lambda: forest.dose_response(UNITS, [5.0, 7.0, 10.0]))
    assert not record
    line = curves[:, [0, 2]] @ [0.6, 0.4]
    assert (np.abs(curves[:, 1] - line) > 1e-3).any()  # a root bends between 5 and 10


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_baseline_between_levels_is_interpolated(correction):
    forest = fitted(correction, baseline=2.5)
    levels = forest.dose_response(UNITS, LEVELS)
    effect, _ = warned(lambda: forest.effect(UNITS, 5.0))
    np.testing.assert_allclose(effect, (levels[:, 1] - levels[:, 0]) / 2, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_interpolated_is_refused_with_the_levels(forests):
    rule = r"must hold levels of the treatment, \[0.0, 5.0, 10.0, 20.0\]. Got 7 .*basis='legendre'"
    tests = forests["none"].tests
    for ask in (lambda: tests.rate(7.0), lambda: tests.sensitivity(0.0, 7.0)):
        with pytest.raises(ValueError, match=rule):
            ask()


@pytest.mark.parametrize("correction", ["none", "orthogonal"])
def test_labels_of_an_arm_are_refused_between_each_other(correction):
    arm = np.arange(240) % 2
    made = GeneralizedCausalForest(
        correction=correction if correction == "none" else recipe("orthogonal", leaves=(20,)),
        outcome_model=["core"],
        n_trees=8,
        n_folds=2,
        baseline=[0.0, 5.0],
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few trees
        forest = made.fit(X, Y, treatment=np.column_stack([arm, np.sqrt(DOSE + X[:, 0] ** 2)]))
    rule = r"levels seen in fit, \[0.0, 1.0\], in component 0. Got 0.5 instead: ask for one of them"
    for ask in (
        lambda: forest.dose_response(UNITS, [[0.5, 2.0]]),
        lambda: forest.effect(UNITS, [0.5, 2.0]),
        lambda: forest.average_effect([0.5, 2.0], [0.0, 2.0]),
    ):
        with pytest.raises(ValueError, match=rule):
            ask()


def test_reading_at_levels_gives_what_is_there():
    levels = DoseLevels((-1.0, 0.3, 7.0))
    at_levels = np.random.default_rng(0).normal(size=(5, 3)) * 1e9
    np.testing.assert_array_equal(levels.read(at_levels, np.array(levels.values)), at_levels)
    assert not DoseLevels().apart(np.array([0.5, 9.0])).any()
