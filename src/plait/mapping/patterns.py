"""Patterns to look for: read from files or given as sequences, checked, with a status each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, IUPAC_MASK, encode
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import sequence_file_kind
from plait.formats.files import ByteSource, check_readable

#: Letters that a pattern may have, without a PAM.
SHORTEST: Final = 8
LONGEST: Final = 64
_MOST_BYTES: Final = 1 << 28
_EXPECTED: Final = (
    "patterns: FASTA, FASTQ, a table of names and sequences, one sequence a line, or Cas-OFFinder's input"
)
_IUPAC: Final = "".join(map(chr, np.flatnonzero(IUPAC_MASK)))
#: Words of a header line for names, sequences and PAMs.
_COLUMNS: Final = (
    ("name", "pattern_name", "id", "primer_name", "guide_name", "sample"),
    ("sequence", "pattern", "seq", "guide", "primer", "probe", "spacer", "protospacer", "barcode"),
    ("pam",),
)
_CAS_PATTERN: Final = re.compile(r"([A-Za-z]+)(?:\s+(\d+)\s+(\d+))?")
_CAS_QUERY: Final = re.compile(r"([A-Za-z]+)\s+(\d+)(?:\s+(\S.*))?")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for.

    Attributes
    ----------
    name
        Its name.
    sequence
        Letters as given, IUPAC codes of either case; of a guide without its PAM.
    pam
        A PAM of its own, or none.
    errors
        Errors that it may have, where its file says so.
    line
        Line of its file.
    """

    name: str
    sequence: str
    pam: str = ""
    errors: int | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class PatternFile:
    """Patterns of a file, and what it says besides.

    `text` is the one that Cas-OFFinder's input names; `side` is where its PAMs are, 3 or 5, and `bulges` the
    extra and missing letters that it allows.
    """

    patterns: tuple[Pattern, ...]
    text: str = ""
    side: int | None = None
    bulges: tuple[int, int] | None = None


#: A file of patterns or one sequence; sequences, with their names or numbered; patterns.
Patterns = (
    str | bytes | os.PathLike[str] | Mapping[str, str] | Iterable[str | bytes | tuple[str, str] | Pattern]
)


def read_patterns(patterns: Patterns) -> PatternFile:
    """Patterns of a file, of one sequence, of sequences by name, or of sequences.

    `FormatError` with the line, or `InvalidInput`, if a letter is no IUPAC code or two have one name.
    """
    if isinstance(patterns, os.PathLike) or (isinstance(patterns, str) and not _is_literal(patterns)):
        read = _of_file(patterns)
        return replace(read, patterns=_checked(read.patterns, os.fspath(patterns)))
    found: list[Pattern] = []
    items: Iterable[object] = (
        [patterns]
        if isinstance(patterns, str | bytes)
        else (patterns.items() if isinstance(patterns, Mapping) else patterns)
    )
    for number, item in enumerate(items, 1):
        if isinstance(item, Pattern):
            found.append(item)
        elif isinstance(item, tuple):
            found.append(Pattern(str(item[0]), _text(item[1])))
        else:
            sequence = _text(item)
            found.append(Pattern(sequence if isinstance(patterns, str) else f"pattern_{number}", sequence))
    return PatternFile(_checked(found, None))


def _text(sequence: object) -> str:
    return sequence.decode("latin-1") if isinstance(sequence, bytes) else str(sequence)


def _is_literal(text: str) -> bool:
    return bool(text) and not text.lstrip(_IUPAC) and not Path(text).exists()


def _checked(patterns: Sequence[Pattern], path: str | None) -> tuple[Pattern, ...]:
    names: dict[str, Pattern] = {}
    for pattern in patterns:
        for what, letters in (("pattern", pattern.sequence), ("PAM", pattern.pam)):
            rest = letters.lstrip(_IUPAC)
            if rest:
                raise _wrong(
                    path, pattern, f"{rest[0]!r} in {what} {letters!r:.80}", "IUPAC letters of nucleotides"
                )
        if pattern.name in names:
            raise _wrong(
                path, pattern, f"a second pattern named {pattern.name!r}", "a name of its own for each"
            )
        names[pattern.name] = pattern
    if not patterns:
        raise (
            FormatError(path, found="no pattern", expected=_EXPECTED)
            if path
            else InvalidInput("patterns", found="none", expected="at least one")
        )
    return tuple(patterns)


def _wrong(path: str | None, pattern: Pattern, found: str, expected: str) -> FormatError | InvalidInput:
    if path is None:
        return InvalidInput("patterns", found=found, expected=expected)
    return FormatError(path, line=pattern.line, found=found, expected=expected)


def _of_file(path: str | os.PathLike[str]) -> PatternFile:
    check_readable(path)
    kind = sequence_file_kind(path, _EXPECTED)
    with ByteSource(path, kind) as source:
        pieces = []
        while piece := source.read(1 << 22):
            pieces.append(piece)
            if sum(map(len, pieces)) > _MOST_BYTES:
                raise FormatError(path, found=f"more than {_MOST_BYTES:,} bytes", expected=_EXPECTED)
    try:
        text = b"".join(pieces).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(path, found="bytes that are no UTF-8 text", expected=_EXPECTED) from error
    # A tab at an end stands beside an empty cell.
    lines = [(number, line.strip(" ")) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise FormatError(path, found="only blank lines", expected=_EXPECTED)
    if lines[0][1].startswith((">", "@")):
        return PatternFile(_of_records(path, lines))
    return _of_cas_offinder(path, lines) or PatternFile(_of_lines(path, lines))


def _of_records(path: object, lines: list[tuple[int, str]]) -> tuple[Pattern, ...]:
    """Records of FASTA, or of FASTQ with four lines each."""
    found: list[Pattern] = []
    if lines[0][1].startswith("@"):
        for (line, head), (_, sequence), (_, plus), _ in zip(*(lines[k::4] for k in range(4)), strict=False):
            if not head.startswith("@") or not plus.startswith("+"):
                raise FormatError(path, line=line, found=f"{head!r:.60}", expected="records of four lines")
            found.append(Pattern(head[1:].split()[0] if head[1:].split() else "", sequence, line=line))
        if len(lines) % 4:
            raise FormatError(path, line=lines[-1][0], found="an early end", expected="records of four lines")
        return tuple(found)
    for line, text in lines:
        if text.startswith(">"):
            words = text[1:].split()
            if not words:
                raise FormatError(path, line=line, found="a header without a name", expected="'>name'")
            found.append(Pattern(words[0], "", line=line))
        else:
            found[-1] = replace(found[-1], sequence=found[-1].sequence + "".join(text.split()))
    return tuple(found)


def _of_lines(path: object, lines: list[tuple[int, str]]) -> tuple[Pattern, ...]:
    """A table with tabs between names, sequences and PAMs, as its header says; or one sequence a line."""
    rows = [(line, [c.strip() for c in row.split("\t")]) for line, row in lines if not row.startswith("#")]
    widest = max((len(cells) for _, cells in rows), default=1)
    usual: list[int | None] = [None, 0, None] if widest == 1 else [0, 1, 2]
    head = [cell.lower() for cell in rows[0][1]] if rows else []
    places = [next((k for k, word in enumerate(head) if word in known), None) for known in _COLUMNS]
    own = head[min(widest, len(head), 2) - 1] if head else ""
    headed = any(k is not None for k in places) and bool(own.lstrip(_IUPAC))
    if not headed or places[1] is None:
        places = usual
    name, sequence, pam = places
    assert sequence is not None
    found: list[Pattern] = []
    for line, cells in rows[headed:]:
        if not sequence < len(cells) <= (len(head) if headed else 3):
            expected = "a name, a sequence and, if any, a PAM; or a header that names the columns"
            raise FormatError(path, line=line, found=f"{len(cells)} columns", expected=expected)
        cells += [""] * widest
        letters = cells[sequence]
        title = letters if name is None else cells[name]
        found.append(Pattern(title, letters, "" if pam is None else cells[pam], line=line))
    return tuple(found)


def _of_cas_offinder(path: object, lines: list[tuple[int, str]]) -> PatternFile | None:
    """Patterns of Cas-OFFinder's input; None if it is something else.

    Its lines are a genome, a pattern of N and a PAM with the bulges allowed, and guides with their
    mismatches.
    """
    if len(lines) < 3 or "\t" in lines[0][1]:
        return None
    whole, first = _CAS_PATTERN.fullmatch(lines[1][1]), _CAS_QUERY.fullmatch(lines[2][1])
    if whole is None or first is None:
        return None
    mask, size = whole[1].upper(), len(whole[1])
    tail = len(first[1]) - len(first[1].upper().rstrip("N"))
    lead = len(first[1]) - len(first[1].upper().lstrip("N"))
    side, length = (3, tail) if tail else (5, lead)
    pam = "" if not length else mask[-length:] if side == 3 else mask[:length]
    guided = mask[: size - length] if side == 3 else mask[length:]
    if set(guided) - {"N"}:
        raise FormatError(
            path, line=lines[1][0], found=f"the pattern {whole[1]!r}", expected="N where guides have letters"
        )
    found: list[Pattern] = []
    for line, row in lines[2:]:
        query = _CAS_QUERY.fullmatch(row)
        if query is None or len(query[1]) != size:
            raise FormatError(
                path,
                line=line,
                found=f"{row!r:.80}",
                expected=f"a guide of {size} letters, and the mismatches that it may have",
            )
        guide = query[1][: size - length] if side == 3 else query[1][length:]
        found.append(Pattern(query[3] or query[1], guide, pam, int(query[2]), line))
    bulges = (int(whole[2]), int(whole[3])) if whole[2] is not None else None
    return PatternFile(tuple(found), lines[0][1], side, bulges)


def status_of(pattern: Pattern, errors: int) -> str:
    """Whether a pattern can be looked for: ``ok``, or why not."""
    if len(pattern.sequence) < SHORTEST:
        return "too_short"
    if len(pattern.sequence) > LONGEST:
        return "too_long"
    return "errors_too_many" if 2 * errors >= len(pattern.sequence) else "ok"


def pattern_sets(patterns: Sequence[str], *, backwards: bool, complement: bool) -> NDArray[np.uint8]:
    """Sets of letters, (patterns, letters of the longest), read backwards and as complements if asked for."""
    sets = np.zeros((len(patterns), max(map(len, patterns), default=0)), np.uint8)
    for row, pattern in zip(sets, patterns, strict=True):
        masks = encode(pattern)
        masks = COMPLEMENT_MASK[masks] if complement else masks
        row[: masks.size] = masks[::-1] if backwards else masks
    return sets
