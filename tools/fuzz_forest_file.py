"""Fuzz the loader of forests and policies: whatever the bytes, an error or a sane model.

Usage:
  python tools/fuzz_forest_file.py run SECONDS       coverage-guided, with atheris
  python tools/fuzz_forest_file.py replay FILE ...   load files as the fuzzer does

A run starts from the stored models of the tests and from what earlier runs found worth keeping in
out/fuzz/corpus. Atheris watches which branches of the loader's Python a file reaches; the compiled
core is not watched, only run, by the predictions of what loads.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FunctionType

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests"))

from forest_file_check import check_file  # noqa: E402
from forest_file_mutations import crossed, mutated  # noqa: E402
from policy_file_check import check_policy_file  # noqa: E402

FOLDER = REPOSITORY / "out" / "fuzz"
CORPUS = FOLDER / "corpus"
SEEDS = sorted((REPOSITORY / "tests").glob("stored_*/*.dose"))
MOST_BYTES = 100_000
SECONDS_PER_FILE = 20
ROOM = 2**30  # bytes that loading and predicting may take on top of the imports
WATCHED = [
    "doseforest.estimator.corrections.stored_corrections",
    "doseforest.estimator.corrections.stored_sieves",
    "doseforest.data.sampling",
    "doseforest.engine.leaves.leaf_curves",
    "doseforest.nuisance.outcome.stored_outcome_models",
    "doseforest.nuisance.encoding.category_encoding",
    "doseforest.nuisance.outcome.outcome_models",
    "doseforest.nuisance.outcome.spline_model",
    "doseforest.nuisance.outcome.tree_ensemble",
    "doseforest.policy.artifact.dose_policy",
    "doseforest.policy.artifact.exploration",
    "doseforest.files.policy_file",
    "doseforest.policy.artifact.value_rules",
    "doseforest.base.container",
    "doseforest.files.distilled_file",
    "doseforest.estimator.distilled_forest",
    "doseforest.files.effect_file",
    "doseforest.estimator.effect_forest",
    "doseforest.engine.forest",
    "doseforest.files.forest_file",
    "doseforest.engine.node_checks",
    "doseforest.engine.stored_categories",
    "doseforest.engine.stored_forest",
    "doseforest.doses.stored_values",
    "doseforest.doses.bases.dose_basis",
]


def run(seconds: int) -> int:
    """Fuzz in a child process, which a finding ends, and say how to replay one."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS:
        shutil.copy(seed, CORPUS)
    before = set(FOLDER.glob("*-*"))
    child = subprocess.run([sys.executable, __file__, "child", str(seconds)], check=False)
    found = sorted(set(FOLDER.glob("*-*")) - before)
    for path in found:
        print(f"\nFound {path.relative_to(REPOSITORY)}. Replay it with:")
        print(f"  {sys.executable} tools/fuzz_forest_file.py replay {path}")
    if child.returncode == 0 and not found:
        n_kept = len(list(CORPUS.iterdir()))
        print(f"Nothing found in {seconds} s; {n_kept} files in {CORPUS.relative_to(REPOSITORY)}.")
    return child.returncode or len(found)


def fuzz(seconds: int) -> None:
    """Fuzz until the time is over or something is found; never returns."""
    import atheris  # only this needs it

    for name in WATCHED:
        importlib.import_module(name)
    # Atheris' own hook for imports cannot see through that of an editable install.
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__module__ in WATCHED:
            function.__code__ = atheris.patch_code(function.__code__, trace_dataflow=False)
    replay(SEEDS)  # imports what predictions need before memory is limited
    limit_memory()
    sound = [seed.read_bytes() for seed in SEEDS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.dose"

        def check(file: bytes) -> None:
            check_file(file, path)
            check_policy_file(file, path)

        def mutate(file: bytes, most: int, seed: int) -> bytes:
            # A refused file with one more change is mostly refused for the old reason: every
            # other time, change a forest that loads.
            start = sound[seed // 2 % len(sound)] if seed % 2 else file
            return mutated(start, most, seed, atheris.Mutate)

        options = {
            "max_total_time": seconds,
            "max_len": MOST_BYTES,
            "timeout": SECONDS_PER_FILE,
            "rss_limit_mb": 0,  # limit_memory is stricter
            "print_final_stats": 1,
            "artifact_prefix": f"{FOLDER}/",
        }
        arguments = [f"-{name}={value}" for name, value in options.items()]
        atheris.Setup(
            [sys.argv[0], str(CORPUS), *arguments],
            check,
            custom_mutator=mutate,
            custom_crossover=crossed,
        )
        atheris.Fuzz()


def limit_memory() -> None:
    """Turn a huge allocation into a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def replay(files: list[Path]) -> None:
    """Load files as the fuzzer does; the first finding is raised."""
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            print(file, end=": ", flush=True)
            content, path = file.read_bytes(), Path(folder) / "model.dose"
            loaded = check_file(content, path) or check_policy_file(content, path)
            print("a sane model" if loaded else "refused")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["run", seconds]:
            raise SystemExit(run(int(seconds)))
        case ["child", seconds]:
            fuzz(int(seconds))
        case ["replay", *files] if files:
            replay([Path(file) for file in files])
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
