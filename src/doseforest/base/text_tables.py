"""Tables as lines of text."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first column to the left and the others to the right.

    Examples
    --------
    >>> text_table(["", "rows"], [["dose 0", "12"], ["all", "1234"]])
    ['          rows', 'dose 0      12', 'all       1234']
    """
    widths = [max(len(row[k]) for row in (columns, *rows)) for k in range(len(columns))]
    lines = []
    for first, *others in (columns, *rows):
        cells = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return lines
