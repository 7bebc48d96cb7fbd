"""Columns of hits as in BLAST's tables (``-outfmt 6``): their values, and how blastp prints them.

Coordinates are 1-based, both ends included. A hit is one alignment, so that ``qcovs`` is ``qcovhsp``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from plait.align.pairs import AlignedPair, PairColumn
from plait.align.results import Alignment
from plait.align.text import aligned_strings

__all__ = [
    "BLAST_COLUMNS",
    "DEFAULT_BLAST_COLUMNS",
    "SCORE_BLAST_COLUMNS",
    "BlastColumn",
    "bit_score_text",
    "blast_line",
    "evalue_text",
]

#: Stands where there is no value.
_NOTHING: Final = "N/A"


@dataclass(frozen=True, slots=True)
class BlastColumn(PairColumn):
    """One column of a table of hits.

    Attributes
    ----------
    kind, value, needs_alignment
        As in `plait.align.pairs.PairColumn`.
    text
        How a value that is not None is written in BLAST's tables.
    """

    text: Callable[[Any], str] = str


def evalue_text(evalue: float) -> str:
    """An E-value as blastp writes it in tables.

    >>> [evalue_text(value) for value in (0.0, 2.724e-68, 0.00362, 0.0362, 0.362, 3.62, 36.2)]
    ['0.0', '2.72e-68', '0.004', '0.036', '0.36', '3.6', '36']
    """
    if evalue < 1e-180:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.2e}"
    digits = 3 if evalue < 0.1 else 2 if evalue < 1 else 1 if evalue < 10 else 0
    return f"{evalue:.{digits}f}"


def bit_score_text(bit_score: float) -> str:
    """A bit score as blastp writes it.

    >>> [bit_score_text(value) for value in (26.94, 99.87, 217.96, 123456.0)]
    ['26.9', '99.9', '217', '1.235e+05']
    """
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    return str(int(bit_score)) if bit_score > 99.9 else f"{bit_score:.1f}"


def _coverage(pair: AlignedPair, alignment: Alignment) -> int:
    covered, size = alignment.query_end - alignment.query_start, len(pair.query)
    # 100 stands for all of it.
    return 100 if covered == size else min(99, int(0.5 + 100 * covered / size))


def _trace(pair: AlignedPair, alignment: Alignment) -> str:
    """BLAST's trace-back operations: numbers of matches, and the two letters of every other column."""
    letters = pair.query.upper()
    if alignment.scoring.matrix.kind == "dna":
        letters = letters.replace(b"U", b"T")
    query, target = aligned_strings(alignment, letters, pair.target)
    parts: list[str] = []
    same = 0
    for one, other in zip(query, target, strict=True):
        if one == other:
            same += 1
            continue
        if same:
            parts.append(str(same))
        parts.append(one + other)
        same = 0
    return "".join(parts) + (str(same) if same else "")


def _strings(pair: AlignedPair, alignment: Alignment) -> tuple[str, str]:
    return aligned_strings(alignment, pair.query.upper(), pair.target)


def _aligned(
    kind: Any, value: Callable[[AlignedPair, Alignment], Any], text: Callable[[Any], str] = str
) -> BlastColumn:
    def of_pair(pair: AlignedPair) -> Any:
        return None if pair.alignment is None else value(pair, pair.alignment)

    return BlastColumn(kind, of_pair, True, text)


def _title(pair: AlignedPair) -> str:
    return f"{pair.target_name} {pair.target_description}".rstrip()


#: Every column, by BLAST's name; ``cigar`` is ours, of the query against the sequence found.
BLAST_COLUMNS: Final[Mapping[str, BlastColumn]] = MappingProxyType(
    {
        "qseqid": BlastColumn("string", lambda pair: pair.query_name),
        "sseqid": BlastColumn("string", lambda pair: pair.target_name),
        "pident": _aligned("number", lambda _, found: 100 * found.identity, "{:.3f}".format),
        "length": _aligned("integer", lambda _, found: found.length),
        "mismatch": _aligned("integer", lambda _, found: found.mismatches),
        "gapopen": _aligned("integer", lambda _, found: found.gap_openings),
        "qstart": _aligned("integer", lambda _, found: found.query_start + 1),
        "qend": _aligned("integer", lambda _, found: found.query_end),
        "sstart": _aligned("integer", lambda _, found: found.target_start + 1),
        "send": _aligned("integer", lambda _, found: found.target_end),
        "evalue": BlastColumn("number", lambda pair: pair.evalue, text=evalue_text),
        "bitscore": BlastColumn("number", lambda pair: pair.bit_score, text=bit_score_text),
        "score": BlastColumn("integer", lambda pair: pair.score),
        "qlen": BlastColumn("integer", lambda pair: len(pair.query)),
        "slen": BlastColumn("integer", lambda pair: len(pair.target)),
        "nident": _aligned("integer", lambda _, found: found.matches),
        "positive": _aligned("integer", lambda _, found: found.similar),
        "ppos": _aligned("number", lambda _, found: 100 * found.similarity, "{:.2f}".format),
        "gaps": _aligned("integer", lambda _, found: found.gaps),
        "qcovs": _aligned("integer", _coverage),
        "qcovhsp": _aligned("integer", _coverage),
        "qseq": _aligned("string", lambda pair, found: _strings(pair, found)[0]),
        "sseq": _aligned("string", lambda pair, found: _strings(pair, found)[1]),
        "btop": _aligned("string", _trace),
        "cigar": _aligned("string", lambda _, found: found.cigar),
        "stitle": BlastColumn("string", _title, text=lambda title: title.replace("\t", " ")),
    }
)

#: Columns of a table for which none are chosen: BLAST's,
DEFAULT_BLAST_COLUMNS: Final = tuple(BLAST_COLUMNS)[:12]
#: and those of them, and of the most useful others, that need no alignment.
SCORE_BLAST_COLUMNS: Final = ("qseqid", "sseqid", "evalue", "bitscore", "score", "qlen", "slen")


def blast_line(names: Sequence[str]) -> Callable[[AlignedPair], str]:
    """How a hit is written as a line with these columns, tabs between."""
    columns = [BLAST_COLUMNS[name] for name in names]

    def line(pair: AlignedPair) -> str:
        values = [(column.value(pair), column.text) for column in columns]
        return "\t".join([_NOTHING if value is None else text(value) for value, text in values])

    return line
