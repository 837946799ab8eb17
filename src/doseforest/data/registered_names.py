"""A rule of parameters: a name in a table, which users may add lines to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils._param_validation import StrOptions

from doseforest.base.late import late


class NameIn(StrOptions):  # type: ignore[misc]
    """A name in a table, as it stands when the parameter is checked, or one of a few others.

    A table that is given by its place, "module:name", is loaded when a parameter is checked.

    Examples
    --------
    >>> table = {"plane": 1}
    >>> rule = NameIn(table, "auto")
    >>> table["cube"] = 2
    >>> rule.is_satisfied_by("cube"), rule.is_satisfied_by("line"), print(rule)
    a str among {'auto', 'cube', 'plane'}
    (True, False, None)
    """

    def __init__(self, table: Mapping[str, Any] | str, *others: str) -> None:
        super().__init__(set(others) if isinstance(table, str) else {*table, *others})
        self._table, self.others = table, others

    @property
    def table(self) -> Mapping[str, Any]:
        """The table, loaded."""
        table: Mapping[str, Any] = (
            late(self._table) if isinstance(self._table, str) else self._table
        )
        return table

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether a value is one of the names."""
        return isinstance(value, str) and (value in self.table or value in self.others)

    def __str__(self) -> str:
        names = ", ".join(map(repr, sorted({*self.table, *self.others})))
        return f"a str among {{{names}}}"
