"""The worked examples run, on a few rows; what they print is what they promise."""

import importlib
import re

import pytest

from bench.designs import JOINT_DESIGNS
from bench.real_data import loan_rows, orange_juice_rows
from real_data import real_data

# Few rows and few trees: some doses are then out of reach of most units, which has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore:Fewer than 10% of the units")


def run(name, folder, *options):
    importlib.import_module(name).main([*options, "--out", str(folder)])
    picture = (folder / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 10_000 < len(picture) <= 150_000


def test_discount_curves_are_closer_to_the_truth_than_one_curve_for_all(tmp_path, capsys):
    run("discount_curves", tmp_path, "--rows", "500", "--trees", "40")
    printed = capsys.readouterr().out
    forest, average = (
        float(re.search(rf"{name} +([\d.]+)", printed)[1])
        for name in ("forest of curves", "average curve for everyone")
    )
    # With 500 rows about .4 against .65.
    assert forest < 0.85 * average
    assert (tmp_path / "discount_curves.dose").exists()


@pytest.mark.data
def test_orange_juice_sells_less_at_higher_prices(tmp_path, capsys):
    real_data(orange_juice_rows.FILE)
    run("orange_juice", tmp_path, "--rows", "500", "--trees", "40")
    printed = capsys.readouterr().out
    for brand in ("dominicks", "minute.maid", "tropicana"):
        _, _, forest, falling = re.search(rf"{brand}((?: +[-\d.]+%?){{4}})", printed)[1].split()
        # Elasticities of about -2.5; nearly every row has a falling curve of its own.
        assert -5 < float(forest) < -1
        assert float(falling.rstrip("%")) > 90


@pytest.mark.data
def test_loans_print_an_elasticity_with_its_standard_error(tmp_path, capsys):
    real_data(loan_rows.FILE)
    run("loans", tmp_path, "--rows", "1200", "--trees", "40")
    pattern = r"within strata +(-?[\d.]+)  \(standard error ([\d.]+)\)"
    value, error = map(float, re.search(pattern, capsys.readouterr().out).groups())
    # 1,200 of 53,178 clients: the standard error is about six times that of all, which is .065.
    assert 0.2 < error < 0.8
    assert abs(value + 0.27) < 3 * error


@pytest.mark.parametrize("name", ["orange_juice", "loans"])
def test_an_example_without_its_data_says_where_to_get_them(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"Set DOSEFOREST_DATA .* The data are public: "):
        importlib.import_module(name).main([])


@pytest.mark.filterwarnings("ignore")  # few rows and trees
def test_two_discounts_help_each_other_as_they_truly_do(tmp_path, capsys):
    picture = tmp_path / "surface.png"
    options = ["--rows", "150", "--trees", "20", "--picture", str(picture)]
    importlib.import_module("two_discounts").main(options)
    data = JOINT_DESIGNS["two_discounts"].draw(n=150, seed=0)
    exact = data.effect([[0.8, 0.8]], baseline=[0.2, 0.2]).mean()
    told = capsys.readouterr().out.splitlines()
    line = next(own for own in told if own.startswith("[0.8, 0.8]"))
    assert line.endswith(f"{exact:.2f}")
    # The truth is known to .01 here, the estimate to its standard error of about .4.
    assert abs(float(line.split()[2]) - exact) < 4 * float(line.split("(")[1].split(")")[0])
    assert picture.read_bytes().startswith(b"\x89PNG")
