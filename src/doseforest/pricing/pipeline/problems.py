"""Errors of the pipeline, made to be read by whoever wrote the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class PipelineError(ValueError):
    """A stage cannot do its work; the message says what it needs."""


class ConfigError(PipelineError):
    """A configuration with problems, all of them at once.

    Parameters
    ----------
    problems : sequence of str
        A sentence for each.
    name : str, default="The configuration"
        The file.

    Examples
    --------
    >>> print(ConfigError(["[train] a.", "[test] b."], "config.toml"))
    config.toml has 2 problems:
      [train] a.
      [test] b.
    """

    def __init__(self, problems: Sequence[str], name: str = "The configuration") -> None:
        self.problems = tuple(problems)
        if len(problems) == 1:
            super().__init__(f"{name}: {problems[0]}")
            return
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{name} has {len(problems)} problems:\n{lines}")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant.

    >>> nearest("ruws", ["rows", "path"])
    " Did you mean 'rows'?"
    >>> nearest("zzz", ["rows", "path"])
    ' It has rows, path.'
    """
    names = list(known)
    result = get_close_matches(name, names, n=1, cutoff=0.6)
    return f" Did you mean {result[0]!r}?" if result else f" It has {', '.join(names)}."
