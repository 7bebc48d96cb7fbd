"""Causes of zeros and foreign genes in words: only what the numbers support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from plait.vdj.germline.bundled import bundled_germlines, load_germline
from plait.vdj.germline.records import LOCI, Segment
from plait.vdj.zero_causes import TableCauses

__all__ = ["cause_sentences", "explained", "foreign_sentences"]

#: A cause is named from this share of the rows on that were looked at, and from so many rows on.
_NOTABLE: Final = 0.1
_FEWEST: Final = 3
#: Causes that a few zeros in a healthy table can look like are named from this share of zeros on.
_MANY_ZEROS: Final = 0.05
_UNSURE: Final = ("genes_of_another_set", "long_insertions", "mutations")
#: A window of fixed length: such a share of the rows, of so many at least, have one length in nucleotides.
_ONE_LENGTH: Final = 0.95
_FEWEST_ROWS: Final = 20
_WINDOW: Final = 60
#: A set that has this share of the foreign names is where they come from.
_KNOWN: Final = 0.8
_WORDS: Final[Mapping[str, str]] = {
    "reverse_complement": "have a {what} above 0 as reverse complements: these are read from the other "
    "strand",
    "no_conserved_codons": "have a {what} above 0 with a Cys codon before and a Phe or Trp codon behind: "
    "these are CDR3s without the conserved codons, and no junctions",
    "longer_sequence": "hold a shorter sequence, from Cys to Phe or Trp, with a {what} above 0: these are "
    "reads or windows that go beyond the junction",
    "genes_of_another_set": "begin and end clearly more like genes of {others} than like those of the {own}",
    "long_insertions": "match V and J and leave more nucleotides between them than the {own} allows for: a "
    "locus with longer insertions?",
    "mutations": "go on to match V or J behind the first mismatch: mutated receptors, or reads with errors?",
}


def _named(causes: TableCauses, zeros: int, rows: int, concentrated: bool) -> list[str]:
    enough = max(_NOTABLE * causes.examined, min(_FEWEST, causes.examined))
    return [
        cause
        for cause in _WORDS
        if 0 < enough <= causes.causes[cause]
        and (cause not in _UNSURE or (zeros >= _MANY_ZEROS * rows and not concentrated))
    ]


def explained(causes: TableCauses, zeros: int, rows: int, concentrated: bool = False) -> bool:
    """Whether what concerns the whole table explains most zeros, so that no gene is to blame.

    Parameters
    ----------
    causes
        What was found.
    zeros, rows
        Rows with 0, and all with a number.
    concentrated
        Whether most zeros are of few genes, while the others have few.
    """
    return (
        2 * sum(causes.causes[cause] for cause in _named(causes, zeros, rows, concentrated)) > causes.examined
    )


def cause_sentences(
    causes: TableCauses, zeros: int, rows: int, *, what: str, own: str, concentrated: bool = False
) -> list[str]:
    """Causes, each with its numbers.

    Parameters
    ----------
    causes
        What was found.
    zeros, rows
        Rows with 0, and all with a number.
    what
        Which number, as ``"path count"``.
    own
        What the rows were compared with, as ``"germline set mouse_trb"``.
    concentrated
        Whether most zeros are of few genes, while the others have few.
    """
    named = _named(causes, zeros, rows, concentrated)
    others = " and ".join(name for name, n in causes.alike.most_common() if n >= _NOTABLE * causes.compared)
    others = others or "another set"
    of = f"{causes.examined:,} rows with 0 that were put to the test"
    found = []
    for cause in named:
        told = _WORDS[cause].format(what=what, others=others, own=own)
        found.append(f"{causes.causes[cause]:,} of {of} {told}{'' if told.endswith('?') else '.'}")
    alike = causes.alike.total()
    if alike >= max(_NOTABLE * causes.compared, min(_FEWEST, causes.compared), 1):
        found.append(
            f"{alike:,} of {causes.compared:,} rows that were compared, zero or not, begin and end clearly "
            f"more like genes of {others} than like those of the {own}."
        )
    length, most = next(iter(causes.lengths.most_common(1)), (0, 0))
    rows_told = causes.lengths.total()
    fixed = length >= _WINDOW and most >= max(_ONE_LENGTH * rows_told, _FEWEST_ROWS)
    if fixed and 2 * causes.whole < causes.compared and 2 * zeros > rows:
        found.append(
            f"{most:,} of {rows_told:,} rows are {length} nt long, and junctions differ in length: a window "
            "of fixed length, which begins in V or ends in J, is no junction."
        )
    if not found and 2 * zeros > rows and causes.examined:
        found.append(
            f"Most rows have 0, and nothing that was looked for explains it in the {of}: reverse "
            "complements, CDR3s without the conserved codons, longer sequences, genes of the other bundled "
            "sets, long insertions, mutations."
        )
    return found


def foreign_sentences(
    unknown: Mapping[str, Mapping[str, int]], called: int, *, locus: str, own: str
) -> list[str]:
    """What is to be said of calls that belong to another locus or species.

    Parameters
    ----------
    unknown
        Rows of each name that is not known, for V (``"v"``) and J (``"j"``).
    called
        Rows with calls.
    locus
        Locus of the germline set or model; empty if it is not known.
    own
        What it is, as ``"germline set mouse_trb"``.
    """
    found = []
    segments: tuple[Segment, Segment] = ("V", "J")
    for segment in segments:
        names = unknown.get(segment.lower(), {})
        n = sum(names.values())
        if n < max(_NOTABLE * called, min(_FEWEST, called)) or not n:
            continue
        examples = ", ".join(list(names)[:3])
        loci = Counter[str]()
        for name, rows in names.items():
            loci[_locus(name)] += rows
        elsewhere, there = loci.most_common(1)[0]
        told = f"{n:,} of {called:,} rows name {segment} genes that the {own} does not have ({examples})"
        if elsewhere not in ("", locus) and there >= _KNOWN * n:
            found.append(f"{told}: genes of {elsewhere}{f', and not of {locus}' if locus else ''}.")
            continue
        having = [name for name in bundled_germlines() if _rows_known(name, segment, names) >= _KNOWN * n]
        if having:
            found.append(f"{told} and {' and '.join(having)} has: rows of another species?")
    return found


def _locus(name: str) -> str:
    """Locus that a name begins with, in the styles of the field."""
    start = name.strip().upper().replace("TCR", "TR", 1)[:3]
    return start if start in LOCI else ""


def _rows_known(germline: str, segment: Segment, names: Mapping[str, int]) -> int:
    known = load_germline(germline)
    return sum(
        rows
        for name, rows in names.items()
        if (found := known.resolve_all(name, segment)) and None not in found
    )
