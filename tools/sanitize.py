"""Run the tests of the compiled core under the address and undefined-behaviour sanitizers.

Usage: python tools/sanitize.py [pytest arguments]

The extension is built once more in build/sanitize, in an environment that borrows the packages of
the one that runs this script; nothing of that one changes. The first finding ends a run. Before the
tests, a forest with a broken link shows that findings are found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = REPOSITORY / "build" / "sanitize"
PYTHON = FOLDER / "environment" / "bin" / "python"

TESTS = [
    "tests/data/test_binning.py",
    "tests/data/test_categories.py",
    "tests/engine/test_category_search.py",
    "tests/engine/test_forest.py",
    "tests/files/test_forest_file.py",
    "tests/files/test_forest_file_mutations.py",
    "tests/engine/test_forest_properties.py",
    "tests/engine/test_growth_oracle.py",
    "tests/engine/test_guards.py",
    "tests/engine/test_judged_categories.py",
    "tests/doses/test_kernels.py",
    "tests/engine/test_same_bits.py",
    "tests/data/test_sampling.py",
    "tests/doses/test_smoothing.py",
    "tests/engine/test_split_statistics.py",
    "tests/nuisance/test_tree_ensemble.py",
    "tests/engine/test_wide_categories.py",
    "tests/estimator/test_orthogonal.py::test_moments_give_back_the_coefficients_of_an_exact_relation",
    "tests/estimator/test_causal_forest.py::test_missing_values_are_welcome",
]

# A node beyond the table, which no loader lets through, is read past the end of an array.
BROKEN_FOREST = """
from dataclasses import replace
import numpy as np
from doseforest import CurveForest, _core
assert _core.__file__.startswith(FOLDER), f"not the build of this run: {_core.__file__}"
x = np.arange(200.0)[:, None]
forest = CurveForest(1, random_state=0).fit(x, x).forest_
nodes = forest.nodes.copy()
nodes["left"][0] = len(nodes)
replace(forest, nodes=nodes).apply(x)
"""


def build() -> None:
    """Install the package, editable, into an environment of its own."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PYTHON.parent.parent)], check=True)
    asked = [str(PYTHON), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    packages = Path(subprocess.check_output(asked, text=True).strip())
    # A path in a .pth file is searched last, and its own .pth files, the editable install of
    # the ordinary environment among them, are not read.
    (packages / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cmake and ninja
    install = ["--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    install.append(f"--config-settings=build-dir={FOLDER / 'objects'}")
    install.append("--config-settings=cmake.define.SANITIZE=ON")
    subprocess.run(
        [str(PYTHON), "-m", "pip", "install", *install, "--editable", str(REPOSITORY)],
        check=True,
        env={**os.environ, "PATH": tools},
    )


def sanitizer_environment() -> dict[str, str]:
    """Variables for a Python that loads a sanitized extension."""
    return {
        **os.environ,
        # Python itself is not sanitized, so the runtime has to be there before anything else, and
        # the C++ library with it, whose throw it wraps.
        "LD_PRELOAD": " ".join(map(runtime_library, ["libasan.so", "libstdc++.so"])),
        # Python frees little at its exit: leaks of the extension would drown in it.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # no pools, in which a step too far goes unseen
    }


def runtime_library(name: str) -> str:
    """Full path of a library of the compiler."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise SystemExit(f"The compiler {compiler!r} was not found. On Debian: apt-get install g++")
    path = subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"{compiler} has no {name}. This needs GCC: make sanitize CXX=g++")
    return path


def check_that_findings_are_found(environment: dict[str, str]) -> None:
    code = f"FOLDER = {str(FOLDER)!r}\n{BROKEN_FOREST}"
    run = subprocess.run(
        [str(PYTHON), "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode == 0 or "AddressSanitizer: heap-buffer-overflow" not in run.stderr:
        raise SystemExit(f"The sanitizers missed a broken forest:\n{run.stdout}{run.stderr}")


def main(arguments: list[str]) -> None:
    environment = sanitizer_environment()
    build()
    check_that_findings_are_found(environment)
    tests = subprocess.run(
        [str(PYTHON), "-m", "pytest", "-p", "no:cacheprovider", *(arguments or TESTS)],
        cwd=REPOSITORY,
        env=environment,
        check=False,
    )
    raise SystemExit(tests.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
