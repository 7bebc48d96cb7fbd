"""Traceback: from the last cell of an alignment to its first, and its columns and CIGAR."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.pairs.gaps import choices
from plait.lang.compile import by_type, by_type_of, shared
from plait.lang.lanes import mask_bits

#: Operations of an alignment: two residues together, a residue of the target alone, one of the query alone.
DIAGONAL = 0
DELETION = 1
INSERTION = 2

#: States of a walk: in a cell; about to write a gap's residue (`DELETION`, `INSERTION`); about to see whether
#: the gap was opened here; at the start of the alignment.
MAIN = 0
CHECK_DELETION = 3
CHECK_INSERTION = 4
DONE = 5


class ScoresOnly(NamedTuple):
    """Keep nothing but scores."""


class KeepChoices(NamedTuple):
    """What was best in each cell: ``bits[at, row, choice]``, bit k for lane k."""


def _note_nothing(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    return


def _note_choices(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    p, alg = step
    diag, e, s, h, e_next, f_next = state
    by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
    bits[at, row, 0] = mask_bits(by_diag)
    bits[at, row, 1] = mask_bits(by_e)
    bits[at, row, 2] = mask_bits(e_opened)
    bits[at, row, 3] = mask_bits(f_opened)


def _never(keep: Any) -> bool:
    return False


def _always(keep: Any) -> bool:
    return True


#: Whether choices are kept.
keeps = by_type_of({ScoresOnly: _never, KeepChoices: _always})

#: Note the choices of a row of every lane in step or column `at`, if they are wanted.
note = by_type_of({ScoresOnly: _note_nothing, KeepChoices: _note_choices})


class Cursor(NamedTuple):
    """Where a walk is: fields of one int64 array, shape (5,), changed in place.

    `row` and `column` are the cell, -1 the border; `value` is that of the cell in `state`; `runs` the number
    written.
    """

    row: int = 0
    column: int = 1
    state: int = 2
    value: int = 3
    runs: int = 4


class Costs(NamedTuple):
    """Scores of residues, costs of gaps, and whether an alignment begins where its value is 0.

    `query` and `target` are codes, (rows,) and (columns,); `matrix` is (codes, codes); gap costs are not
    negative.
    """

    query: Any
    target: Any
    matrix: Any
    gap_open: Any
    gap_extend: Any
    local: Any


class StripeBits(NamedTuple):
    """Choices kept by `plait.dp.pairs.diagonals` for a region.

    `row` and `column` are its first cell; `stretch` is in columns, `width` in lanes.
    """

    row: Any
    column: Any
    stretch: Any
    width: Any

    @staticmethod
    def was_chosen(place: StripeBits, bits: Any, row: Any, column: Any, choice: Any) -> Any:
        r = row - place.row
        c = column - place.column
        within = r % (4 * place.width)
        k = within // 4
        step = c % place.stretch + k
        word = bits[r // (4 * place.width), c // place.stretch, step, within % 4, choice]
        return (int(word) >> k) & 1


class LaneBits(NamedTuple):
    """Choices kept by `plait.dp.pairs.inter_sequence`, of the target in one lane.

    The first cell, `row` and `column`, is 0 and 0.
    """

    row: Any
    column: Any
    lane: Any

    @staticmethod
    def was_chosen(place: LaneBits, bits: Any, row: Any, column: Any, choice: Any) -> Any:
        return (int(bits[column, row, choice]) >> place.lane) & 1


@by_type
def was_chosen(place: Any, bits: Any, row: Any, column: Any, choice: Any) -> Any:
    """Whether a choice was optimal: 0 the diagonal, 1 the deletion, 2 and 3 opening of what is handed on."""


@shared
def _write(runs: Any, cursor: Any, operation: int, length: int) -> None:
    last = cursor[4] - 1
    if last >= 0 and runs[last, 0] == operation:
        runs[last, 1] += length
    else:
        runs[last + 1, 0] = operation
        runs[last + 1, 1] = length
        cursor[4] = last + 2


@shared
def _leave_cell(place: Any, bits: Any, costs: Any, cursor: Any, runs: Any) -> None:
    row, column = cursor[0], cursor[1]
    if costs.local and cursor[3] == 0:
        cursor[2] = 5
    elif was_chosen(place, bits, row, column, 0):
        cursor[3] -= costs.matrix[costs.query[row], costs.target[column]]
        cursor[0] = row - 1
        cursor[1] = column - 1
        _write(runs, cursor, 0, 1)
    elif was_chosen(place, bits, row, column, 1):
        cursor[2] = 1
    else:
        cursor[2] = 2


@shared
def _check_gap(place: Any, bits: Any, costs: Any, cursor: Any) -> None:
    """Go on in the cell if the gap was opened in it, else in the gap."""
    operation = cursor[2] - 2
    if was_chosen(place, bits, cursor[0], cursor[1], operation + 1):
        cursor[2] = 0
        cursor[3] += costs.gap_open
    else:
        cursor[2] = operation
        cursor[3] += costs.gap_extend


@shared
def walk(place: Any, bits: Any, costs: Any, cursor: Any, runs: Any) -> None:
    """Walk back until the alignment begins or the region is left.

    `place` is `StripeBits` or `LaneBits`, `bits` what the sweep kept, `costs` those of the whole matrix.
    Changed in place: `cursor`, int64 (5,), see `Cursor`, and `runs`, (operation, length), last run first,
    (enough, 2).
    """
    while cursor[0] >= place.row and cursor[1] >= place.column and cursor[2] != 5:
        state = cursor[2]
        if state == 0:
            _leave_cell(place, bits, costs, cursor, runs)
        elif state == 1:
            _write(runs, cursor, 1, 1)
            cursor[1] -= 1
            cursor[2] = 3
        elif state == 2:
            _write(runs, cursor, 2, 1)
            cursor[0] -= 1
            cursor[2] = 4
        else:
            _check_gap(place, bits, costs, cursor)


@shared
def close_at_border(free_query: bool, free_target: bool, cursor: Any, runs: Any) -> None:
    """Finish a walk that has come to the border: what is left of a sequence is a gap, unless that is free.

    `free_query`, `free_target`: leaving the start of that sequence out costs nothing. `cursor` and `runs` are
    changed in place, as by `walk`.
    """
    if cursor[2] == 5:
        return
    if cursor[0] >= 0 and not free_query:
        _write(runs, cursor, 2, cursor[0] + 1)
        cursor[0] = -1
    if cursor[1] >= 0 and not free_target:
        _write(runs, cursor, 1, cursor[1] + 1)
        cursor[1] = -1
    cursor[2] = 5


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
    are the offsets; `run` (2,) is operation and length of the run that is being written.
    """

    counts: Any
    cigars: Any
    bounds: Any
    run: Any


@shared
def put_run(letters: Any, at: int, length: int, letter: int) -> int:
    """Write a run unless it is empty; returns where the next one begins."""
    if length == 0:
        return at
    digits = 1
    power = 10
    while power <= length:
        digits += 1
        power *= 10
    for k in range(digits):
        letters[at + digits - 1 - k] = 48 + length % 10
        length //= 10
    letters[at + digits] = letter
    return at + digits + 1


@shared
def _write_run(out: Any, at: int) -> int:
    """Write the run under way; returns where the next one begins."""
    after = put_run(out.cigars, at, out.run[1], out.run[0])
    out.run[1] = 0
    return after


@shared
def _continue(out: Any, at: int, letter: int, length: int) -> int:
    """Put columns of one kind at the end of a CIGAR."""
    if out.run[0] != letter:
        at = _write_run(out, at)
        out.run[0] = letter
    out.run[1] += length
    return at


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
    out.run[0] = 0
    out.run[1] = 0
    similar = 0
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
                at = _continue(out, at, 61 if a == b else 88, 1)
            counts[2] += matches
            counts[3] += length - matches
            q += length
            t += length
        elif length > 0:
            letter = 68 if operation == 1 else 73
            counts[5] += length
            counts[6] += 1 if out.run[0] != letter else 0
            at = _continue(out, at, letter, length)
            q += 0 if operation == 1 else length
            t += length if operation == 1 else 0
    counts[4] = similar
    return _write_run(out, at)


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
