"""Configurations of pipelines: what is refused, and how that is said."""

from __future__ import annotations

import tomllib

import pytest

from doseforest.pricing.pipeline import ConfigError, PipelineConfig, read_config
from doseforest.pricing.pipeline.template import template
from pipeline_runs import config_of, tables, write_rows


@pytest.fixture
def folder(tmp_path):
    write_rows(tmp_path, n=60)
    return tmp_path


def test_a_configuration_has_defaults_for_what_is_not_said(folder):
    config = config_of(folder)
    assert config.pipeline.engine == "local"
    assert config.select.metric == "qini"
    assert config.workspace == folder / "out/pipeline"


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("pipeline", "engine", "flink", "[pipeline] engine must be one of 'local', 'spark'"),
        ("pipeline", "seed", -1, "[pipeline] seed must be a whole number of at least 0. Got -1"),
        ("pipeline", "seed", True, "[pipeline] seed must be a whole number"),
        ("pipeline", "threads", 0, "[pipeline] threads must be a whole number of at least 1"),
        ("collect", "holdout", 1.0, "[collect] holdout must be a number above 0 and below 1"),
        ("collect", "path", "nowhere.parquet", "must be a file that exists"),
        ("collect", "source", "excel", "[collect] source must be one of"),
        ("columns", "treatment", [], "[columns] treatment must be a list of different names"),
        ("columns", "treatment", ["a", "a"], "must be a list of different names"),
        ("columns", "features", ["income", "ordered"], "neither the outcome nor the treatment"),
        ("columns", "outcome", "", "[columns] outcome must be text, not empty. Got ''"),
        ("columns", "treatment", ["a", "b", "c", "d"], "must have at most 3 columns"),
        ("train", "models", ["frest"], "unknown 'frest'. Did you mean 'forest'?"),
        ("train", "parameters", {}, "Write them under [train.NAME]"),
        ("train", "forest", {}, "[train.forest] must be of one of the models"),
        ("train", "boosting", 3, "[train] parameters must be tables"),
        ("select", "tie", "forest", "[select] tie must be 'best' or one of the models"),
        (
            "select",
            "level",
            "low",
            "[select] level must be a number above 0 and below 1. Got 'low'",
        ),
        ("select", "doses", [0.1, 0.1], "[select] doses must be a list of at least two different"),
        ("optimise", "budget", 1.0, "needs either 'budget'"),
        ("optimise", "budget_like", [0.1, 0.2], "must have 1 components"),
        ("optimise", "budget_like", "much", "[optimise] budget_like must be a dose"),
        ("optimise", "cell", "cell", "cell and supply must be given together"),
        ("optimise", "compare", ["forest"], "compare has 'forest'"),
        ("optimise", "units", "nobody.csv", "[optimise] units must be a file that exists"),
        ("test", "kind", "marketplace", "must not be 'marketplace' where rows come from elsewhere"),
        ("test", "path", "nothing.csv", "[test] path must be a file that exists"),
        ("test", "days", 0, "[test] days must be a whole number of at least 1 and at most 300"),
    ],
)
def test_an_error_names_section_key_rule_and_value(folder, section, key, value, message):
    with pytest.raises(ConfigError) as error:
        config_of(folder, **{section: {key: value}})
    assert message in str(error.value)


def test_unknown_keys_and_sections_are_refused_with_the_nearest_name(folder):
    with pytest.raises(ConfigError, match=r"\[collect\] has no key 'ruws'. Did you mean 'rows'\?"):
        config_of(folder, collect={"ruws": 5})
    with pytest.raises(ConfigError, match=r"no section \[colect\]. Did you mean 'collect'\?"):
        config_of(folder, colect={"rows": 5})


def test_all_problems_are_told_at_once(folder):
    wrong = tables(pipeline={"seed": -1}, select={"level": 2.0}, train={"modles": []})
    with pytest.raises(ConfigError) as error:
        PipelineConfig.from_tables(wrong, folder)
    assert len(error.value.problems) == 3
    assert "has 3 problems" in str(error.value)


def test_what_must_be_given_is_asked_for():
    with pytest.raises(ConfigError) as error:
        PipelineConfig.from_tables({})
    told = "\n".join(error.value.problems)
    for key in ("[collect] source", "[columns] outcome", "[columns] treatment", "[train] models"):
        assert f"{key} must be given" in told


def test_sections_must_be_tables():
    with pytest.raises(ConfigError, match=r"\[collect\] must be a table of settings. Got 3"):
        PipelineConfig.from_tables({"collect": 3})


def test_a_model_whose_package_is_missing_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.setattr("doseforest.pricing.pipeline.config_checks._installed", lambda name: False)
    with pytest.raises(ConfigError, match=r"pip install 'doseforest\[baselines\]'"):
        config_of(folder, train={"models": ["boosting", "linear", "xgboost"]})


def test_a_file_that_is_missing_or_no_toml_is_told_of(tmp_path):
    with pytest.raises(ConfigError, match="pipeline init"):
        read_config(tmp_path / "config.toml")
    (tmp_path / "config.toml").write_text("[collect\n")
    with pytest.raises(ConfigError, match="not TOML"):
        read_config(tmp_path / "config.toml")


def test_the_template_is_a_valid_configuration(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(template("config.toml"))
    config = read_config(path)
    assert config.collect.source == "marketplace"
    assert config.folder == tmp_path.resolve()


def test_defaults_shown_in_the_template_are_the_defaults(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(template("config.toml"))
    shown = [line for line in path.read_text().splitlines() if line.startswith("# ")]
    # Lines of keys with a default, as they stand in comments.
    keys = ("engine", "seed", "regime", "options", "holdout", "metric", "level", "tie", "fill",
            "days")  # fmt: skip
    lines = "\n".join(line[2:].split("  ")[0] for line in shown if line[2:].split(" = ")[0] in keys)
    found = tomllib.loads(lines)
    assert set(found) == set(keys)
    config = read_config(path)
    sections = (config.pipeline, config.collect, config.select, config.optimise, config.test)
    for key, value in found.items():
        assert value in [getattr(own, key) for own in sections if hasattr(own, key)], key
