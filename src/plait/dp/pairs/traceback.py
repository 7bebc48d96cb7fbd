"""Traceback: from the last cell of an alignment to its first."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import by_type, shared

# Where a walk is stands in one int64 array, shape (5,), changed in place: row and column of a cell, -1 at the
# border; a state; the value of the cell in it; the number of runs written. States: 0 in a cell; 1 or 2 about
# to write a residue of a gap, of the target alone (a deletion) or of the query alone (an insertion), as
# operations of an alignment are numbered, of which 0 is two residues together; 3 or 4 about to see whether
# that gap was opened here; 5 at the start of the alignment.
DONE = 5


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
        return (int(word) >> int(k)) & 1


class OctetBits(NamedTuple):
    """Choices of a pair in one of the lanes of `plait.dp.pairs.lists.sweep_beside`.

    Two columns share an octet, four bits of each. The first cell, `row` and `column`, is 0 and 0.
    """

    row: Any
    column: Any
    lane: Any

    @staticmethod
    def was_chosen(place: OctetBits, bits: Any, row: Any, column: Any, choice: Any) -> Any:
        return int(bits[column // 2, row, place.lane]) >> (column % 2 * 4 + choice) & 1


@by_type
def was_chosen(place: Any, bits: Any, row: Any, column: Any, choice: Any) -> Any:
    """Whether a choice was optimal: 0 the diagonal, 1 the deletion, 2 and 3 opening of what is handed on."""


@shared
def write_run(runs: Any, cursor: Any, operation: int, length: int) -> None:
    """Write columns of an alignment behind the run at hand, or as the next one."""
    last = cursor[4] - 1
    if last >= 0 and runs[last, 0] == operation:
        runs[last, 1] += length
    else:
        runs[last + 1, 0] = operation
        runs[last + 1, 1] = length
        cursor[4] = last + 2


@shared
def _leave_cell(place: Any, bits: Any, costs: Any, cursor: Any, runs: Any) -> None:
    """Go along the diagonal as far as it is best, and then begin a gap, or stop."""
    row, column, value = cursor[0], cursor[1], cursor[3]
    inside, begun = True, costs.local and value == 0
    while inside and not begun and was_chosen(place, bits, row, column, 0):
        value -= costs.matrix[costs.query[row], costs.target[column]]
        row -= 1
        column -= 1
        inside = row >= place.row and column >= place.column
        begun = costs.local and value == 0
    if row < cursor[0]:
        write_run(runs, cursor, 0, cursor[0] - row)
    if inside:
        cursor[2] = 5 if begun else 1 if was_chosen(place, bits, row, column, 1) else 2
    cursor[0] = row
    cursor[1] = column
    cursor[3] = value


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

    `place` is one of those above, `bits` what the sweep kept, `costs` those of the whole matrix.
    Changed in place: `cursor`, int64 (5,), and `runs`, (operation, length), last run first, (enough, 2).
    """
    while cursor[0] >= place.row and cursor[1] >= place.column and cursor[2] != 5:
        state = cursor[2]
        if state == 0:
            _leave_cell(place, bits, costs, cursor, runs)
        elif state == 1:
            write_run(runs, cursor, 1, 1)
            cursor[1] -= 1
            cursor[2] = 3
        elif state == 2:
            write_run(runs, cursor, 2, 1)
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
        write_run(runs, cursor, 2, cursor[0] + 1)
        cursor[0] = -1
    if cursor[1] >= 0 and not free_target:
        write_run(runs, cursor, 1, cursor[1] + 1)
        cursor[1] = -1
    cursor[2] = 5


@shared
def walk_whole(
    place: Any, bits: Any, costs: Any, end: Any, free_query: bool, free_target: bool, cursor: Any, runs: Any
) -> None:
    """Walk from `end`, value, row and column of a cell, to the border or wherever the alignment begins."""
    cursor[0] = end[1]
    cursor[1] = end[2]
    cursor[2] = 0
    cursor[3] = end[0]
    cursor[4] = 0
    walk(place, bits, costs, cursor, runs)
    close_at_border(free_query, free_target, cursor, runs)


@shared
def copy_runs(cursor: Any, runs: Any, written: int, out: Any) -> int:
    """Append the runs of a walk, first to last, to `out`, which has `written`; returns their number."""
    count = int(cursor[4])
    for k in range(count):
        out[written + k, 0] = runs[count - 1 - k, 0]
        out[written + k, 1] = runs[count - 1 - k, 1]
    return count
