"""The sections by name. To add one: a file with a `SECTION`, and a line here."""

from __future__ import annotations

from bench.studies.real import job_corps, loans, mailings, match_ratios, orange_juice
from bench.studies.real.real_section import RealSection

SECTIONS: dict[str, RealSection] = {
    "job-corps": job_corps.SECTION,
    "loans": loans.SECTION,
    "orange-juice": orange_juice.SECTION,
    "mailings": mailings.SECTION,
    "match-ratios": match_ratios.SECTION,
}
