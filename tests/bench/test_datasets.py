"""Data sets: what is read, what columns become, and what is said where a file is absent.

On made-up tables with the columns of the real ones.
"""

import sys

import numpy as np
import pytest

from bench.real_data import (
    SOURCES,
    MissingDataError,
    data_folder,
    job_corps_rows,
    loan_rows,
    mailing_rows,
    match_ratio_rows,
    missing_files,
    orange_juice_rows,
    read_data,
)
from made_up_tables import write_tables


@pytest.fixture
def _tables(tmp_path, monkeypatch):
    write_tables(tmp_path)
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))


def test_the_variable_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert missing_files(SOURCES) == list(SOURCES)
    monkeypatch.delenv("DOSEFOREST_DATA")
    assert data_folder().parts[-2:] == ("shared", "data")


@pytest.mark.parametrize("name", SOURCES)
def test_an_absent_file_is_named_with_its_source(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    with pytest.raises(MissingDataError) as caught:
        read_data(name)
    for text in (name, str(tmp_path), "DOSEFOREST_DATA", SOURCES[name]):
        assert text in str(caught.value)


def test_files_that_are_no_data_set_are_refused():
    with pytest.raises(ValueError, match=r"'name' parameter must be one of .* Got 'x' instead"):
        read_data("x")


@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_a_missing_package_says_its_cure(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'doseforest\[data\]'"):
        read_data(orange_juice_rows.FILE)


@pytest.mark.usefixtures("_tables")
def test_trainees_have_everything_but_outcome_and_dose_as_covariates():
    trainees = job_corps_rows.read_trainees()
    rows = job_corps_rows.rows(trainees)
    assert list(rows.X.columns) == ["female", "age"]
    np.testing.assert_array_equal(rows.treatment, trainees["d"])
    np.testing.assert_array_equal(rows.y, trainees["y"])


@pytest.mark.usefixtures("_tables")
def test_only_the_published_estimates_that_were_asked_for_are_read():
    assert (job_corps_rows.read_published()["beta"] > 40).all()
    assert (job_corps_rows.read_published("another")["beta"] == 0).all()


@pytest.mark.usefixtures("_tables")
def test_offers_above_the_normal_rate_are_left_out():
    offers = loan_rows.read_offers()
    assert len(offers) == 400
    assert offers["share"].between(0.3, 1.0).all()


@pytest.mark.usefixtures("_tables")
def test_a_stratum_of_offers_has_one_risk_and_one_mailing():
    offers = loan_rows.read_offers()
    rows = loan_rows.rows(offers, "loansize")
    labels = rows.density.labels
    assert len(set(labels)) == 9
    for label in set(labels):
        own = rows.X[labels == label].iloc[:, :6]
        assert (own.nunique() == 1).all()
        assert own.iloc[0].sum() == 2
    np.testing.assert_array_equal(rows.y, offers["loansize"])


@pytest.mark.usefixtures("_tables")
def test_a_pooled_elasticity_is_the_slope_over_the_means():
    offers = loan_rows.read_offers().assign(applied=lambda table: 3 - 0.1 * table["offer4"])
    mean = offers["offer4"].mean()
    assert loan_rows.pooled_elasticity(offers, "applied") == pytest.approx(
        -0.1 * mean / (3 - 0.1 * mean)
    )


@pytest.mark.usefixtures("_tables")
def test_juice_has_its_brand_as_a_category_and_weeks_as_groups():
    sales = orange_juice_rows.read_sales()
    rows = orange_juice_rows.rows(sales)
    assert set(rows.X["brand"]) == set(orange_juice_rows.BRANDS)
    assert "feat" in rows.X
    assert "feat" not in orange_juice_rows.rows(sales, advertised=False).X
    np.testing.assert_allclose(np.exp(rows.treatment), sales["price"])
    np.testing.assert_array_equal(rows.groups, sales["week"])


class Line:
    """Curves with a slope for each unit."""

    def dose_response(self, X, doses):
        return X[:, :1] + X[:, 1:] * np.asarray(doses)


def test_elasticities_are_slopes_over_the_logarithm_of_the_price():
    units = np.array([[1.0, -2.0], [5.0, -3.5]])
    found = orange_juice_rows.elasticities(Line(), units, np.array([1.0, 1.5, 3.0]))
    np.testing.assert_allclose(found, [-2.0, -3.5])


@pytest.mark.usefixtures("_tables")
def test_households_are_drawn_whole():
    voters = mailing_rows.read_voters(30, seed=1)
    assert len(voters) == 60
    assert (voters.groupby("hh_id").size() == 2).all()
    assert set(mailing_rows.read_voters(30, seed=2)["hh_id"]) != set(voters["hh_id"])


@pytest.mark.usefixtures("_tables")
def test_voters_have_arms_from_zero_and_the_chances_of_all_of_them():
    voters = mailing_rows.read_voters()
    rows = mailing_rows.rows(voters)
    assert sorted(set(rows.treatment)) == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(rows.density.sum(axis=1), 1)
    assert rows.density.shape == (len(voters), 5)
    first = voters.iloc[0]
    assert mailing_rows.past_votes(voters)[0] == sum(
        first[name] for name in mailing_rows.VOTED_BEFORE
    )


@pytest.mark.usefixtures("_tables")
def test_chances_of_match_ratios_are_their_shares():
    letters = match_ratio_rows.read_letters()
    rows = match_ratio_rows.rows(letters)
    np.testing.assert_allclose(rows.density[0, 3], (letters["match_ratio"] == 3).mean())


@pytest.mark.usefixtures("_tables")
def test_rows_that_are_taken_keep_what_is_known_of_them():
    rows = mailing_rows.rows(mailing_rows.read_voters())
    kept = rows.treatment == 4
    part = rows.take(kept)
    assert len(part) == len(part.X) == len(part.density) == kept.sum()
    np.testing.assert_array_equal(part.groups, rows.groups[kept])
    np.testing.assert_array_equal(part.y, rows.y[kept])


@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize(
    "read",
    [job_corps_rows.read_trainees, orange_juice_rows.read_sales, match_ratio_rows.read_letters],
)
def test_some_rows_are_drawn_without_repeats(read):
    some, everything = read(50), read()
    assert len(some) == some.index.nunique() == 50
    assert set(some.index) <= set(everything.index)
    assert len(read(10**6)) == len(everything)
