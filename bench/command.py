"""`doseforest bench`: studies by name, one command each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bench.designs import DESIGNS, WORLDS, find_design
from bench.studies.coverage.coverage_study import SECTIONS as COVERAGE_SECTIONS
from bench.studies.coverage.coverage_study import CoverageStudy
from bench.studies.provenance import OUT
from bench.studies.real.real_sections import SECTIONS
from bench.studies.real.real_study import RealStudy
from bench.studies.request import Request
from bench.studies.study_methods import SINGLE_METHODS
from bench.studies.study_registry import STUDIES, Study, run_study
from bench.studies.study_settings import FIRST_SEED
from bench.studies.table1 import FAST
from doseforest.base.machine import thread_count
from doseforest.pricing.cli.error_lines import told

app = typer.Typer(
    help="Benchmarks against known truths, published numbers and other packages.",
    no_args_is_help=True,
)
CORES = thread_count(-1)
REAL, COVERAGE = "real", "coverage"
GROUPS = {"fast": FAST}  # names for several methods


def _names(given: list[str] | None, known: Mapping[str, tuple[str, ...]], option: str) -> list[str]:
    """Names of an option that is repeated or has commas, groups spelt out."""
    asked = [name.strip() for text in given or [] for name in text.split(",")]
    for name in asked:
        if name not in known:
            valid = f"is not one of {', '.join(known)}." if known else "cannot be chosen here."
            raise typer.BadParameter(f"{name!r} {valid}", param_hint=option)
    return list(dict.fromkeys(own for name in asked for own in known[name]))


Methods = Annotated[
    list[str] | None,
    typer.Option(help="Methods to run, repeated or with commas; 'fast' leaves out the slowest."),
]
Designs = Annotated[
    list[str] | None,
    typer.Option(help="Designs, repeated or with commas; of a file of yours: my_module:MyDesign."),
]
Simulations = Annotated[int | None, typer.Option(min=1, help="Simulations of each design.")]
Sections = Annotated[
    list[str] | None, typer.Option(help=f"{', '.join(SECTIONS)}; repeated or with commas.")
]
CoverageSections = Annotated[
    list[str] | None, typer.Option(help=f"{', '.join(COVERAGE_SECTIONS)}; repeated or with commas.")
]
Cases = Annotated[
    list[str] | None,
    typer.Option(help="Only cases with all of these words, such as 'randomised 2000'; repeated."),
]
Draws = Annotated[
    int | None, typer.Option(min=2, help="Draws of each case, by default as many as a section has.")
]
Rows = Annotated[
    int | None, typer.Option("--n", min=1000, help="Rows of each data set, drawn at random.")
]
Threads = Annotated[
    int, typer.Option(min=1, help="Threads of a fit.", show_default="all processors")
]
Units = Annotated[int | None, typer.Option("--n", min=100, help="Training units.")]
Seed = Annotated[int | None, typer.Option(min=0, help=f"The first seed, by default {FIRST_SEED}.")]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        "--jobs",
        min=1,
        help="Fits at a time, each a process of one thread.",
        show_default="all processors",
    ),
]


def _in_a_folder(path: Path | None) -> Path | None:
    """A file to write, whose folder is there: a run of hours must not end in an error."""
    if path is not None and not os.access(path.absolute().parent, os.W_OK):
        raise typer.BadParameter(f"Its folder {path.absolute().parent} cannot be written to.")
    return path


Out = Annotated[
    Path, typer.Option(help="Folder of the report and of single fits.", file_okay=False)
]
Publish = Annotated[
    bool, typer.Option("--publish", help="Put a whole report among those of the clone, too.")
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Where the numbers go, besides the folder of the report.",
        dir_okay=False,
        writable=True,
        callback=_in_a_folder,
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do again what is done already.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="A line for every fit.")]


def _command(study: str) -> None:
    """Register the command of a study."""

    @app.command(study, help=_help(study))
    @told
    def run(
        methods: Methods = None,
        designs: Designs = None,
        simulations: Simulations = None,
        n: Units = None,
        seed: Seed = None,
        processes: Processes = CORES,
        json: Json = None,
        out: Out = OUT,
        publish: Publish = False,
        fresh: Fresh = False,
        verbose: Verbose = False,
    ) -> None:
        own = STUDIES[study]
        chosen_from = own.methods if isinstance(own, Study) else SINGLE_METHODS
        by_method: dict[str, tuple[str, ...]] = {name: (name,) for name in chosen_from}
        by_method |= {name: group for name, group in GROUPS.items() if set(group) <= set(by_method)}
        assert not isinstance(own, CoverageStudy | RealStudy)  # commands of their own
        given = {"methods": methods, "designs": designs, "simulations": simulations, "n": n}
        _refuse_others(own.takes, given)
        by_design = {name: (name,) for name in own.designs}
        if isinstance(own, Study) and own.other_designs:
            by_design |= {name: (name,) for name in (*DESIGNS, *WORLDS, *_places(designs))}
        request = Request(
            methods=tuple(_names(methods, by_method, "--methods")) or None,
            designs=tuple(_names(designs, by_design, "--designs")) or None,
            simulations=simulations,
            n=n,
            seed=seed,
            processes=processes,
            fresh=fresh,
            verbose=verbose,
            out=out,
            publish=publish,
        )
        _run(study, request, json)


def _places(given: list[str] | None) -> list[str]:
    """Designs of other files, "module:MyDesign", among those that are asked for."""
    asked = [name.strip() for text in given or [] for name in text.split(",")]
    places = [name for name in asked if ":" in name]
    if places and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # the module may lie where the command is run
    for name in places:
        find_design(name)  # what is wrong with it is said before any fit
    return places


def _refuse_others(takes: tuple[str, ...], given: Mapping[str, object]) -> None:
    """Raise where an option is given that a study has no use for."""
    for option, value in given.items():
        if value is not None and option not in takes:
            useful = "".join(f"--{own}, " for own in takes) + "--seed"
            raise typer.BadParameter(f"This study takes {useful}.", param_hint=f"--{option}")


def _help(study: str) -> str:
    about = STUDIES[study].about
    return f"{about[0].upper()}{about[1:]}."


def _run(study: str, request: Request, json: Path | None) -> None:
    """Run a study and print its report; exit with 1 where something is left out."""
    parts = request.simulations, request.n, request.seed
    if request.publish and any(part is not None for part in parts):
        raise typer.BadParameter(
            "Only whole studies are published: leave out --simulations, --n and --seed.",
            param_hint="--publish",
        )
    text, complete = run_study(study, request, json)
    typer.echo(text)
    if not complete:
        typer.echo("Some fits were left out or failed: see the lines above.", err=True)
        raise typer.Exit(1)


for _study in STUDIES:
    if _study not in (REAL, COVERAGE):
        _command(_study)


@app.command(REAL, help=_help(REAL))
@told
def real(
    sections: Sections = None,
    n: Rows = None,
    seed: Seed = None,
    threads: Threads = CORES,
    json: Json = None,
    out: Out = OUT,
    publish: Publish = False,
    fresh: Fresh = False,
    verbose: Verbose = False,
) -> None:
    """Sections in place of designs and methods, and data that may be absent."""
    known = {name: (name,) for name in SECTIONS}
    request = Request(
        sections=tuple(_names(sections, known, "--sections")) or None,
        n=n,
        seed=seed,
        processes=threads,
        fresh=fresh,
        verbose=verbose,
        out=out,
        publish=publish,
    )
    _run(REAL, request, json)


@app.command(COVERAGE, help=_help(COVERAGE))
@told
def coverage(
    sections: CoverageSections = None,
    cases: Cases = None,
    simulations: Draws = None,
    seed: Seed = None,
    processes: Processes = CORES,
    json: Json = None,
    out: Out = OUT,
    publish: Publish = False,
    fresh: Fresh = False,
    verbose: Verbose = False,
) -> None:
    """Sections and their cases in place of designs and methods."""
    known = {name: (name,) for name in COVERAGE_SECTIONS}
    request = Request(
        sections=tuple(_names(sections, known, "--sections")) or None,
        designs=tuple(cases) if cases else None,
        simulations=simulations,
        seed=seed,
        processes=processes,
        fresh=fresh,
        verbose=verbose,
        out=out,
        publish=publish,
    )
    _run(COVERAGE, request, json)
