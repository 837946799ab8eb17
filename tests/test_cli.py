from __future__ import annotations

from typer.testing import CliRunner

import doseforest
from doseforest.cli.main import app


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"doseforest {doseforest.__version__}\n"
