"""The page: a heading, numbers in large letters, and cards with pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f7f8; color: #222;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 1.25rem; margin: 36px 0 4px; }
h3 { font-size: 1rem; margin: 0 0 4px; }
p { margin: 4px 0 12px; max-width: 70ch; }
.note { color: #5a5f66; font-size: .9rem; }
.tiles, .cards { display: grid; gap: 16px; margin: 16px 0; }
.tiles { grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); }
.cards { grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
.tile, .card { background: #fff; border: 1px solid #e2e5e8; border-radius: 10px; padding: 16px; }
.card { min-width: 0; }
.wide { grid-column: 1 / -1; }
.tile b { display: block; font-size: 1.9rem; line-height: 1.2; color: #0072B2; }
.tile span { color: #5a5f66; font-size: .9rem; }
svg { width: 100%; height: auto; display: block; font-size: 12px; fill: none; }
svg text { fill: #222; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 6px 8px; border-bottom: 1px solid #eceef0;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tr.chosen td { background: #eef6fb; font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: .85rem; margin: 8px 0 0; }
.legend i { display: inline-block; width: 14px; height: 4px; border-radius: 2px;
  margin-right: 6px; vertical-align: middle; }
footer { color: #5a5f66; font-size: .85rem; margin-top: 32px; }
"""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page."""

    title: str
    lead: str
    cards: Sequence[str]


def page(
    title: str, lead: str, tiles: Sequence[str], sections: Sequence[PageSection], foot: str
) -> str:
    """The whole page as HTML."""
    body = "".join(
        f'<h2>{escape(section.title)}</h2><p class="note">{escape(section.lead)}</p>'
        f'<div class="cards">{"".join(section.cards)}</div>'
        for section in sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="note">{escape(lead)}</p>'
        f'<div class="tiles">{"".join(tiles)}</div>{body}'
        f"<footer>{escape(foot)}</footer></main></body></html>\n"
    )


def tile(number: str, text: str) -> str:
    """A number in large letters with what it is."""
    return f'<div class="tile"><b>{escape(number)}</b><span>{escape(text)}</span></div>'


def card(title: str, content: str, note: str = "", *, wide: bool = False) -> str:
    """A box with a title, perhaps as wide as the page; `content` is HTML already."""
    told = f'<p class="note">{escape(note)}</p>' if note else ""
    kind = "card wide" if wide else "card"
    return f'<section class="{kind}"><h3>{escape(title)}</h3>{told}{content}</section>'


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], chosen: int | None = None
) -> str:
    """A table; one of its rows may stand out."""
    head = "".join(f"<th>{escape(each)}</th>" for each in header)
    lines = "".join(
        f"<tr{' class=chosen' if place == chosen else ''}>"
        + "".join(f"<td>{escape(each)}</td>" for each in row)
        + "</tr>"
        for place, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )
