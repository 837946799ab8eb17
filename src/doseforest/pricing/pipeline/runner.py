"""Runs the steps that are not up to date, and tells which those are."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from doseforest.pricing.pipeline.config import PipelineConfig
from doseforest.pricing.pipeline.manifest import (
    Manifest,
    StepRecord,
    file_digest,
    same_code,
    settings_digest,
    versions,
)
from doseforest.pricing.pipeline.problems import PipelineError
from doseforest.pricing.pipeline.steps import Step, steps_of

LOG, LOCK, DRAFTS = "pipeline.log", ".lock", ".drafts"
CURRENT, RUNS, PERHAPS = "up to date", "runs", "runs if its input changes"


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """Whether a step runs, and why."""

    step: Step
    state: str  # CURRENT, RUNS or PERHAPS
    reason: str


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """What became of a step."""

    step: Step
    ran: bool
    record: StepRecord


Watcher = Callable[[str, Step, Any], None]  # of "skips", "starts" or "ends", the step, and details


def plan_pipeline(config: PipelineConfig) -> tuple[PlannedStep, ...]:
    """Say which steps would run now, and why; nothing is changed.

    Parameters
    ----------
    config : PipelineConfig
        The configuration.

    Returns
    -------
    tuple of PlannedStep
        Every step in order, with the reason why it would run or not.

    Examples
    --------
    >>> import tempfile
    >>> from doseforest.pricing.pipeline import PipelineConfig
    >>> config = PipelineConfig.from_tables({
    ...     "pipeline": {"workspace": tempfile.mkdtemp()},
    ...     "collect": {"source": "marketplace", "rows": 1000},
    ...     "columns": {"outcome": "requested", "treatment": "discount"},
    ...     "train": {"models": ["forest"]},
    ...     "optimise": {"price": "fare", "budget": 0.5},
    ... })
    >>> step = plan_pipeline(config)[0]
    >>> step.step.name, step.state
    ('collect', 'runs')
    """
    manifest = Manifest.read(config.workspace)
    planned: list[PlannedStep] = []
    uncertain: dict[str, str] = {}  # artifacts that may change, and who writes them
    for step in steps_of(config):
        reason = _why_run(step, manifest, set(uncertain))
        waits = [uncertain[name] for name in step.inputs if name in uncertain]
        if reason:
            state = RUNS
        elif waits:
            state, reason = PERHAPS, f"needs what comes of {', '.join(dict.fromkeys(waits))}"
        else:
            state = CURRENT
        planned.append(PlannedStep(step, state, reason))
        if state != CURRENT:
            uncertain |= dict.fromkeys(step.outputs, step.name)
    return tuple(planned)


def run_pipeline(
    config: PipelineConfig, *, fresh: bool = False, watch: Watcher | None = None
) -> tuple[FinishedStep, ...]:
    """Run what is not up to date; a run that was stopped goes on where it was.

    Artifacts are made in a folder of drafts and moved to their place when they are whole; the
    manifest, which alone says that a step is done, is written last.

    Parameters
    ----------
    config : PipelineConfig
        The configuration.
    fresh : bool, default=False
        Run all steps again, whatever is up to date.
    watch : callable, optional
        Called at every step with "skips", "starts" or "ends", the step, and why or its record.

    Returns
    -------
    tuple of FinishedStep
        Every step in order, with its record.

    Examples
    --------
    >>> from doseforest.pricing.pipeline import read_config
    >>> run_pipeline(read_config("rides.toml"))  # doctest: +SKIP
    """
    config.workspace.mkdir(parents=True, exist_ok=True)
    tell = watch or (lambda *event: None)
    finished: list[FinishedStep] = []
    with _only_run(config.workspace):
        shutil.rmtree(config.workspace / DRAFTS, ignore_errors=True)  # of a run that was killed
        manifest = Manifest.read(config.workspace)
        steps = steps_of(config)
        manifest.drop(set(manifest.steps) - {step.name for step in steps})
        for step in steps:
            reason = "asked to run anew" if fresh else _why_run(step, manifest)
            if reason:
                tell("starts", step, reason)
                record = _run(step, config, manifest, reason)
                tell("ends", step, record)
            else:
                record = manifest.steps[step.name]
                tell("skips", step, record)
            finished.append(FinishedStep(step, bool(reason), record))
    return tuple(finished)


def _why_run(step: Step, manifest: Manifest, uncertain: set[str] | None = None) -> str:
    """Why a step must run, empty where its artifacts are whole and of these very inputs."""
    record = manifest.steps.get(step.name)
    if record is None:
        return "has not run yet"
    if record.settings != settings_digest(step.settings):
        return "its configuration changed"
    if not same_code(record):
        return "doseforest has another version"
    for name in step.outputs:
        if _digest(manifest.folder / name) != record.outputs.get(name):
            return f"{name} is missing or damaged"
    for path in step.copies:
        if _digest(path) not in record.outputs.values():
            return f"{path} is missing or another file"
    known = {
        name: output for past in manifest.steps.values() for name, output in past.outputs.items()
    }
    for name in step.inputs:
        if name not in (uncertain or ()) and record.inputs.get(name) != known.get(name):
            return f"{name} changed"
    for path in step.files:
        if record.inputs.get(str(path)) != _digest(path):
            return f"{path} changed"
    return ""


def _run(step: Step, config: PipelineConfig, manifest: Manifest, reason: str) -> StepRecord:
    """Do a step and put its artifacts in their place."""
    _log(config.workspace, f"{step.name} starts: {reason}")
    manifest.drop([step.name])
    known = {
        name: output for past in manifest.steps.values() for name, output in past.outputs.items()
    }
    inputs = {name: known[name] for name in step.inputs}
    inputs |= {str(path): _digest(path) or "absent" for path in step.files}
    drafts = config.workspace / DRAFTS
    drafts.mkdir(exist_ok=True)
    start = time.perf_counter()
    try:
        metrics = step.work()(step, config, drafts)
        outputs = {}
        for name in step.outputs:
            draft, target = drafts / Path(name).name, config.workspace / name
            outputs[name] = file_digest(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(target)
    except BaseException as error:
        _log(config.workspace, f"{step.name} failed: {type(error).__name__}: {error}")
        raise
    finally:
        shutil.rmtree(drafts, ignore_errors=True)
    record = StepRecord(
        settings=settings_digest(step.settings),
        inputs=inputs,
        outputs=outputs,
        seed=config.pipeline.seed,
        seconds=round(time.perf_counter() - start, 2),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        metrics=metrics,
        versions=versions(),
    )
    manifest.put(step.name, record)
    _log(config.workspace, f"{step.name} ends after {record.seconds:.1f} s")
    return record


def _digest(path: Path) -> str | None:
    return file_digest(path) if path.is_file() else None


def _log(workspace: Path, text: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    with (workspace / LOG).open("a", encoding="utf-8") as file:
        file.write(f"{now} {text}\n")


@contextmanager
def _only_run(workspace: Path) -> Iterator[None]:
    """One run at a time in a workspace; the system lets go of the lock when a run is killed."""
    try:
        import fcntl
    except ImportError:  # not on this system: whoever runs two at a time is on their own
        yield
        return
    with (workspace / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PipelineError(
                f"Another run is at work in {workspace}. Wait for it, or choose another workspace."
            ) from error
        yield
