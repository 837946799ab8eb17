"""Examples run, and print what is true."""

import runpy
import warnings
from pathlib import Path

import pytest

from doseforest.simulation import JOINT_DESIGNS

pyplot = pytest.importorskip("matplotlib.pyplot")


def test_the_example_of_two_discounts_runs_small(tmp_path, capsys):
    place = Path(__file__).parents[1] / "examples" / "two_discounts.py"
    example = runpy.run_path(str(place))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows and trees
        example["main"](["--rows", "150", "--trees", "20", "--picture", str(tmp_path / "a.png")])
    told = capsys.readouterr().out
    data = JOINT_DESIGNS["two_discounts"].draw(n=150, seed=0)
    exact = data.effect([[0.8, 0.8]], baseline=[0.2, 0.2]).mean()
    line = next(own for own in told.splitlines() if own.startswith("[0.8, 0.8]"))
    assert line.endswith(f"{exact:.2f}")
    # The truth is known to .01 here, the estimate to its standard error of about .4.
    assert abs(float(line.split()[2]) - exact) < 4 * float(line.split("(")[1].split(")")[0])
    assert pyplot.imread(tmp_path / "a.png")[..., :3].std() > 0.05  # not blank
