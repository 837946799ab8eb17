"""Charts as text: small pictures that a page holds without scripts, fonts or files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from doseforest.report.pictures import BLUE, GREY, INK, KINDS, PALE

WIDTH, HEIGHT = 440, 280  # of the drawing; a page scales it, and text stays readable on a phone
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 14, 40


@dataclass(frozen=True, slots=True)
class Scale:
    """Places of numbers along an axis of the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)


def line_chart(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_label: str,
    y_label: str,
    label: str,
    marks: Mapping[str, float] | None = None,
    percent: bool = False,
    straight: bool = False,
) -> str:
    """Lines by name over numbers; `marks` are vertical lines, `straight` adds one from end to end.

    Parameters
    ----------
    series : mapping of names to (x, y)
    label : str
        What the picture shows, for those who do not see it.
    percent : bool
        Whether the numbers along x are shares.
    """
    xs = [each for x, _ in series.values() for each in x]
    ys = [each for _, y in series.values() for each in y] + [0.0]
    x_scale = Scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    ticks = nice_ticks(min(ys), max(ys))
    y_scale = Scale(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = _grid(ticks, y_scale)
    x_ticks = [tick for tick in nice_ticks(min(xs), max(xs)) if min(xs) <= tick <= max(xs) + 1e-12]
    parts += [
        _text(x_scale(tick), HEIGHT - BOTTOM + 16, _number(tick, percent), "middle")
        for tick in x_ticks
    ]
    for name, place in (marks or {}).items():
        at = x_scale(place)
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{INK}" '
            f'stroke-dasharray="3 3"/>{_text(at + 4, HEIGHT - BOTTOM - 6, name)}'
        )
    if straight:
        x, y = next(iter(series.values()))
        ends = f"{x_scale(x[0])},{y_scale(y[0])} {x_scale(x[-1])},{y_scale(y[-1])}"
        parts.append(f'<polyline points="{ends}" fill="none" stroke="{GREY}"/>')
    for colour, (name, (x, y)) in zip(_colours(len(series)), series.items(), strict=True):
        points = " ".join(f"{x_scale(a)},{y_scale(b)}" for a, b in zip(x, y, strict=True))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5" '
            f'stroke-linejoin="round"><title>{escape(name)}</title></polyline>'
        )
    parts += _axis_labels(x_label, y_label)
    legend = _legend(list(series)) if len(series) > 1 else ""
    return f"{_svg(parts, label)}{legend}"


def interval_chart(
    rows: Mapping[str, tuple[float, float, float]],
    *,
    label: str,
    truths: Mapping[str, float] | None = None,
) -> str:
    """Shares with intervals from top to bottom, black marks for what is known to be true."""
    known = truths or {}
    ends = [each for row in rows.values() for each in row] + [*known.values(), 0.0]
    ticks = nice_ticks(min(ends), max(ends))
    scale = Scale(ticks[0], ticks[-1], 112, WIDTH - RIGHT - 8)
    height = 46 + 44 * len(rows)
    parts = [
        f'<line x1="{scale(tick)}" x2="{scale(tick)}" y1="6" y2="{height - 28}" '
        f'stroke="{INK if tick == 0 else PALE}"/>'
        f"{_text(scale(tick), height - 10, _number(tick, True), 'middle')}"
        for tick in ticks
    ]
    for place, (name, (low, middle, high)) in enumerate(rows.items()):
        y = 32 + 44 * place
        parts.append(_text(104, y + 4, name, "end"))
        parts.append(
            f'<line x1="{scale(low)}" x2="{scale(high)}" y1="{y}" y2="{y}" stroke="{BLUE}" '
            f'stroke-width="5"/><circle cx="{scale(middle)}" cy="{y}" r="6" fill="{BLUE}"/>'
        )
        parts.append(_text(scale(middle), y - 12, f"{middle:+.1%}", "middle", bold=True))
        if name in known:
            at = scale(known[name])
            parts.append(
                f'<line x1="{at}" x2="{at}" y1="{y - 9}" y2="{y + 9}" stroke="{INK}" '
                'stroke-width="2.5"><title>the simulator\'s truth</title></line>'
            )
    return _svg(parts, label, height)


def heat_map(
    cells: Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    label: str,
    x_label: str,
    largest: float,
) -> str:
    """Shares in a grid of cells; NaN stays white, `largest` is the darkest."""
    left, top = 58, 8
    width, height = (WIDTH - left - 8) / len(columns), 15
    parts = []
    for row, (name, values) in enumerate(zip(rows, cells, strict=True)):
        y = top + row * height
        parts.append(_text(left - 6, y + 11, name, "end"))
        for column, value in enumerate(values):
            if math.isnan(value):
                continue
            x = left + column * width
            told = f"{name}, {columns[column]}: {value:.1%}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width - 1:.1f}" height="{height - 1}" '
                f'fill="{_shade(value / largest)}"><title>{escape(told)}</title></rect>'
            )
    bottom = top + len(rows) * height
    step = max(1, len(columns) // 8)
    parts += [
        _text(left + (place + 0.5) * width, bottom + 14, columns[place], "middle")
        for place in range(0, len(columns), step)
    ]
    parts.append(_text(left + (WIDTH - left) / 2, bottom + 30, x_label, "middle"))
    return _svg(parts, label, int(bottom + 38))


def nice_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that enclose a range.

    >>> nice_ticks(0.0, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        high = low + 1.0
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def _grid(ticks: Sequence[float], scale: Scale) -> list[str]:
    return [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{scale(tick)}" y2="{scale(tick)}" '
        f'stroke="{GREY if tick == 0 else PALE}"/>'
        f"{_text(LEFT - 6, scale(tick) + 4, _number(tick), 'end')}"
        for tick in ticks
    ]


def _axis_labels(x_label: str, y_label: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, "middle"),
        f'<text x="14" y="{middle}" transform="rotate(-90 14 {middle})" '
        f'text-anchor="middle">{escape(y_label)}</text>',
    ]


def _legend(names: Sequence[str]) -> str:
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for colour, name in zip(_colours(len(names)), names, strict=True)
    )
    return f'<p class="legend">{items}</p>'


def _colours(count: int) -> list[str]:
    return [KINDS[place % len(KINDS)] for place in range(count)]


def _shade(share: float) -> str:
    """From nearly white to the blue of the pictures."""
    share = min(max(share, 0.0), 1.0)
    light, dark = (240, 246, 250), (0, 88, 146)
    mixed = (round(a + share * (b - a)) for a, b in zip(light, dark, strict=True))
    return "#" + "".join(f"{each:02x}" for each in mixed)


def _number(value: float, percent: bool = False) -> str:
    return f"{100 * value:g} %" if percent else f"{value:g}"


def _text(x: float, y: float, text: str, anchor: str = "start", *, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'


def _svg(parts: Sequence[str], label: str, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )
