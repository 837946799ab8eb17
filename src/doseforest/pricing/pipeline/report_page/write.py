"""Writes the report of one workspace, or of several beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import doseforest
from doseforest.base.atomic_files import write_text
from doseforest.pricing.pipeline.report_page.page import page, tile
from doseforest.pricing.pipeline.report_page.report_sections import Told, section_of

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig


def write_report(
    path: Path,
    pipelines: Mapping[str, PipelineConfig],
    *,
    title: str = "Discounts by dose-response curves",
    lead: str = "",
    tiles: Sequence[str] | None = None,
) -> Path:
    """Write a page about finished pipelines by name; it needs nothing but itself."""
    own_tiles = plain_tiles(pipelines) if tiles is None else tiles
    sections = [section_of(config, name) for name, config in pipelines.items()]
    foot = f"Made by doseforest {doseforest.__version__}, from " + ", ".join(
        str(config.pipeline.workspace) for config in pipelines.values()
    )
    write_text(path, page(title, lead, own_tiles, sections, foot))
    return path


def plain_tiles(pipelines: Mapping[str, PipelineConfig]) -> list[str]:
    """What the test of each pipeline found, or what its plan promises."""
    result = []
    for name, config in pipelines.items():
        told = Told.read(config)
        if told.result is None:
            gain = told.plans[told.selected]["predicted gain"]
            result.append(tile(f"{gain:+.3g}", f"{name}: promised gain per unit"))
            continue
        main = told.result["results"][told.result["main"]]
        low, high = main["relative interval"]
        about = (
            f"{name}: {told.result['main']}, {told.result['treatment']} against "
            f"{told.result['control']}, 95 % interval {low:+.1%} to {high:+.1%}"
        )
        result.append(tile(f"{main['relative']:+.1%}", about))
    return result
