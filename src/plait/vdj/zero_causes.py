"""Causes of zeros and foreign genes, tested on the rows and told in words: only what the numbers support."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import reverse_complement
from plait.vdj.germline.allele import LOCI, Segment
from plait.vdj.germline.bundled import bundled_germlines, load_germline

#: Causes in the order in which they are looked for; the last one is none.
CAUSES: Final = (
    "reverse_complement",
    "no_conserved_codons",
    "longer_sequence",
    "tight_limits",
    "genes_of_another_set",
    "long_insertions",
    "mutations",
    "unexplained",
)
#: Zero rows of a block that are put to the test, and rows that are compared with gene ends.
_EXAMINED: Final = 64
#: Parts of a longer sequence that are tried.
_MOST_WINDOWS: Final = 24
#: Codons of a junction within a longer sequence.
_SHORTEST, _LONGEST = 6, 40
#: How much more of its ends another set must match.
_MORE_ALIKE: Final = 3
#: An end that matches so far is that of a gene and not chance.
_MATCHED: Final = 6
#: Behind the first mismatch of a mutated end, so many of so many nucleotides match again.
_AGAIN, _OF_NEXT = 5, 6
_MOST_LENGTHS: Final = 1000
_NT_START, _NT_END = re.compile("(?=TG[TC])"), re.compile("(?=(?:TT[TC]|TGG)(?:GG|$))")
_AA_START, _AA_END = re.compile("(?=C)"), re.compile("(?=[FW](?:G|$))")
_NT_CODON_FIRST, _NT_CODON_LAST = re.compile("TG[TC]"), re.compile("(?:TT[TC]|TGG)$")

Ends = tuple[tuple[str, ...], tuple[str, ...]]
Possible = Callable[[Sequence[str], NDArray[np.int64]], NDArray[np.bool_]]


@dataclass(slots=True)
class TableCauses:
    """What was found. Sums of blocks, in any order.

    `causes` of the `examined` zero rows; of the rows `compared` with gene ends, zero or not, those that are
    `whole`, from Cys to Phe or Trp as junctions are, and those clearly more `alike` the genes of another
    bundled set, by its name; `lengths` of the junctions of all rows.
    """

    examined: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    whole: int = 0
    alike: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)

    def merge(self, other: TableCauses) -> None:
        """Add those of other blocks, which are left unchanged."""
        self.examined += other.examined
        self.compared += other.compared
        self.whole += other.whole
        self.causes.update(other.causes)
        self.alike.update(other.alike)
        self.lengths.update(other.lengths)
        if len(self.lengths) > _MOST_LENGTHS:
            self.lengths = Counter(dict(self.lengths.most_common(_MOST_LENGTHS)))

    def as_dict(self) -> dict[str, Any]:
        """All but the lengths, of which the most frequent one, ready for JSON."""
        most = self.lengths.most_common(1)
        return {
            "examined": self.examined,
            **{cause: self.causes[cause] for cause in CAUSES if self.causes[cause]},
            "compared": self.compared,
            "whole": self.whole,
            "like_another_set": dict(self.alike.most_common()),
            "most_frequent_length": most[0][0] if most else None,
            "rows_of_that_length": most[0][1] if most else 0,
            "rows": self.lengths.total(),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> TableCauses:
        """What `as_dict` told; of the lengths, the most frequent and all others as one."""
        most, n, rows = (facts[k] for k in ("most_frequent_length", "rows_of_that_length", "rows"))
        lengths = Counter({} if most is None else {int(most): int(n), -1: int(rows) - int(n)})
        found = Counter({cause: int(facts[cause]) for cause in CAUSES if cause in facts})
        alike = Counter({str(name): int(n) for name, n in facts["like_another_set"].items()})
        examined, compared, whole = (int(facts[name]) for name in ("examined", "compared", "whole"))
        return cls(examined, found, compared, whole, alike, +lengths)


def ends_of(v: Sequence[str | None], j: Sequence[str | None]) -> Ends:
    """Gene ends to compare with, each once: V from the conserved codon on, J up to it, reversed."""
    starts = tuple(dict.fromkeys(end for end in v if end))
    return starts, tuple(dict.fromkeys(end[::-1] for end in j if end))


@cache
def _bundled_ends(name: str) -> Ends:
    found = load_germline(name)
    return ends_of([a.cdr3_end for a in found.v], [a.cdr3_end for a in found.j])


@cache
def _others(genes: frozenset[str]) -> list[str]:
    """Bundled sets of another species or locus: those that have few of these V genes."""
    return [
        name
        for name in bundled_germlines()
        if 2 * len(genes & {a.gene for a in load_germline(name).v}) < max(len(genes), 1)
    ]


class CauseFinder:
    """Puts zero rows to the test.

    `insertions`: most nucleotides between V and J that no gene needs to match, N nucleotides and the longest
    D. `acids`: junctions are amino acids.
    """

    def __init__(self, ends: Ends, insertions: int, v_genes: Collection[str], *, acids: bool = False) -> None:
        self._ends, self._insertions, self._acids = ends, insertions, acids
        self._v_genes = frozenset(v_genes)

    def causes(
        self,
        junctions: pa.Array,
        counted: NDArray[np.bool_],
        zero: NDArray[np.bool_],
        possible: Possible,
        at_default_limits: Possible | None = None,
    ) -> TableCauses:
        """What explains zeros of a block: of rows `counted`, those with a number, and `zero` among them.

        `possible` tells, for texts in the place of the junctions of given rows, whether they have a number
        above 0; `at_default_limits` the same with wider limits, where the limits are tight.
        """
        found = TableCauses()
        sizes = pc.value_counts(pc.binary_length(junctions).filter(pa.array(counted)))
        for entry in sizes.to_pylist():
            found.lengths[entry["values"]] += entry["counts"]
        compared = _texts(junctions, _some(np.flatnonzero(counted)))
        found.compared = len(compared)
        found.whole = sum(map(self._is_whole, compared))
        if not self._acids:
            found.alike.update(name for text in compared if (name := self._another(text)))
        rows = _some(np.flatnonzero(zero))
        texts = dict(zip(rows.tolist(), _texts(junctions, rows), strict=True))
        found.examined = len(texts)
        tests: list[tuple[str, Possible, Callable[[str], Iterable[str]]]] = [
            ("reverse_complement", possible, self._turned),
            ("no_conserved_codons", possible, self._flanked),
            ("longer_sequence", possible, self._windows),
        ]
        if at_default_limits is not None:
            tests.append(("tight_limits", at_default_limits, lambda whole: (whole,)))
        for cause, is_possible, variants in tests:
            tried = [(row, text) for row, whole in texts.items() for text in variants(whole)]
            if not tried:
                continue
            at = np.array([row for row, _ in tried], np.int64)
            above = is_possible([text for _, text in tried], at)
            for row in set(at[above].tolist()):
                found.causes[cause] += 1
                del texts[row]
        found.causes.update("unexplained" if self._acids else self._of_ends(t) for t in texts.values())
        return found

    def _turned(self, text: str) -> Iterator[str]:
        if not self._acids and not _NT_CODON_FIRST.match(text):
            turned = reverse_complement(text)
            if _NT_CODON_FIRST.match(turned) and _NT_CODON_LAST.search(turned):
                yield turned

    def _flanked(self, text: str) -> Iterator[str]:
        if self._acids:
            # One that has its last conserved residue has an error in the first.
            if not text.startswith("C") and not text.endswith(("F", "W")):
                yield from (f"C{text}{last}" for last in "FW")
        elif not _NT_CODON_FIRST.match(text):
            # By chance, a junction with an error in its first codon has a number above 0 too.
            ends = product(("TGT", "TGC"), ("TTT", "TTC", "TGG"))
            for whole in (f"{first}{text}{last}" for first, last in ends):
                if min(_matched(whole, self._ends)) >= _MATCHED:
                    yield whole

    def _windows(self, text: str) -> Iterator[str]:
        if self._is_whole(text):
            return
        first, last = (_AA_START, _AA_END) if self._acids else (_NT_START, _NT_END)
        step = 1 if self._acids else 3
        starts = [match.start() for match in first.finditer(text)]
        ends = [match.start() + step for match in last.finditer(text)]
        windows = [
            text[a:b]
            for a in starts
            for b in ends
            if _SHORTEST * step <= b - a <= _LONGEST * step and b - a < len(text)
            # By chance, some part of nearly every sequence has a number above 0.
            if self._acids or min(_matched(text[a:b], self._ends)) >= _MATCHED
        ]
        yield from windows[:_MOST_WINDOWS]

    def _is_whole(self, text: str) -> bool:
        """Whether it begins with Cys and ends with Phe or Trp, as a junction does."""
        if self._acids:
            return text.startswith("C") and text.endswith(("F", "W"))
        return bool(_NT_CODON_FIRST.match(text) and _NT_CODON_LAST.search(text))

    def _another(self, text: str) -> str:
        """The bundled set whose ends match clearly more than those of the own one; empty if there is none."""
        own = sum(_matched(text, self._ends))
        others = ((sum(_matched(text, _bundled_ends(name))), name) for name in _others(self._v_genes))
        score, name = max(others, default=(0, ""))
        return name if score >= max(own + _MORE_ALIKE, 2 * _MATCHED) else ""

    def _of_ends(self, text: str) -> str:
        if self._another(text):
            return "genes_of_another_set"
        v, j = _matched(text, self._ends)
        if v >= _MATCHED and j >= _MATCHED and len(text) - v - j > self._insertions:
            return "long_insertions"
        sides = ((text, self._ends[0]), (text[::-1], self._ends[1]))
        return "mutations" if any(_mutated(side, ends) for side, ends in sides) else "unexplained"


def _texts(junctions: pa.Array, rows: NDArray[np.int64]) -> list[str]:
    return [text.upper().replace("U", "T") for text in junctions.take(pa.array(rows)).to_pylist()]


def _some(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most so many of them, evenly spaced."""
    if rows.size <= _EXAMINED:
        return rows
    return rows[np.linspace(0, rows.size - 1, _EXAMINED).astype(np.int64)]


def _common(a: str, b: str) -> int:
    unlike = (k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    return next(unlike, min(len(a), len(b)))


def _matched(text: str, ends: Ends) -> tuple[int, int]:
    """Longest match of a V end and of a J end."""
    v = max((_common(text, end) for end in ends[0]), default=0)
    return v, max((_common(text[::-1], end) for end in ends[1]), default=0)


def _mutated(text: str, ends: Sequence[str]) -> bool:
    """Whether the end that matches furthest goes on to match behind its first mismatch."""
    matches = [_common(text, end) for end in ends]
    most = max(matches, default=0)
    for kept, end in zip(matches, ends, strict=True):
        a, b = (one[kept + 1 : kept + 1 + _OF_NEXT] for one in (text, end))
        if kept == most and len(b) == _OF_NEXT and sum(map(str.__eq__, a, b)) >= _AGAIN:
            return True
    return False


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
    "tight_limits": "have a {what} above 0 with the default limits: their paths are beyond the limits of "
    "this run",
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

    `rows` have a number, `zeros` of them 0. `concentrated`: most zeros are of few genes, while the others
    have few.
    """
    return (
        2 * sum(causes.causes[cause] for cause in _named(causes, zeros, rows, concentrated)) > causes.examined
    )


def cause_sentences(
    causes: TableCauses, zeros: int, rows: int, *, what: str, own: str, concentrated: bool = False
) -> list[str]:
    """Causes, each with its numbers, as for `explained`.

    `what` is the number, as ``"path count"``, `own` what the rows were compared with, as
    ``"germline set mouse_trb"``.
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

    `unknown`: rows of each name that is not known, for V (``"v"``) and J (``"j"``), of `called` rows with
    calls. `locus` is empty if not known; `own` as in `cause_sentences`.
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
