"""Categories together with every other option: any sane forest is answered sanely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from test_inputs import Case, Dice, assert_inside_the_curves, case_of, frame_of

from doseforest import load_forest
from forests import assert_same_bits

deterministic = settings(derandomize=True, deadline=None, max_examples=40)


def categorical_case(seed: int) -> Case:
    """Return one of the cases of test_inputs with codes in one or two columns."""
    case, dice = case_of(seed), Dice(seed + 1)
    n_rows, n_features = case.features.shape
    features = case.features.copy()
    columns = dice.rng.permutation(n_features)[: dice.pick(1, 2)].tolist()
    for column in columns:
        n_codes = dice.pick(1, 2, 5, 9, 30, rarely=(300,))
        codes = dice.rng.integers(0, n_codes, n_rows) * dice.pick(1, 7)
        gaps = dice.rng.random(n_rows) < dice.pick(0.0, 0.3, rarely=(1.0,))
        features[:, column] = np.where(gaps, np.nan, codes)
        effect = np.where(gaps, 0.0, np.sin(codes)) * np.abs(case.curves).max() / 2
        case.curves = case.curves + (effect if case.curves.ndim == 1 else effect[:, None])
    case.features = case.table = features
    case.options["categorical_features"] = columns
    return case


CASES = st.integers(0, 2**32 - 2).map(categorical_case)


def as_labels(case: Case, frame_type: Any) -> Any:
    """Return the features as a frame with text in the place of codes."""
    names = [f"x{place}" for place in range(case.features.shape[1])]
    columns: dict[str, Any] = dict(zip(names, case.features.T, strict=True))
    for place in case.options["categorical_features"]:
        codes = case.features[:, place]
        # Digits filled up with zeros are in the order of their numbers.
        columns[names[place]] = [None if np.isnan(code) else f"{int(code):06d}" for code in codes]
    frame = frame_type(columns)
    if frame_type is pd.DataFrame:
        text = [names[place] for place in case.options["categorical_features"]]
        frame = frame.astype(dict.fromkeys(text, "category"))
    return frame


@given(case=CASES)
@deterministic
def test_predictions_are_inside_the_training_curves_for_any_label(case: Case) -> None:
    model = case.fit()
    assert_inside_the_curves(model.predict(case.table), case.curves)
    assert_inside_the_curves(model.predict_oob(case.table), case.curves)
    unseen = case.features.copy()
    unseen[:, case.options["categorical_features"]] = 10**6
    missing = case.features.copy()
    missing[:, case.options["categorical_features"]] = np.nan
    assert_inside_the_curves(model.predict(unseen), case.curves)
    np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))


@given(case=CASES)
@deterministic
def test_rows_fill_the_leaves_that_they_are_predicted_from(case: Case) -> None:
    model = case.fit()
    weights = model.forest_weights(case.table)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    atol = 1e-5 * np.abs(case.curves).max() + 1e-44  # leaf sums are float32
    np.testing.assert_allclose(weights @ case.curves, model.predict(case.table), rtol=0, atol=atol)


@given(case=CASES)
@deterministic
def test_text_frames_and_codes_grow_the_same_forest(case: Case) -> None:
    model = case.fit()
    expected = model.predict(case.table)
    for form in (frame_of(pd.DataFrame), frame_of(pl.DataFrame)):
        np.testing.assert_array_equal(model.predict(form(case.features)), expected)
    for frame_type in (pd.DataFrame, pl.DataFrame):
        case.table = as_labels(case, frame_type)
        if all(len(labels) for labels in model.forest_.categories.values()):
            options = case.options
            case.options = options | {"categorical_features": None}
            again = case.fit()
            case.options = options
            assert_same_bits(again.forest_, model.forest_)
            np.testing.assert_array_equal(again.predict(case.table), expected)


@given(case=CASES)
@deterministic
def test_permuted_rows_with_their_ids_grow_the_same_categories(case: Case) -> None:
    n_rows = len(case.curves)
    case.fit_options.setdefault("row_ids", np.arange(n_rows))
    first = case.fit()
    order = np.random.default_rng(1).permutation(n_rows)
    for name in {"row_ids", "sample_weight", "groups", "spread"} & set(case.fit_options):
        case.fit_options[name] = np.asarray(case.fit_options[name])[order]
    case.table, case.curves = case.features[order], case.curves[order]
    second = case.fit()
    assert first.forest_.categories == second.forest_.categories
    assert_same_bits(first.forest_, second.forest_)


@given(case=CASES)
@deterministic
def test_a_file_gives_the_same_forest_back(case: Case, tmp_path_factory: Any) -> None:
    model = case.fit()
    path = tmp_path_factory.getbasetemp() / "model.dose"
    model.save(path)
    loaded = load_forest(path)
    assert_same_bits(loaded, model.forest_)
    assert loaded.categories == model.forest_.categories
    np.testing.assert_array_equal(loaded.apply(case.table), model.apply(case.table))
