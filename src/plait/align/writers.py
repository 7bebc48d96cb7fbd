"""Write aligned pairs, and hits of searches, as text, SAM and tables (BLAST's too), whole or not at all."""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from plait.align.results import (
    DELETION,
    INSERTION,
    MATCH,
    Alignment,
    aligned_strings,
    alignment_lines,
    parse_cigar,
)
from plait.alphabets import COMPLEMENT_LETTER, reverse_complement
from plait.errors import InvalidInput, Unsupported, check_choice
from plait.formats.atomic import TextOutput, WholeOrNot, file_or_standard_output, output_format, write_json
from plait.types import Provenance

if TYPE_CHECKING:
    from plait.align.scoring import Scoring

_Value = str | int | float | None


class AlignedPair(NamedTuple):
    """Two whole sequences, letters as read, and how they align; `mode` is ``"global"``, ``"local"``, ...

    Names are the first words of the headers; `target_description` is what follows it in the target's.
    `alignment` is there if more than the score was asked for; bit score and E-value where there are any.
    `target_record` is the number of the target in its file or database, counted from 0, if it matters; `rank`
    the place among the alignments of the pair, from 1. With `strand` ``-`` the query that is given, and
    aligned, is the reverse complement of that which was read. With a `frame` (1 to 3, -1 to -3) it is the
    translation of what was read, which had `query_residues`. `quality`, if known, is that of each letter of
    the query as FASTQ has it.
    """

    query_name: str
    target_name: str
    query: bytes
    target: bytes
    score: int
    alignment: Alignment | None
    mode: str
    bit_score: float | None = None
    evalue: float | None = None
    target_description: str = ""
    target_record: int | None = None
    rank: int = 1
    strand: str = "+"
    frame: int = 0
    query_residues: int | None = None
    quality: bytes = b""

    @property
    def named(self) -> tuple[str, str]:
        """Names for readers: of the query with its strand or frame, and of the target."""
        turned = " (reverse complement)" if self.strand == "-" else ""
        turned = f" (frame {self.frame:+})" if self.frame else turned
        return f"{self.query_name}{turned}", self.target_name

    @property
    def query_length(self) -> int:
        """Residues of the query as it was read."""
        return len(self.query) if self.query_residues is None else self.query_residues

    def query_place(self, alignment: Alignment) -> tuple[int, int]:
        """Start and end in the query as it was read."""
        start, end = alignment.query_start, alignment.query_end
        if self.frame:
            start, end = (3 * place + abs(self.frame) - 1 for place in (start, end))
            return (start, end) if self.frame > 0 else (self.query_length - end, self.query_length - start)
        return (len(self.query) - end, len(self.query) - start) if self.strand == "-" else (start, end)


_ColumnKind = Literal["string", "integer", "number"]


@dataclass(frozen=True, slots=True)
class PairColumn:
    """One column of a table of pairs; `value` gives None for a pair that has none.

    `needs_alignment`: the value is in the alignment, and not known from the score alone. `text` writes a
    value that is not None as BLAST's tables do.
    """

    kind: _ColumnKind
    value: Callable[[AlignedPair], _Value]
    needs_alignment: bool = False
    text: Callable[[Any], str] = str


def _aligned(
    kind: _ColumnKind,
    value: str | Callable[[AlignedPair, Alignment], _Value],
    text: Callable[[Any], str] = str,
) -> PairColumn:
    """A column that is a field of the alignment, or made of it and the pair."""

    def of_pair(pair: AlignedPair) -> _Value:
        if pair.alignment is None:
            return None
        found: _Value = (
            getattr(pair.alignment, value) if isinstance(value, str) else value(pair, pair.alignment)
        )
        return found

    return PairColumn(kind, of_pair, True, text)


def _as_read(side: int) -> Callable[[AlignedPair, Alignment], str]:
    return lambda pair, found: aligned_strings(found, pair.query, pair.target)[side]


#: Every column, in the order of the documentation. Coordinates are 0-based and half-open; identity and
#: similarity are shares, from 0 to 1, of `length`, the columns of the alignment with its gaps.
COLUMNS: Final[Mapping[str, PairColumn]] = MappingProxyType(
    {
        "query": PairColumn("string", lambda pair: pair.query_name),
        "target": PairColumn("string", lambda pair: pair.target_name),
        "score": PairColumn("integer", lambda pair: pair.score),
        "bit_score": PairColumn("number", lambda pair: pair.bit_score),
        "evalue": PairColumn("number", lambda pair: pair.evalue),
        "query_start": _aligned("integer", lambda pair, found: pair.query_place(found)[0]),
        "query_end": _aligned("integer", lambda pair, found: pair.query_place(found)[1]),
        "query_length": PairColumn("integer", lambda pair: pair.query_length),
        "target_start": _aligned("integer", "target_start"),
        "target_end": _aligned("integer", "target_end"),
        "target_length": PairColumn("integer", lambda pair: len(pair.target)),
        "identity": _aligned("number", "identity"),
        "similarity": _aligned("number", "similarity"),
        "length": _aligned("integer", "length"),
        "matches": _aligned("integer", "matches"),
        "mismatches": _aligned("integer", "mismatches"),
        "gaps": _aligned("integer", "gaps"),
        "gap_openings": _aligned("integer", "gap_openings"),
        "mode": PairColumn("string", lambda pair: pair.mode),
        "cigar": _aligned("string", "cigar"),
        "query_aligned": _aligned("string", _as_read(0)),
        "target_aligned": _aligned("string", _as_read(1)),
        "rank": PairColumn("integer", lambda pair: pair.rank),
        "strand": PairColumn("string", lambda pair: pair.strand),
    }
)

#: Columns of a table for which none are chosen.
DEFAULT_COLUMNS: Final = tuple(
    name
    for name in COLUMNS
    if name not in ("bit_score", "evalue", "mode", "query_aligned", "target_aligned", "rank", "strand")
)


def check_columns(
    names: Sequence[str] | None,
    columns: Iterable[str] = COLUMNS,
    default: tuple[str, ...] = DEFAULT_COLUMNS,
) -> tuple[str, ...]:
    """Check a choice of columns, names of `columns` in the order wanted; `default` if `names` is None.

    `InvalidInput` if there are none, one is unknown or one is there twice.
    """
    if names is None:
        return default
    check_choice("columns", names, columns)
    return tuple(names)


def needs_alignment(names: Sequence[str], columns: Mapping[str, PairColumn] = COLUMNS) -> bool:
    """Whether a choice of columns needs more than scores."""
    return any(columns[name].needs_alignment for name in names)


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
    start, end = pair.query_place(alignment)
    covered, size = end - start, pair.query_length
    # 100 stands for all of it.
    return 100 if covered == size else min(99, int(0.5 + 100 * covered / size))


def _trace(pair: AlignedPair, alignment: Alignment) -> str:
    """BLAST's trace-back operations: numbers of matches, and the two letters of every other column."""
    letters = pair.query.upper()
    if alignment.scoring.matrix.kind == "dna":
        letters = letters.replace(b"U", b"T")
    query, target = (_along_query(pair, row) for row in aligned_strings(alignment, letters, pair.target))
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


def _capitals(side: int) -> Callable[[AlignedPair, Alignment], str]:
    return lambda pair, found: _along_query(
        pair, aligned_strings(found, pair.query.upper(), pair.target)[side]
    )


_COMPLEMENTS: Final = bytes(COMPLEMENT_LETTER).replace(b"?", b"-").decode()


def _along_query(pair: AlignedPair, row: str) -> str:
    """A row of an alignment in the direction of the query as it was read."""
    return row if pair.strand == "+" else row[::-1].translate(_COMPLEMENTS)


def _query_place(pair: AlignedPair, alignment: Alignment) -> tuple[int, int]:
    """First and last residue of the query, from 1, as BLAST has them: falling in frames below 0."""
    start, end = pair.query_place(alignment)
    return (end, start + 1) if pair.frame < 0 else (start + 1, end)


def _frames(pair: AlignedPair) -> tuple[int, int]:
    """Frames of query and target as BLAST has them; of a protein beside a translation it is 0."""
    return (pair.frame, 0) if pair.frame else (1, 1 if pair.strand == "+" else -1)


def _target_place(pair: AlignedPair, alignment: Alignment) -> tuple[int, int]:
    """First and last residue of the target along the query, from 1, as BLAST has them."""
    ends = alignment.target_start + 1, alignment.target_end
    return ends if pair.strand == "+" else ends[::-1]


def _title(pair: AlignedPair) -> str:
    return f"{pair.target_name} {pair.target_description}".rstrip()


#: Every column, by BLAST's name; ``cigar`` is ours, of the query against the sequence found.
BLAST_COLUMNS: Final[Mapping[str, PairColumn]] = MappingProxyType(
    {
        "qseqid": PairColumn("string", lambda pair: pair.query_name),
        "sseqid": PairColumn("string", lambda pair: pair.target_name),
        "pident": _aligned("number", lambda _, found: 100 * found.identity, "{:.3f}".format),
        "length": _aligned("integer", "length"),
        "mismatch": _aligned("integer", "mismatches"),
        "gapopen": _aligned("integer", "gap_openings"),
        "qstart": _aligned("integer", lambda pair, found: _query_place(pair, found)[0]),
        "qend": _aligned("integer", lambda pair, found: _query_place(pair, found)[1]),
        "sstart": _aligned("integer", lambda pair, found: _target_place(pair, found)[0]),
        "send": _aligned("integer", lambda pair, found: _target_place(pair, found)[1]),
        "evalue": PairColumn("number", lambda pair: pair.evalue, text=evalue_text),
        "bitscore": PairColumn("number", lambda pair: pair.bit_score, text=bit_score_text),
        "score": PairColumn("integer", lambda pair: pair.score),
        "qlen": PairColumn("integer", lambda pair: pair.query_length),
        "slen": PairColumn("integer", lambda pair: len(pair.target)),
        "nident": _aligned("integer", "matches"),
        "positive": _aligned("integer", "similar"),
        "ppos": _aligned("number", lambda _, found: 100 * found.similarity, "{:.2f}".format),
        "gaps": _aligned("integer", "gaps"),
        "qcovs": _aligned("integer", _coverage),
        "qcovhsp": _aligned("integer", _coverage),
        "qseq": _aligned("string", _capitals(0)),
        "sseq": _aligned("string", _capitals(1)),
        "btop": _aligned("string", _trace),
        "cigar": _aligned("string", "cigar"),
        "sstrand": PairColumn("string", lambda pair: "plus" if pair.strand == "+" else "minus"),
        "qframe": PairColumn("integer", lambda pair: _frames(pair)[0]),
        "sframe": PairColumn("integer", lambda pair: _frames(pair)[1]),
        "frames": PairColumn("string", lambda pair: "{}/{}".format(*_frames(pair))),
        "stitle": PairColumn("string", _title, text=lambda title: title.replace("\t", " ")),
    }
)

#: Columns of a table for which none are chosen: BLAST's,
DEFAULT_BLAST_COLUMNS: Final = tuple(BLAST_COLUMNS)[:12]
#: and those of them, and of the most useful others, that need no alignment.
SCORE_BLAST_COLUMNS: Final = ("qseqid", "sseqid", "evalue", "bitscore", "score", "qlen", "slen")


_MOST_LENGTH = 2**31 - 1
_UNMAPPED, _REVERSE, _SECONDARY = 0x4, 0x10, 0x100
_NO_QUALITY = 255
_QUERY_NAME = re.compile(r"[!-?A-~]{1,254}")
_TARGET_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
_LETTERS = re.compile(rb"[A-Za-z=.]*")
_ANOTHER = "rename it, or choose another format"


def sam_header(targets: Iterable[tuple[str, int]], *, version: str, command: str) -> Iterator[str]:
    """Lines of a SAM header, with line ends.

    `targets` are name and length of every target, in order; those of length 0, to which nothing aligns, are
    left out. So is the command line, if it is ``""``. `InvalidInput` if two targets have one name, or a name
    or length is one that SAM cannot hold.
    """
    yield "@HD\tVN:1.6\tSO:unsorted\tGO:query\n"
    seen: set[str] = set()
    for name, length in targets:
        if not _TARGET_NAME.fullmatch(name):
            raise InvalidInput(
                "target name",
                found=repr(name),
                expected="a name that SAM allows: without blanks, commas, quotes, brackets or backslashes",
                hint=_ANOTHER,
            )
        if name in seen:
            raise InvalidInput(
                "target name",
                found=f"{name!r} more than once",
                expected="every name once, as SAM refers to targets by name",
                hint=_ANOTHER,
            )
        if length > _MOST_LENGTH:
            raise InvalidInput(
                f"target {name!r}",
                found=f"{length} residues",
                expected=f"at most {_MOST_LENGTH}, as SAM allows",
                hint="choose another format",
            )
        seen.add(name)
        if length:
            yield f"@SQ\tSN:{name}\tLN:{length}\n"
    called = f"\tCL:{' '.join(command.split())}" if command else ""
    yield f"@PG\tID:plait\tPN:plait\tVN:{version}{called}\n"


def sam_line(pair: AlignedPair, alignment: Alignment, *, secondary: bool = False, md: bool = False) -> str:
    """Line, with its line end, of a pair that is aligned with at least one pair of residues.

    The query is written as read, with soft clips (S) where its ends are not aligned. Tags are AS, the score,
    NM, the number of mismatches and gap columns, and, if `md`, MD, from which the target can be read off.
    There is no mapping quality (255). `secondary`: the query has a line already. `InvalidInput` if SAM does
    not allow the query's name, `Unsupported` if it does not allow its letters.
    """
    before, after = alignment.query_start, len(pair.query) - alignment.query_end
    clips = [f"{count}S" if count else "" for count in (before, after)]
    tags = f"AS:i:{alignment.score}\tNM:i:{alignment.mismatches + alignment.gaps}"
    if md:
        tags += f"\tMD:Z:{_md(pair, alignment)}"
    flag, place = _SECONDARY if secondary else 0, alignment.target_start + 1
    flag |= _REVERSE if pair.strand == "-" else 0
    cigar = f"{clips[0]}{alignment.cigar}{clips[1]}"
    return (
        f"{_query_name(pair)}\t{flag}\t{pair.target_name}\t{place}\t{_NO_QUALITY}\t{cigar}"
        f"\t*\t0\t0\t{_query_letters(pair)}\t{_qualities(pair)}\t{tags}\n"
    )


def paf_line(pair: AlignedPair) -> str:
    """A pair in minimap2's PAF, without line end; ``""`` if no residues are paired.

    Tags are AS, the score, NM, gaps and mismatches, and cg.

    Source: https://lh3.github.io/minimap2/minimap2.html#10. There is no mapping quality (255).
    """
    found = _alignment(pair)
    if not found.matches + found.mismatches:
        return ""
    start, end = pair.query_place(found)
    fields = (
        *(pair.query_name, len(pair.query), start, end, pair.strand),
        *(pair.target_name, len(pair.target), found.target_start, found.target_end),
        *(found.matches, found.length, _NO_QUALITY, f"AS:i:{found.score}"),
        *(f"NM:i:{found.mismatches + found.gaps}", f"cg:Z:{found.cigar}"),
    )
    return "\t".join(map(str, fields))


def unmapped_sam_line(pair: AlignedPair) -> str:
    """Line of a query that aligns to nothing."""
    return (
        f"{_query_name(pair)}\t{_UNMAPPED}\t*\t0\t0\t*\t*\t0\t0\t{_query_letters(pair)}\t{_qualities(pair)}\n"
    )


def _query_name(pair: AlignedPair) -> str:
    if not _QUERY_NAME.fullmatch(pair.query_name):
        raise InvalidInput(
            "query name",
            found=repr(pair.query_name),
            expected="1 to 254 printable ASCII characters without @, as SAM asks",
            hint=_ANOTHER,
        )
    return pair.query_name


def _same_query(one: AlignedPair, other: AlignedPair) -> bool:
    """Whether pairs have the same query: mates of a read often have one name."""
    if one.query_name != other.query_name or len(one.query) != len(other.query):
        return False
    if one.strand == other.strand:
        return one.query == other.query
    forward, turned = (one, other) if one.strand == "+" else (other, one)
    return reverse_complement(forward.query.decode("latin-1")).encode() == turned.query


def _qualities(pair: AlignedPair) -> str:
    return pair.quality.decode("ascii") or "*"


def _query_letters(pair: AlignedPair) -> str:
    end = _LETTERS.match(pair.query)
    if end is None or end.end() < len(pair.query):
        place = end.end() if end else 0
        raise Unsupported(
            f"the letter {chr(pair.query[place])!r} of query {pair.query_name!r} in SAM",
            why="it allows letters of the alphabet only; choose another format",
        )
    return pair.query.decode("ascii") or "*"


def _md(pair: AlignedPair, alignment: Alignment) -> str:
    """Matches as numbers, the target's letter at a mismatch, and after ^ those that the query lacks."""
    target = pair.target[alignment.target_start : alignment.target_end].decode("ascii").upper()
    operations, lengths = parse_cigar(alignment.cigar)
    parts: list[str] = []
    at = same = 0
    for operation, length in zip(operations.tolist(), lengths.tolist(), strict=True):
        if operation == INSERTION:
            continue
        letters = target[at : at + length]
        at += length
        if operation == MATCH:
            same += length
            continue
        if operation == DELETION:
            parts.append(f"{same}^{letters}")
        else:
            parts.append(f"{same}{'0'.join(letters)}")
        same = 0
    return f"{''.join(parts)}{same}"


class AlignmentWriter(WholeOrNot):
    """Aligned pairs being written; a context manager made by `open_alignments`.

    `left_out` counts those of the `pairs` written so far that have no line of their own. Only SAM and PAF
    leave pairs out; in SAM, a query that aligns to some targets has no line for the others, and one that
    aligns to nothing has a single line.
    """

    def __init__(self, output: WholeOrNot) -> None:
        self.pairs = 0
        self.left_out = 0
        self._output = output

    def write(self, pair: AlignedPair) -> None:
        """Append a pair; in SAM, pairs of one query stand together, and its first line is the primary one.

        `InvalidInput` if the format needs an alignment and there is only a score, or SAM cannot hold the
        query's name; `FormatError` if the disk is full; `BrokenPipeError` if whoever reads standard output
        has gone.
        """
        self._write(pair)
        self.pairs += 1

    def begin(self, query: str, residues: int) -> None:
        """Say whose hits follow, where they are those of a search."""
        return

    @abstractmethod
    def _write(self, pair: AlignedPair) -> None: ...

    def close(self) -> None:
        """Finish the output and make it appear under its name."""
        self._output.close()

    def discard(self) -> None:
        """Remove the unfinished file; an older one of the same name stays as it was."""
        self._output.discard()


class TextWriter(AlignmentWriter):
    """Pairs in EMBOSS's pair format (srspair); `command`, unless empty, is the command line."""

    def __init__(self, output: TextOutput, version: str, command: str) -> None:
        super().__init__(output)
        self._text = output
        rule = 40 * "#"
        called = f"# Commandline: {' '.join(command.split())}\n" if command else ""
        start = f"{rule}\n# Program: plait {version}\n{called}# Align_format: srspair\n{rule}\n\n"
        # The command line may hold file names that are no UTF-8.
        output.write(start.encode("utf-8", "backslashreplace"))

    def _write(self, pair: AlignedPair) -> None:
        for line in alignment_lines(_alignment(pair), pair.query, pair.target, names=pair.named):
            self._text.write(line.encode("utf-8"))

    def close(self) -> None:
        """Finish the output and make it appear under its name."""
        self._text.write(2 * f"#{39 * '-'}\n".encode())
        super().close()


class SamWriter(AlignmentWriter):
    """Pairs as SAM; `header` are lines with line ends, `md` asks for the tag MD.

    The output is discarded if the header fails.
    """

    def __init__(self, output: TextOutput, header: Iterable[str], md: bool) -> None:
        super().__init__(output)
        self._text = output
        self._md = md
        #: First pair of the query whose pairs are being written, and whether the query has a line.
        self._first: AlignedPair | None = None
        self._mapped = False
        try:
            for line in header:
                output.write(line.encode("utf-8", "backslashreplace"))
        except BaseException:
            output.discard()
            raise

    def _write(self, pair: AlignedPair) -> None:
        alignment = _alignment(pair)
        if self._first is None or not _same_query(self._first, pair):
            self._end_query()
            self._first, self._mapped = pair, False
        if not alignment.matches + alignment.mismatches:
            self.left_out += 1
            return
        line = sam_line(pair, alignment, secondary=self._mapped, md=self._md)
        self._mapped = True
        self._text.write(line.encode("ascii"))

    def _end_query(self) -> None:
        if self._first is not None and not self._mapped:
            self._text.write(unmapped_sam_line(self._first).encode("ascii"))
            self.left_out -= 1

    def close(self) -> None:
        """Finish the output and make it appear under its name."""
        self._end_query()
        super().close()


class LinesWriter(AlignmentWriter):
    """Pairs as one line each, which `line` gives without the line end, or ``""`` for none, behind `header`.

    `facts` is a file for what is known about all of them, if there is to be one.
    """

    def __init__(
        self,
        output: TextOutput,
        line: Callable[[AlignedPair], str],
        facts: str | None,
        provenance: Provenance,
        *,
        header: str = "",
    ) -> None:
        super().__init__(output)
        self._text = output
        self._line = line
        self._facts = facts
        self._provenance = provenance
        output.write(header.encode("utf-8"))

    def _write(self, pair: AlignedPair) -> None:
        line = self._line(pair)
        self.left_out += not line
        if line:
            self._text.write(f"{line}\n".encode())

    def close(self) -> None:
        """Finish the output and make it appear under its name."""
        super().close()
        if self._facts is not None:
            write_json(self._facts, {"pairs": self.pairs, "provenance": self._provenance.as_dict()})


class ReportWriter(AlignmentWriter):
    """A list of the hits of each query, and behind it their alignments."""

    def __init__(self, output: TextOutput, head: str) -> None:
        super().__init__(output)
        self._text = output
        self._title = ""
        self._rows: list[tuple[str, ...]] = []
        self._lines: list[str] = []
        output.write(head.encode())

    def begin(self, query: str, residues: int) -> None:
        """Say whose hits follow."""
        self._end_query()
        self._title = f"Query: {query} ({residues:,} residues)\n\n"

    def _write(self, pair: AlignedPair) -> None:
        self._rows.append(_report_row(len(self._rows) + 1, pair))
        if pair.alignment is not None:
            self._lines += alignment_lines(pair.alignment, pair.query, pair.target, names=pair.named)

    def _end_query(self) -> None:
        if self._title:
            table = _layout(self._rows) if self._rows else ["No hits.\n"]
            self._text.write("".join([self._title, *table, "\n", *self._lines]).encode())
        self._rows, self._lines = [], []

    def close(self) -> None:
        """Finish the output and make it appear under its name."""
        self._end_query()
        super().close()


_REPORT_HEAD: Final = ("", "Sequence", "Length", "Score", "Bits", "E-value", "Identity", "Description")
_TO_THE_LEFT: Final = ("Sequence", "Description")
_MOST_DESCRIPTION: Final = 60


def _report_row(number: int, pair: AlignedPair) -> tuple[str, ...]:
    return (
        str(number),
        pair.target_name,
        f"{len(pair.target):,}",
        str(pair.score),
        "" if pair.bit_score is None else bit_score_text(pair.bit_score),
        "" if pair.evalue is None else evalue_text(pair.evalue),
        "" if pair.alignment is None else f"{100 * pair.alignment.identity:.1f}%",
        pair.target_description[:_MOST_DESCRIPTION],
    )


def _layout(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table, columns one below the other."""
    columns = []
    for cells in zip(_REPORT_HEAD, *rows, strict=True):
        width = max(map(len, cells))
        left = cells[0] in _TO_THE_LEFT
        columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in cells])
    return ["  ".join(cells).rstrip() + "\n" for cells in zip(*columns, strict=True)]


def blast_line(names: Sequence[str]) -> Callable[[AlignedPair], str]:
    """How a hit is written as a line with these columns, tabs between."""
    columns = [BLAST_COLUMNS[name] for name in names]

    def line(pair: AlignedPair) -> str:
        values = [(column.value(pair), column.text) for column in columns]
        return "\t".join(["N/A" if value is None else text(value) for value, text in values])

    return line


def json_line(columns: Mapping[str, PairColumn]) -> Callable[[AlignedPair], str]:
    """How a pair is written as a JSON object with these columns."""

    def line(pair: AlignedPair) -> str:
        row = {name: column.value(pair) for name, column in columns.items()}
        return json.dumps(row, ensure_ascii=False)

    return line


def _alignment(pair: AlignedPair) -> Alignment:
    if pair.alignment is None:
        raise InvalidInput("pair", found="a score alone", expected="an alignment, which this format shows")
    return pair.alignment


_Path = str | os.PathLike[str]


def _names(*suffixes: str) -> tuple[str, ...]:
    return tuple(f"{suffix}{compressed}" for suffix in suffixes for compressed in ("", ".gz", ".zst"))


#: Names of the formats, and what file names they go with.
FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "text": _names(".txt"),
        "tsv": _names(".tsv"),
        "sam": _names(".sam"),
        "paf": _names(".paf"),
        "jsonl": _names(".jsonl"),
        "parquet": (".parquet",),
    }
)
#: Those of hits.
HIT_FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "blast": _names(".m8", ".b6"),
        "tsv": _names(".tsv"),
        "parquet": (".parquet",),
        "jsonl": _names(".jsonl"),
        "text": _names(".txt"),
    }
)


def alignment_format(output: _Path | None, format: str | None = None) -> str:
    """The format of an output, one of `FORMATS`; None or ``-`` is standard output.

    Without `format` it is what the file name says, and text on standard output. `InvalidInput` if the format
    is unknown, the file name says none or another one, or the format cannot go to standard output.
    """
    return output_format(output, format, FORMATS, standard="text", by_name=("tsv", "parquet"))


def open_alignments(
    output: _Path | None,
    *,
    scoring: Scoring,
    provenance: Provenance,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    targets: Iterable[tuple[str, int]] = (),
    command: str = "",
    inputs: Iterable[_Path] = (),
    md: bool = False,
) -> AlignmentWriter:
    """Start writing aligned pairs to a file; None or ``-`` is standard output.

    A clean exit of the writer makes the file appear under its name; an exception removes it and leaves an
    older file of that name as it was. `provenance` goes into the metadata of Parquet, and beside files of TSV
    and JSON lines into ``OUTPUT.json``; `command` goes into the headers of text and SAM. `format` is one of
    `FORMATS`, if the file name does not say it; `columns` (TSV, JSON lines, Parquet) are names of `COLUMNS`;
    `targets` (SAM) are name and length of every target; `md` asks for the tag MD of SAM; `inputs` are files
    that must not be overwritten.

    `InvalidInput` if output, format or columns are not what they should be, or SAM cannot hold a target;
    `Unsupported` if proteins are to be written as SAM; `FormatError` if the file cannot be written.
    """
    chosen = alignment_format(output, format)
    path = file_or_standard_output(output)
    if columns is not None and chosen in ("text", "sam", "paf"):
        raise InvalidInput(
            "columns", found=f"columns for {chosen}", expected="columns with tsv, jsonl and parquet only"
        )
    if chosen == "sam":
        if scoring.matrix.kind == "protein":
            raise Unsupported(
                "SAM of proteins",
                why="it holds alignments of nucleotides; choose text, tsv, jsonl or parquet",
            )
        lines = sam_header(targets, version=provenance.version, command=command)
        return SamWriter(TextOutput(path, inputs=inputs), lines, md)
    if chosen == "paf":
        return LinesWriter(TextOutput(path, inputs=inputs), paf_line, None, provenance)
    if chosen == "text":
        return TextWriter(TextOutput(path, inputs=inputs), provenance.version, command)
    return _table(path, chosen, {name: COLUMNS[name] for name in check_columns(columns)}, provenance, inputs)


def _table(
    path: str | None,
    format: str,
    columns: Mapping[str, PairColumn],
    provenance: Provenance,
    inputs: Iterable[_Path],
) -> AlignmentWriter:
    if format == "jsonl":
        facts = None if path is None else f"{path}.json"
        return LinesWriter(TextOutput(path, inputs=inputs), json_line(columns), facts, provenance)
    # Loaded here, because that takes longer than a small search.
    from plait.align.table_writers import PairTableWriter, table_schema
    from plait.formats.tables import table_or_lines

    metadata = {"plait.provenance": json.dumps(provenance.as_dict(), sort_keys=True)}
    table = table_or_lines(path, table_schema(columns), metadata=metadata, inputs=inputs)
    return PairTableWriter(table, columns)


def hit_format(output: _Path | None, format: str | None = None) -> str:
    """The format of an output, one of `HIT_FORMATS`; None or ``-`` is standard output.

    Without `format` it is what the file name says, and BLAST's on standard output. `InvalidInput` if the
    format is unknown, the file name says none or another one, or the format cannot go to standard output.
    """
    return output_format(output, format, HIT_FORMATS, standard="blast", by_name=("parquet",))


def hit_columns(format: str, columns: Sequence[str] | None, *, aligned: bool) -> tuple[str, ...]:
    """The columns of a table of hits, names of `BLAST_COLUMNS` in the order wanted; None for the usual ones.

    `InvalidInput` if one is unknown or comes twice, needs alignments that there are not, or the format has no
    columns.
    """
    if format == "text":
        if columns is not None:
            raise InvalidInput(
                "columns", found="columns for text", expected="columns with the other formats only"
            )
        return ()
    usual = DEFAULT_BLAST_COLUMNS if aligned else SCORE_BLAST_COLUMNS
    if columns is not None:
        # BLAST's word for its own columns.
        columns = [own for name in columns for own in (DEFAULT_BLAST_COLUMNS if name == "std" else (name,))]
    names = check_columns(columns, BLAST_COLUMNS, usual)
    if not aligned and needs_alignment(names, BLAST_COLUMNS):
        lacking = [name for name in names if BLAST_COLUMNS[name].needs_alignment]
        raise InvalidInput(
            "columns",
            found=f"{', '.join(lacking)} of hits that are not aligned",
            expected="columns that need no alignment",
        )
    return names


def open_hits(
    output: _Path | None,
    *,
    provenance: Provenance,
    format: str,
    columns: Sequence[str],
    notes: Sequence[str] = (),
    inputs: Iterable[_Path] = (),
) -> AlignmentWriter:
    """Start writing hits to a file; None or ``-`` is standard output.

    `provenance` goes into the metadata of Parquet, and beside files of TSV and JSON lines into
    ``OUTPUT.json``. `format` and `columns` are those of `hit_format` and `hit_columns`, `notes` stand at the
    head of text, `inputs` are files that must not be overwritten. `InvalidInput` or `FormatError` if the file
    cannot be written.
    """
    path = file_or_standard_output(output)
    if format in ("jsonl", "parquet"):
        return _table(path, format, {name: BLAST_COLUMNS[name] for name in columns}, provenance, inputs)
    text = TextOutput(path, inputs=inputs)
    if format == "text":
        return ReportWriter(text, _report_head(provenance, notes))
    facts = None if path is None or format == "blast" else f"{path}.json"
    header = "\t".join(columns) + "\n" if format == "tsv" else ""
    return LinesWriter(text, blast_line(columns), facts, provenance, header=header)


_TITLES: Final = {
    "local": "Smith-Waterman",
    "global": "Needleman-Wunsch",
    "semiglobal": "semi-global",
    "overlap": "overlap",
}


def _report_head(provenance: Provenance, notes: Sequence[str]) -> str:
    used = provenance.parameters
    names = ", ".join(used["database"]) or "in memory"
    size = f"{used['database_sequences']:,} sequences, {used['database_residues']:,} residues"
    lines = [
        f"plait {provenance.version}: {_TITLES[used['mode']]} search",
        f"Database: {names} ({size})",
        f"Scoring: {used['matrix']}, the first residue of a gap costs {used['gap_open']}, every further one "
        f"{used['gap_extend']}",
        *(f"Note: {note}" for note in notes),
    ]
    return "\n".join(lines) + "\n\n"
