"""Tables of Markdown that also read as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence


def markdown_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lay out a table with numbers to the right.

    Examples
    --------
    >>> print(markdown_table(["method", "rms"], [["zero", "11.5"], ["forest", "0.9"]]))
    | method |  rms |
    | ------ | ---: |
    | zero   | 11.5 |
    | forest |  0.9 |
    """
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    is_text = [not re.fullmatch(r"-?[\d.]+", cell) for cell in lines[0]]

    def row(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(cells, widths, is_text, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + "-:"[not text] for width, text in zip(widths, is_text, strict=True)]
    return "\n".join([row(header), row(rule), *map(row, lines)])
