"""Names of the components of doses: given or made up, kept by files, refused where they mislead."""

import numpy as np
import pytest

from doseforest.policy import (
    ConstantPolicy,
    DosePolicy,
    ExplorationPolicy,
    Explore,
    load_policy,
    unit_table,
)

PAIRS = np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 0.0]])
NAMES = ("express", "premium")


def of_forest(**parameters):
    X = np.linspace(0, 1, 60)[:, None]
    return DosePolicy(unit_table(X, X * [0.0, 1.0, 2.0], PAIRS), **parameters)


KINDS = {
    "forest": of_forest,
    "constant": lambda **own: ConstantPolicy([0.0, 5.0], **own),
    "random": lambda **own: ExplorationPolicy(PAIRS, salt="a", **own),
    "mixture": lambda **own: Explore(of_forest(**own), 0.5, salt="a"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_kept_by_files_and_numbers_stand_in_for_them(kind, tmp_path):
    path = tmp_path / "policy.dose"
    for given, expected in (({"components": list(NAMES)}, NAMES), ({}, ("0", "1"))):
        policy = KINDS[kind](**given)
        assert policy.components == expected
        policy.save(path)
        loaded = load_policy(path)
        assert loaded.components == expected
        frame = loaded.decide(np.array([[0.5]]), {"unit": ["ann"]}).to_frame()
        assert list(frame.columns[:2]) == [f"dose_{name}" for name in expected]


def test_doses_of_one_component_have_no_names(tmp_path):
    ConstantPolicy(5.0).save(tmp_path / "policy.dose")
    assert load_policy(tmp_path / "policy.dose").components is None
    assert b"components" not in (tmp_path / "policy.dose").read_bytes()  # as files were before
    with pytest.raises(ValueError, match=r"must be None for doses of one component. Got \['a'\]"):
        ConstantPolicy(5.0, components=["a"])


@pytest.mark.parametrize(
    "names",
    [
        ["express"],
        ["a", "b", "c"],
        ["a", "a"],
        "ab",
        ["a", ""],
        ["a", " b"],
        ["a", "b=c"],
        ["a", "b,c"],
        ["a", "b\n"],
        ["a", "b" * 41],
        ["a", 2],
        [["a"], ["b"]],
    ],
)
def test_names_that_mislead_are_refused(names):
    with pytest.raises(ValueError, match="'components' parameter must be a distinct name for each"):
        ConstantPolicy([0.0, 5.0], components=names)
