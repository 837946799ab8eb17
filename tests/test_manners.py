"""Interrupts, imports and the public names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import doseforest
from doseforest import CurveForest
from forests import wavy_data

LONG_GROWTH = """
import sys, threading, numpy as np
from doseforest import CurveForest
x = np.random.default_rng(0).normal(size=(20_000, 40))
y = np.random.default_rng(1).normal(size=(20_000, 32))
print("growing", flush=True)
try:
    CurveForest(100_000, min_node_size=50, n_jobs=2, random_state=0, memory_limit=10**13).fit(x, y)
except KeyboardInterrupt:
    print("interrupted with", threading.active_count(), "thread", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_control_c_ends_growth():
    child = subprocess.Popen([sys.executable, "-c", LONG_GROWTH], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "growing\n"
        # Growth takes many minutes: whether the signal comes early or late is the same.
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=2)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=60)
        assert output == "interrupted with 1 thread\n"
        assert child.returncode == 0
    finally:
        child.kill()


PUBLIC_NAMES = [
    "CurveForest",
    "EffectForest",
    "ForestFileError",
    "GeneralizedCausalForest",
    "load_forest",
    "load_policy",
    "tune",
]


def test_the_public_names_are_the_promised_ones():
    assert doseforest.__all__ == PUBLIC_NAMES
    assert [getattr(doseforest, name).__name__ for name in PUBLIC_NAMES] == PUBLIC_NAMES
    assert set(dir(doseforest)) >= {*PUBLIC_NAMES, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'forrest'"):
        _ = doseforest.forrest


PUBLIC_PARAMETERS = [
    "bag_size",
    "categorical_features",
    "distance",
    "guard",
    "honesty",
    "honesty_fraction",
    "leaf_curve",
    "max_bins",
    "max_depth",
    "memory_limit",
    "min_child_fraction",
    "min_info_gain",
    "min_node_size",
    "mtry",
    "mtry_scope",
    "n_jobs",
    "n_trees",
    "positivity",
    "progress",
    "random_state",
    "sample_fraction",
    "sampling",
    "statistic",
    "zeta",
]


def test_the_parameters_are_the_promised_ones():
    assert sorted(CurveForest().get_params()) == PUBLIC_PARAMETERS


def test_it_lives_with_clone_pipelines_and_searches():
    x, y, _ = wavy_data(n=300, k=3, missing=0)
    forest = CurveForest(10, min_node_size=5, random_state=0)
    expected = forest.fit(x, y).predict(x)
    np.testing.assert_array_equal(clone(forest).fit(x, y).predict(x), expected)
    pipeline = make_pipeline(StandardScaler(), clone(forest)).fit(x, y)
    assert pipeline.predict(x).shape == (300, 3)
    search = GridSearchCV(clone(forest), {"min_node_size": [5, 100]}, cv=2).fit(x, y)
    assert search.best_params_ == {"min_node_size": 5}


def test_the_versions_agree():
    from importlib.metadata import version

    assert doseforest.__version__ == version("doseforest")


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    namespace = {}
    exec(code, namespace)
    effects = namespace["forest"].effect(namespace["X"], dose=10, baseline=0)
    assert effects.shape == (1000,)
    assert (tmp_path / "model.dose").exists()
