"""The golden answers on the command line: ``python -m bench.golden [check | write | …]``."""

from __future__ import annotations

import argparse
import sys
import time

from bench.golden.answers import FILE, compare, part_keys, read_answers, write_answers
from bench.golden.fits import FITS, run
from bench.golden.openapi import DOCUMENT, document
from bench.golden.public_names import NAMES, public_names


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status: 1 where an answer is not the stored one."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden", description=__doc__)
    parser.set_defaults(command="check", bits=False, fits=[], n_jobs=1)
    commands = parser.add_subparsers(dest="command")
    check = commands.add_parser("check", help="compare with the stored answers (default)")
    check.add_argument("--bits", action="store_true", help="demand the same bits of every fit")
    write = commands.add_parser("write", help="store the answers of this version")
    for command in (check, write):
        command.add_argument("fits", nargs="*", metavar="fit", help="by default all of them")
        command.add_argument("--n-jobs", type=int, default=1, help="threads; never change answers")
    commands.add_parser("keys", help="print the digest of each part of the algorithm")
    commands.add_parser("write-openapi", help="store the OpenAPI document of the decision service")
    commands.add_parser("write-names", help="store the public names")
    given = parser.parse_args(arguments)
    command = given.command or "check"
    if unknown := set(given.fits) - set(FITS):
        parser.error(f"There is no fit {sorted(unknown)}. The fits are {sorted(FITS)}.")
    names = given.fits or list(FITS)
    if command == "check":
        return check_answers(names, bits=given.bits, n_jobs=given.n_jobs)
    if command == "write":
        write_answers({name: run(name, given.n_jobs) for name in names})
        print(f"wrote {FILE}")
    elif command == "keys":
        print("\n".join(f"{part:12} {key}" for part, key in part_keys().items()))
    elif command == "write-openapi":
        DOCUMENT.write_text(document())
        print(f"wrote {DOCUMENT}")
    else:
        NAMES.write_text(public_names())
        print(f"wrote {NAMES}")
    return 0


def check_answers(names: list[str], *, bits: bool, n_jobs: int) -> int:
    """Print how the answers of fits differ from the stored ones; 1 where some do."""
    stored = read_answers()
    failed = []
    for name in names:
        begin = time.perf_counter()
        found = compare(name, run(name, n_jobs), stored)
        print(f"{name:30} {time.perf_counter() - begin:5.1f} s  {found}", flush=True)
        if not (found.same_bits if bits else found.holds):
            failed.append(name)
    if failed:
        print(f"{len(failed)} of {len(names)} fits do not hold: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
