"""The commands of the service: from nothing to a decision, and errors as sentences."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from service_world import POLICIES, unit
from typer.testing import CliRunner

from doseforest.pricing.cli.main import app
from doseforest.pricing.service.api.app import create_app
from doseforest.pricing.service.served_doses import read_dose
from doseforest.pricing.service.service_settings import ENVIRONMENT, Settings
from doseforest.pricing.service.storage.databases import sqlite_url


def run(*arguments: Any, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(own) for own in arguments])
    assert found.exit_code == code, found.output
    assert "Traceback" not in found.output
    return found.output


def test_the_five_minutes_of_the_docs(tmp_path: Path) -> None:
    data = ["--data", tmp_path / "data"]
    key = run("keys", "create", "--role", "admin", "--name", "me", *data).strip()
    assert re.fullmatch(r"df_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", key)
    policy, rows = tmp_path / "policy.dose", tmp_path / "rows.csv"
    POLICIES["forest"]().save(policy)
    rows.write_text("x0,x1\n" + "".join(f"{k / 10},{k % 3}\n" for k in range(40)))
    published = run(
        "registry", "publish", policy, "--reference", rows, "--note", "first", "--activate", *data
    )
    assert published == "version 1 is active\n"
    assert "* 1  dose_policy" in run("registry", "list", *data)
    settings = Settings(
        sqlite_url(tmp_path / "data" / "decisions.sqlite"), str(tmp_path / "data" / "policies")
    )
    with TestClient(create_app(settings)) as client:
        headers = {"Authorization": f"Bearer {key}"}
        own = client.post("/v1/decision", json=unit(), headers=headers).json()
    assert own["dose"] == 1.0
    table = tmp_path / "table.csv"
    run("db", "export", table, *data)
    assert table.read_text().count("\n") == 2
    run("db", "backup", tmp_path / "backup.zip", *data)
    restored = ["--data", tmp_path / "restored"]
    assert "decisions               1" in run("db", "restore", tmp_path / "backup.zip", *restored)
    assert "* 1  dose_policy" in run("registry", "list", *restored)
    assert "decisions               0" in run("db", "prune", "--days", 30, *data)
    key_id = key.split("_")[1]
    assert f"Revoked {key_id}" in run("keys", "revoke", key_id, *data)
    assert "revoked" in run("keys", "list", *data)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["keys", "create", "--role", "boss", "--name", "x"], "must be one of decide, report"),
        (["keys", "create", "--role", "admin", "--name", ""], "1 to 100 printable"),
        (["keys", "revoke", "00000000"], "no key '00000000'"),
        (["registry", "publish", "no-such-file"], "No such file"),
        (["registry", "publish", __file__], "no policy"),
        (["registry", "activate", "7"], "no policy of version 7"),
        (["registry", "rollback"], "no earlier policy"),
        (["db", "export", "table.xlsx"], "must end in .csv or .parquet"),
        (["db", "prune", "--days", "-1"], "must be positive"),
        (["db", "restore", __file__], "is no backup"),
        (["serve", "--fallback-dose", "express"], "must be a finite number, or one for each"),
        (["serve", "--fallback-dose", "express=0"], "must be a finite number, or one for each"),
        (["serve", "--fallback-dose", "a=0,a=1"], "must be a finite number, or one for each"),
        (["serve", "--fallback-dose", "a=0,b=inf"], "must be a finite number, or one for each"),
        (["serve", "--fallback-dose", "a=0,5"], "must be a finite number, or one for each"),
        (["serve", "--database", "mysql://x"], "begins with sqlite: or postgresql:"),
        (["serve", "--database", "postgresql://127.0.0.1:1/x"], "does not do what it should"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    assert said in run(*arguments, "--data", tmp_path / "data", code=1)


@pytest.mark.parametrize(
    "command", [["serve"], ["keys", "create"], ["registry", "publish"], ["db", "prune"]]
)
def test_help_says_what_a_command_is_for(command: list[str]) -> None:
    assert len(run(*command, "--help")) > 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rate", -1.0),
        ("rate", float("nan")),
        ("max_units", 0),
        ("max_body", 10),
        ("max_policy", 10.5),
        ("refresh", 0.0),
        ("drain", -1.0),
        ("workers", 0),
        ("workers", True),
        ("fallback_dose", float("inf")),
        ("fallback_dose", "none"),
        ("fallback_dose", True),
        ("fallback_dose", {"express": 0.0}),
        ("fallback_dose", {"express": 0.0, "premium": float("nan")}),
        ("fallback_dose", {"express": 0.0, "": 0.0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"The '{name}' parameter must be .* Got .* instead"):
        Settings("sqlite:///d.sqlite", "policies", **{name: value})


def test_a_fallback_dose_reaches_the_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "")  # as it was, afterwards
    own = Settings("sqlite:///d.sqlite", "policies", fallback_dose=read_dose("express=0,premium=5"))
    own.to_environment()
    assert Settings.from_environment() == own
    assert own.fallback_dose == {"express": 0.0, "premium": 5.0}


def test_without_the_extra_a_command_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['sqlalchemy'] = None; "
        "from doseforest.pricing.cli.key_commands import app; app(['list'])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr == (
        "This needs sqlalchemy. Install it with: pip install 'doseforest[service]'\n"
    )
