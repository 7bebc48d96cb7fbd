"""Alignments of nucleotide sequences as lines of SAM.

Source: Sequence Alignment/Map Format Specification, version 1.6, sections 1.3 to 1.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from plait.align.cigar import DELETION, INSERTION, MATCH, parse_cigar
from plait.align.pairs import AlignedPair
from plait.align.results import Alignment
from plait.errors import InvalidInput, Unsupported

__all__ = ["sam_header", "sam_line", "unmapped_sam_line"]

_MOST_LENGTH = 2**31 - 1
_UNMAPPED, _SECONDARY = 0x4, 0x100
_NO_QUALITY = 255
_QUERY_NAME = re.compile(r"[!-?A-~]{1,254}")
_TARGET_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
_LETTERS = re.compile(rb"[A-Za-z=.]*")
_ANOTHER = "rename it, or choose another format"


def sam_header(targets: Iterable[tuple[str, int]], *, version: str, command: str) -> Iterator[str]:
    """Header lines.

    Parameters
    ----------
    targets
        Name and length of every target, in order. Those of length 0, to which nothing aligns, are left out.
    version
        Version of plait.
    command
        The command line; ``""`` leaves it out.

    Yields
    ------
    str
        Lines with line ends.

    Raises
    ------
    InvalidInput
        If two targets have one name, or a name or length is one that SAM cannot hold.
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
    """Line of an aligned pair.

    The query is written as read, with soft clips (S) where its ends are not aligned. Tags are AS, the score,
    NM, the number of mismatches and gap columns, and MD if asked for. There is no mapping quality (255).

    Parameters
    ----------
    pair
        The pair.
    alignment
        Its alignment, with at least one pair of residues.
    secondary
        Whether the query has a line already.
    md
        Whether to write the tag MD, from which the target can be read off.

    Returns
    -------
    str
        The line with its line end.

    Raises
    ------
    InvalidInput
        If SAM does not allow the query's name.
    Unsupported
        If it does not allow its letters.
    """
    before, after = alignment.query_start, len(pair.query) - alignment.query_end
    clips = [f"{count}S" if count else "" for count in (before, after)]
    tags = f"AS:i:{alignment.score}\tNM:i:{alignment.mismatches + alignment.gaps}"
    if md:
        tags += f"\tMD:Z:{_md(pair, alignment)}"
    flag, place = _SECONDARY if secondary else 0, alignment.target_start + 1
    cigar = f"{clips[0]}{alignment.cigar}{clips[1]}"
    return (
        f"{_query_name(pair)}\t{flag}\t{pair.target_name}\t{place}\t{_NO_QUALITY}\t{cigar}"
        f"\t*\t0\t0\t{_letters(pair)}\t*\t{tags}\n"
    )


def unmapped_sam_line(pair: AlignedPair) -> str:
    """Line of a query that aligns to nothing."""
    return f"{_query_name(pair)}\t{_UNMAPPED}\t*\t0\t0\t*\t*\t0\t0\t{_letters(pair)}\t*\n"


def _query_name(pair: AlignedPair) -> str:
    if not _QUERY_NAME.fullmatch(pair.query_name):
        raise InvalidInput(
            "query name",
            found=repr(pair.query_name),
            expected="1 to 254 printable ASCII characters without @, as SAM asks",
            hint=_ANOTHER,
        )
    return pair.query_name


def _letters(pair: AlignedPair) -> str:
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
