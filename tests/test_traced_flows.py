"""How long a way a call goes through our modules: ceilings on its calls, and what is done once.

A ceiling that is broken says that a flow has grown a detour: a function that only repacks, a table
that is checked again, a second prediction. `traced` lists the calls; ``Flow.listing`` prints them.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import doseforest
from doseforest import CurveForest, GeneralizedCausalForest
from doseforest.datasets import DESIGNS
from doseforest.estimator.corrections.paper_recipe import PAPER, PAPER_PARAMETERS
from doseforest.nuisance.outcome.process_fit import ProcessRecipe
from doseforest.policy import ConstantPolicy, DoseCost, DosePolicy, Explore, unit_table
from doseforest.pricing.service.deciding import Deciders, decide_or_raise
from doseforest.pricing.service.online_experiments.running_arms import Arm, RunningExperiment
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.registry.served_policy import ServedPolicy
from pricing.service.service_world import World, make_world

SOURCE = str(Path(doseforest.__file__).parent)
COMPREHENSIONS = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}  # no calls since 3.12

# Calls of our functions, each once: a coroutine that goes on after a wait is no second call.
MOST_CALLS = {
    "a decision by a policy": 45,
    "a decision by an exploring policy": 60,
    "a decision in an experiment of two arms": 70,
    "a decision over HTTP": 110,
    "a decision over HTTP by an exploring policy": 110,
    "an effect of a unit": 58,
    "an effect of a unit with readings of curves": 88,
}
GROWER, MOST_FRAMES = "grow_trees", 8  # from fit down to the grower, both counted
MOST_MODULES = 110  # of ours, loaded with the estimator; version 0.1 loaded 273
CHECKS = {"as_table", "as_numbers", "as_doses", "checked_table", "recoded", "ArrayTable.blocks"}


@dataclass
class Flow:
    """The calls of our functions while `counting`."""

    counting: bool = False
    frames: dict[FrameType, str] = field(default_factory=dict)  # kept, so that none comes twice

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls."""
        code = frame.f_code
        if not self.counting or event != "call" or code.co_name in COMPREHENSIONS:
            return
        if code.co_filename.startswith(SOURCE):
            self.frames[frame] = f"{code.co_filename[len(SOURCE) + 1 :]} {code.co_qualname}"

    @property
    def calls(self) -> Counter[str]:
        """Times that each function was called, by its name without its file."""
        return Counter(name.rpartition(" ")[2] for name in self.frames.values())

    @property
    def listing(self) -> str:
        """Every function with its calls, in the order in which they first came."""
        return "\n".join(f"{n:4d} {name}" for name, n in Counter(self.frames.values()).items())

    def check(self, name: str) -> None:
        """Fail where there are more calls than the ceiling of this name, or hardly any."""
        ceiling = MOST_CALLS[name]
        assert ceiling / 3 < len(self.frames) <= ceiling, f"{name}:\n{self.listing}"


def traced(call: Callable[[], Any]) -> Flow:
    """The calls that one call makes on this thread, after a first one that may load things."""
    call()
    flow, before = Flow(counting=True), sys.getprofile()
    sys.setprofile(flow.note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return flow


# A served decision -----------------------------------------------------------------------------


@cache
def distilled_policy() -> DosePolicy:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (300, 10))
    curves, doses = X[:, :1] * [0.0, 1.0, 1.5], [0.0, 1.0, 2.0]
    support = unit_table(X, np.ones((300, 3)), doses)
    return DosePolicy(
        unit_table(X, curves, doses), cost=DoseCost(1.0), budget_price=1.0, support=support
    )


POLICIES: dict[str, Callable[[], Any]] = {
    "a policy": distilled_policy,
    "an exploring policy": lambda: Explore(distilled_policy(), 0.3, salt="spring"),
}
FEATURES = {f"x{place}": 1.5 for place in range(10)}
UNIT = ServedUnit("ann", "north-9", FEATURES)


def decided_by(name: str) -> Flow:
    deciders = Deciders(ServedPolicy(1, POLICIES[name]()), None, None)
    return traced(lambda: decide_or_raise(deciders, [UNIT]).columns())


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_goes_a_short_way(name: str) -> None:
    decided_by(name).check(f"a decision by {name}")


@pytest.mark.parametrize("name", POLICIES)
def test_the_table_of_a_request_is_checked_once(name: str) -> None:
    calls = decided_by(name).calls
    assert calls["checked_request"] == calls["checked_units"] == 1
    assert not CHECKS & set(calls)


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_predicts_once(name: str) -> None:
    calls = decided_by(name).calls
    assert calls["weigh"] == 1
    assert calls["DistilledForest.curves"] == 2  # of the forest, and of its model of support
    assert not {call for call in calls if "dose_response" in call or "predict" in call}


def test_a_decision_in_an_experiment_goes_once_through_every_arm() -> None:
    policies = [distilled_policy(), ConstantPolicy(0.0)]
    arms = tuple(
        Arm(name, 0.5, ServedPolicy(version, policy))
        for version, (name, policy) in enumerate(zip("ab", policies, strict=True))
    )
    deciders = Deciders(None, RunningExperiment(1, "spring", "salt", arms), None)
    flow = traced(lambda: decide_or_raise(deciders, [UNIT]).columns())
    flow.check("a decision in an experiment of two arms")
    assert flow.calls["ServedPolicy.choose"] == len(arms)


@pytest.mark.parametrize("name", POLICIES)
def test_a_decision_over_http_goes_a_short_way(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from doseforest.pricing.service.api.state import Service

    async def stand_still(service: Service) -> None:
        await service.stopping.wait()

    monkeypatch.setattr(Service, "follow", stand_still)  # its look at the database is no request's
    flow = decided_over_http(tmp_path, POLICIES[name]())
    flow.check("a decision over HTTP" + (" by an exploring policy" if "explor" in name else ""))
    assert flow.calls["checked_units"] == 1
    assert not {"as_table", "checked_table", "recoded"} & set(flow.calls)


def decided_over_http(folder: Path, policy: Any) -> Flow:
    """All calls of one request, whatever thread they are on."""
    from fastapi.testclient import TestClient

    from doseforest.pricing.service.api.app import create_app
    from doseforest.pricing.service.storage.databases import sqlite_url

    world = make_world(folder, sqlite_url(folder / "decisions.sqlite"), refresh=600.0)
    publish(world, policy)
    flow = Flow()
    sent = {"unit": UNIT.unit, "features": dict(FEATURES)}
    threading.setprofile(flow.note)  # of threads that start from here on
    try:
        with TestClient(create_app(world.settings)) as client:
            for flow.counting in (False, True):
                answer = client.post("/v1/decision", json=sent, headers=world.headers())
                assert answer.status_code == 200, answer.text
            flow.counting = False
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
        world.database.dispose()
    return flow


def publish(world: World, policy: Any) -> None:
    from doseforest.pricing.service.registry import policy_catalog

    path = world.folder / "policy.dose"
    policy.save(path)
    described = policy_catalog.describe(world.files, world.files.add(path.read_bytes()))
    with world.database.writing.begin() as connection:
        version = policy_catalog.publish(connection, described, note="traced", by="test")
        policy_catalog.activate(connection, version, by="test")


# A fit, and an effect ---------------------------------------------------------------------------

FITS: dict[str, dict[str, Any]] = {
    "orthogonal": {},
    "stabilized": {"correction": "stabilized"},
    "kernel": {"correction": "kernel"},
    "paper": {**PAPER_PARAMETERS, "correction": PAPER},
    "halves swapped": {"honesty": "swap"},
    "bags": {"inference": "bags"},
}
N_FORESTS = dict(zip(FITS, (8, 3, 1, 1, 8, 9), strict=True))


@dataclass
class FlowToTheGrower(Flow):
    """Also how many frames of ours the grower lies under."""

    depth: int = 0

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls."""
        super().note(frame, event, _)
        if event == "call" and frame.f_code.co_name == GROWER:
            above, depth = frame, 0
            while above is not None:
                depth += above.f_code.co_filename.startswith(SOURCE)
                above = above.f_back
            self.depth = max(self.depth, depth)


def grown(call: Callable[[], Any]) -> FlowToTheGrower:
    """The calls of a fit."""
    flow, before = FlowToTheGrower(counting=True), sys.getprofile()
    sys.setprofile(flow.note)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few trees
            call()
    finally:
        sys.setprofile(before)
    return flow


@cache
def fitted(name: str) -> tuple[FlowToTheGrower, GeneralizedCausalForest]:
    data = DESIGNS["randomised"].draw(n=200, seed=0)
    plain = {"outcome_model": LinearRegression(), "treatment_model": LinearRegression()}
    settings = {**plain, **FITS[name], "n_trees": 20, "random_state": 0, "n_jobs": 1}
    forest = GeneralizedCausalForest(**settings)
    return grown(lambda: forest.fit(data.X, data.y, treatment=data.treatment)), forest


@pytest.mark.parametrize("name", FITS)
def test_a_fit_bins_its_table_once_whatever_it_grows(name: str) -> None:
    calls = fitted(name)[0].calls
    assert calls["fit_bins"] == calls["bin_rows"] == 1
    assert calls["grow_forest"] == N_FORESTS[name]


@pytest.mark.parametrize("name", FITS)
def test_nothing_in_a_fit_asks_a_public_estimator(name: str) -> None:
    assert not {call for call in fitted(name)[0].calls if call.startswith("CurveForest.")}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_few_frames_from_the_grower(name: str) -> None:
    assert 3 < fitted(name)[0].depth <= MOST_FRAMES


def test_the_engines_estimator_is_a_shell_around_the_same_entry() -> None:
    x = np.arange(100.0)[:, None]
    flow = grown(lambda: CurveForest(n_trees=2, n_jobs=1).fit(x, x[:, 0]))
    assert flow.calls["check_inputs"] == flow.calls["fit_bins"] == flow.calls["grow_forest"] == 1
    assert flow.depth == 3  # fit, grow_forest, grow_trees


@cache
def stacked(design: str = "randomised") -> GeneralizedCausalForest:
    data = DESIGNS[design].draw(n=300, seed=0)
    members = ["core", "core, boosted early", "trees"]  # more members, more calls
    forest = GeneralizedCausalForest(20, outcome_model=members, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return forest.fit(data.X, data.y, treatment=data.treatment)


def test_an_effect_of_a_unit_goes_a_short_way_and_checks_its_doses_once() -> None:
    unit = np.zeros((1, stacked().n_features_in_))
    flow = traced(lambda: stacked().effect(unit, dose=5.0, baseline=0.0))
    flow.check("an effect of a unit")
    assert flow.calls["unit_doses"] == 2  # dose and baseline
    assert flow.calls["as_numbers"] == 3  # these and the table
    assert flow.calls["DoseRange.contains"] == flow.calls["EffectForest.checked_table"] == 1


def test_an_effect_with_readings_of_curves_reads_them_once_at_doses_and_once_at_nodes() -> None:
    forest = stacked("confounded")
    correction = forest.model_.parts[0].correction
    assert any(own.reads_curves for own in correction.rounds)
    unit = np.zeros((1, forest.n_features_in_))
    flow = traced(lambda: forest.effect(unit, dose=5.0, baseline=0.0))
    flow.check("an effect of a unit with readings of curves")
    assert flow.calls["Stack.curves"] == 2
    assert flow.calls["sieve_coefficients"] <= flow.calls["Reading.added"]


def test_members_of_the_stack_share_the_curves_of_the_core() -> None:
    model = stacked().outcome_model_
    weights = model.parts[0].outcome.weights
    assert sum("core" in name for name, weight in weights.items() if weight > 0) > 1
    flow = traced(lambda: model.dose_response(np.zeros((3, model.n_features)), [0.0, 5.0]))
    assert flow.calls["SplineCore.curves"] == 1


def test_a_process_answers_by_a_kernel_for_each_of_its_parts() -> None:
    rng = np.random.default_rng(0)
    X, dose = rng.normal(size=(60, 2)), rng.uniform(size=60)
    for in_parts, kernels in ((True, 4), (False, 2)):
        process = ProcessRecipe(in_parts=in_parts).fit(X, dose, X[:, 0] * dose)
        flow = traced(lambda process=process: process.curves(X[:1], np.array([0.2, 0.8])))
        assert flow.calls["squared_exponential"] == kernels
        assert len(flow.frames) <= 14


def test_the_estimator_loads_what_answers_and_not_what_fits() -> None:
    code = (
        "import sys; from doseforest import GeneralizedCausalForest; "
        "print(*(name for name in sys.modules if name.startswith('doseforest')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = run.stdout.split()
    assert len(names) <= MOST_MODULES, names
    floors = {name.split(".")[1] for name in names if "." in name}
    assert not floors & {"inference", "policy", "evaluation", "baselines", "report", "pricing"}
