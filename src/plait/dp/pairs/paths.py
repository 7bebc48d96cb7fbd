"""Paths of alignments in numbers: their columns counted, their CIGARs written."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import shared

#: Columns of ``PathColumns.counts``.
COUNTS = ("query_start", "target_start", "matches", "mismatches", "similar", "gaps", "gap_openings")


class Paths(NamedTuple):
    """Paths of n pairs.

    `query` and `target` are uint8 codes, one sequence after the other; of each pair the `offsets` are where
    the sequences begin in them, the `ends` where in the sequences the path ends, exclusive, both int64 (n,).
    `matrix` is (codes, codes). `runs`, int64 (r, 2), are (operation, length) of all paths: 0 a pair of
    residues, 1 a residue of the target, 2 one of the query; runs of no column and neighbours of one operation
    are allowed. `run_offsets`, int64 (n + 1,), is the first run of each path, and r.
    """

    query: Any
    target: Any
    query_offsets: Any
    target_offsets: Any
    query_ends: Any
    target_ends: Any
    matrix: Any
    runs: Any
    run_offsets: Any


class PathColumns(NamedTuple):
    """What is found, changed in place; int64 except `cigars`.

    `counts` is (n, 7), see `COUNTS`; `cigars` the ASCII of all CIGARs, uint8, into which `bounds` (n + 1,)
    are the offsets.
    """

    counts: Any
    cigars: Any
    bounds: Any


@shared
def put_run(letters: Any, at: int, length: int, letter: int) -> int:
    """Write a run unless it is empty; returns where the next one begins."""
    if length == 0:
        return at
    # Most runs have one digit.
    digits, power = 1, 10
    while power <= length:
        digits += 1
        power *= 10
    for k in range(digits - 1):
        letters[at + digits - 1 - k] = 48 + length % 10
        length //= 10
    letters[at] = 48 + length
    letters[at + digits] = letter
    return at + digits + 1


@shared
def _continue(out: Any, at: int, letter: int, length: int, next_letter: int, columns: int) -> Any:
    """Put columns of one kind behind a run that is not written yet; returns where, and the run under way."""
    if letter == next_letter:
        return at, letter, length + columns
    return put_run(out.cigars, at, length, letter), next_letter, columns


@shared
def _residues(paths: Any, pair: int, other: int) -> int:
    """Residues of a path, all but those of operation `other`."""
    used = 0
    for r in range(paths.run_offsets[pair], paths.run_offsets[pair + 1]):
        if paths.runs[r, 0] != other:
            used += paths.runs[r, 1]
    return used


@shared
def _describe(paths: Any, out: Any, pair: int, at: int) -> int:
    counts = out.counts[pair]
    q = paths.query_offsets[pair] + counts[0]
    t = paths.target_offsets[pair] + counts[1]
    similar = letter = columns = 0
    for r in range(paths.run_offsets[pair], paths.run_offsets[pair + 1]):
        operation = paths.runs[r, 0]
        length = paths.runs[r, 1]
        if operation == 0:
            matches = 0
            for k in range(length):
                a = paths.query[q + k]
                b = paths.target[t + k]
                similar += 1 if paths.matrix[a, b] > 0 else 0
                matches += 1 if a == b else 0
                at, letter, columns = _continue(out, at, letter, columns, 61 if a == b else 88, 1)
            counts[2] += matches
            counts[3] += length - matches
            q += length
            t += length
        elif length > 0:
            gap = 68 if operation == 1 else 73
            counts[5] += length
            counts[6] += 1 if letter != gap else 0
            at, letter, columns = _continue(out, at, letter, columns, gap, length)
            q += 0 if operation == 1 else length
            t += length if operation == 1 else 0
    counts[4] = similar
    return put_run(out.cigars, at, columns, letter)


@shared
def describe_paths(paths: Any, out: Any) -> int:
    """Columns of all paths; returns -1, or the first pair whose path leaves its sequences.

    `out` is all zero before.
    """
    at = 0
    for pair in range(paths.run_offsets.size - 1):
        q_start = paths.query_ends[pair] - _residues(paths, pair, 1)
        t_start = paths.target_ends[pair] - _residues(paths, pair, 2)
        q_last = paths.query_offsets[pair] + paths.query_ends[pair]
        t_last = paths.target_offsets[pair] + paths.target_ends[pair]
        if q_start < 0 or t_start < 0 or q_last > paths.query.size or t_last > paths.target.size:
            return pair
        out.counts[pair, 0] = q_start
        out.counts[pair, 1] = t_start
        at = _describe(paths, out, pair, at)
        out.bounds[pair + 1] = at
    return -1
