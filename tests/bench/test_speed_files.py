"""Measurements of speed are written where studies are, and published only where that is asked."""

import argparse

import pytest

from bench.speed import speed_files
from bench.speed.speed_files import read_options, write_files
from bench.studies.provenance import OUT


def parser():
    made = argparse.ArgumentParser()
    made.add_argument("--rows", type=int, default=100)
    made.add_argument("--task-mb", type=int, default=4)
    return made


@pytest.fixture
def published(tmp_path, monkeypatch):
    folder = tmp_path / "published"
    monkeypatch.setattr(speed_files, "results_folder", lambda: folder)
    return folder


def test_a_report_goes_to_the_folder_of_studies_unless_another_is_given(
    tmp_path, published, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_files(read_options(parser(), []), {"speed.md": "text"})
    assert (tmp_path / OUT / "speed.md").read_text() == "text"
    write_files(read_options(parser(), ["--out", "there"]), {"speed.md": "other"})
    assert (tmp_path / "there" / "speed.md").read_text() == "other"
    assert not published.exists()


def test_a_whole_run_is_published_on_demand(tmp_path, published):
    given = read_options(parser(), ["--publish", "--out", str(tmp_path), "--rows", "100"])
    write_files(given, {"speed.md": "text", "speed.json": "{}"})
    for folder in (tmp_path, published):
        assert {path.name for path in folder.glob("speed.*")} == {"speed.md", "speed.json"}


def test_a_part_of_a_run_is_not_published(capsys):
    with pytest.raises(SystemExit):
        read_options(parser(), ["--publish", "--task-mb", "9", "--rows", "7"])
    assert "leave out --rows, --task-mb" in capsys.readouterr().err
