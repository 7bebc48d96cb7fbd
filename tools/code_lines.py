"""Files, lines and lines of code in src, by folder, beside the budget: exit status 1 if there are more.

Lines of code are neither blanks nor comments nor docstrings. ``--since REV`` adds how much came since.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Size(NamedTuple):
    """Size of some sources."""

    files: int = 0
    lines: int = 0
    code: int = 0


#: What there was before the subjects below; it may become less.
BASE = Size(files=208, lines=74_350, code=50_000)
#: What each subject since has added.
ADDITIONS = {
    "find (dp/bitparallel, mapping, formats/twobit, cli/find)": Size(files=16, lines=5_550, code=4_000),
    "map and index (mapping, cli/map)": Size(files=9, lines=2_500, code=1_720),
    "fold (dp/intervals, folding, cli/fold)": Size(files=21, lines=6_050, code=4_000),
    "repertoires as their users have them (vdj, formats, stats, reports, cli)": Size(
        files=30, lines=10_500, code=7_000
    ),
    "states, random numbers, q-grams, codes, episodes (a subject each, cli)": Size(
        files=28, lines=4_300, code=2_600
    ),
    "search and pairs: k best, short calls, features (dp/pairs, align, cli)": Size(
        files=12, lines=5_000, code=3_500
    ),
    "cubes: near-lossless, GPU, ways in (dp/bands, hyperspectral, formats/cubes)": Size(
        files=16, lines=6_500, code=4_500
    ),
    "datasets and clusters (run, formats, vdj)": Size(files=8, lines=3_600, code=2_500),
    "words of bits and lanes of one, for these (lang, devices, formats)": Size(lines=150, code=115),
    "columns chosen of counts, probabilities and scenarios (vdj, run, formats)": Size(lines=250, code=160),
    "lists written as differences, and what sharing tells (formats, vdj, cli)": Size(lines=150, code=130),
    "one long pair by differences in octets (dp/pairs)": Size(lines=150, code=65),
}
BUDGET = Size(*map(sum, zip(BASE, *ADDITIONS.values(), strict=True)))
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def size(text: str) -> Size:
    """Size of one file."""
    lines, told = text.splitlines(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            told.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code = [n for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    return Size(1, len(lines), len(set(code) - told))


def sizes(sources: Iterable[tuple[str, str]]) -> dict[str, Size]:
    """Size of each folder, and of all under ``""``, of paths and texts."""
    found: dict[str, Size] = {}
    for path, text in sources:
        one = size(text)
        for folder in {"", str(PurePosixPath(path).parent)}:
            found[folder] = Size(*map(sum, zip(found.get(folder, Size()), one, strict=True)))
    return found


def _here() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "src").rglob("*.py"):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _at(revision: str) -> Iterator[tuple[str, str]]:
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, "src"], check=True, capture_output=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        for member in files:
            content = files.extractfile(member) if member.name.endswith(".py") else None
            if content is not None:
                yield member.name, content.read().decode()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", metavar="REV", help="a revision to compare with")
    parser.add_argument("--folders", action="store_true", help="each folder, too")
    options = parser.parse_args()
    now = sizes(_here())
    before = sizes(_at(options.since)) if options.since else None
    for folder in sorted(now, key=lambda name: (name == "", name)) if options.folders else [""]:
        text = " ".join(f"{value:>7,} {name}" for name, value in now[folder]._asdict().items())
        if before is not None:
            more = [a - b for a, b in zip(now[folder], before.get(folder, Size()), strict=True)]
            text += f"   since {options.since}: " + " ".join(f"{value:+,}" for value in more)
        print(f"{folder or 'src, all':<32} {text}")
    over = [name for name, most in BUDGET._asdict().items() if getattr(now[""], name) > most]
    print(f"{'budget':<32} " + " ".join(f"{value:>7,} {name}" for name, value in BUDGET._asdict().items()))
    if over:
        print(f"more {', '.join(over)} than the budget: make the change smaller, or state its addition here")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
