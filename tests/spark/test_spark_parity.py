"""Whatever the local estimator has, Spark has too or says what to do instead."""

from __future__ import annotations

import inspect

import pytest

from doseforest import EffectForest, GeneralizedCausalForest
from doseforest.spark.local_only import (
    ANSWERS,
    COUNTERPARTS,
    PARAMETERS,
    local_answer,
    refuse_parameter,
)
from spark_here import needs_spark

OF_SCIKIT_LEARN = {
    *("get_params", "set_params", "get_metadata_routing", "set_fit_request", "set_score_request"),
    *("set_output", "output"),
}
BEFORE_A_FIT = {"fit", "paper"}
OF_THE_MODEL = {"summary", "save"}  # names that both have


def test_every_parameter_of_the_local_estimator_has_a_place_in_one_table():
    parameters = set(GeneralizedCausalForest().get_params())
    arguments = set(inspect.signature(GeneralizedCausalForest.fit).parameters) - {"self", "X", "y"}
    assert not set(PARAMETERS) & set(COUNTERPARTS)
    missing = (parameters | arguments) - set(PARAMETERS) - set(COUNTERPARTS)
    assert not missing, f"classify {sorted(missing)} in doseforest.spark.local_only"
    gone = (set(PARAMETERS) | set(COUNTERPARTS)) - parameters - arguments
    assert not gone, f"the local estimator no longer has {sorted(gone)}"


def test_every_answer_of_the_local_estimator_has_a_place():
    names = {name for name in dir(GeneralizedCausalForest) if not name.startswith("_")}
    asked = names - OF_SCIKIT_LEARN - BEFORE_A_FIT - OF_THE_MODEL
    missing = {name for name in asked if local_answer(name) is None}
    assert not missing, f"classify {sorted(missing)} in doseforest.spark.local_only"
    gone = {name for name in ANSWERS if name not in asked or hasattr(EffectForest, name)}
    assert not gone, f"the local estimator no longer answers {sorted(gone)}, or the model does"


@pytest.mark.parametrize("name", [*PARAMETERS, "nRepeats", "memoryLimit"])
def test_a_parameter_of_the_local_estimator_alone_is_refused_with_a_cure(name):
    with pytest.raises(TypeError, match=rf"'{name}' .* left out on Spark, .* Got 7 instead: \w+"):
        refuse_parameter(name, 7)


@needs_spark
def test_the_estimator_says_how_spark_names_a_parameter(spark):
    from doseforest.spark import SparkCausalForest

    for local, own in COUNTERPARTS.items():
        assert SparkCausalForest().hasParam(own)
        if local != own:
            with pytest.raises(TypeError, match=rf"'{local}' .* given as '{own}' on Spark"):
                SparkCausalForest(**{local: 7})
    with pytest.raises(TypeError, match=r"'honesty' .* left out on Spark, .* 'swap' instead: fit"):
        SparkCausalForest(honesty="swap")
    with pytest.raises(TypeError, match=r"must be given parameters that it has. Got 'trees'"):
        SparkCausalForest(trees=7)


@needs_spark
def test_a_value_of_the_local_estimator_alone_is_refused_with_a_cure(spark):
    from doseforest.spark import SparkCausalForest

    with pytest.raises(ValueError, match=r"one of 'orthogonal', 'none'. Got 'paper' .* fit with"):
        SparkCausalForest(correction="paper").value("correction")
    with pytest.raises(ValueError, match=r"Got 'paper ' instead\.$"):
        SparkCausalForest(correction="paper ").value("correction")


@needs_spark
def test_the_model_says_where_the_answers_of_the_local_estimator_are(spark):
    from doseforest.spark import SparkCausalForestModel

    model = SparkCausalForestModel()
    for name, told in {
        "elasticity": r"call toLocal\(\).elasticity",
        "overlap_report": r"use overlapReport\(\)",
        "tests": "fit with doseforest.GeneralizedCausalForest on one machine",
    }.items():
        with pytest.raises(AttributeError, match=told):
            getattr(model, name)
        assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'\.$"):
        _ = model.nothing
    assert model.copy().uid == model.uid
