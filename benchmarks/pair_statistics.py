"""Identity and length of alignments: from their paths, carried through the recurrence, and by parasail.

    python benchmarks/pair_statistics.py

One protein against many that are related to it in half of the cases, end to end, of one thread; a cell is
one residue of the query against one of a target, and figures are thousand million cells a second of
processor time, the best of the repeats. ``align_many`` makes whole alignments with their CIGARs.
``carried`` is a kernel of the same order, in lanes of 16 bits, that keeps no choices: three numbers, score,
matches and columns, stand in each state, and what was best for the score picks the other two, by the rules
of the traceback. Its answers are checked to be those of the alignments, and parasail's scores; parasail
takes other ones of several best alignments, so that its matches may differ. Peer: ``pip install parasail``.

Then lists of pairs that are related, each query another one, aligned from strings to CIGARs, in microseconds
a pair, beside the fastest of parasail's three kinds of kernels with its CIGARs; scores are checked to be
equal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import parasail
from commands import processor_name
from numpy.typing import NDArray

from plait.align import align_pairs
from plait.align.aligner import make_aligner
from plait.align.batches import block_query
from plait.align.scoring import make_scoring
from plait.dp.pairs.inter_sequence import PAD, block_setup, lane_rows
from plait.lang.compile import kernel, shared
from plait.lang.lanes import (
    add_saturating,
    equal,
    load,
    lookup,
    maximum,
    select,
    splat,
    store,
    widen,
    width_of,
)

OPEN, EXTEND = 11, 1
LETTERS = "ARNDCQEGHILKMFPSTWYV"
#: Residues of the query, and targets.
SIZES = ((100, 8000), (350, 640), (2000, 32))


@shared
def visit(costs: Any, diag: Any, e: Any, f: Any, s: Any, same: Any) -> Any:
    """A cell: score, matches and columns of it, and of what it hands to the right and down."""
    opening, prolonging, one = costs
    paired = add_saturating(diag[0], s)
    h = maximum(maximum(paired, f[0]), e[0])
    by_diag, by_e = equal(h, paired), equal(h, e[0])
    matches = select(by_diag, diag[1] + same, select(by_e, e[1], f[1]))
    columns = select(by_diag, diag[2] + one, select(by_e, e[2], f[2]))
    opened = add_saturating(h, opening)
    right = maximum(add_saturating(e[0], prolonging), opened)
    down = maximum(add_saturating(f[0], prolonging), opened)
    e_opened, f_opened = equal(right, opened), equal(down, opened)
    return (
        (h, matches, columns),
        (right, select(e_opened, matches, e[1]), select(e_opened, columns, e[2]) + one),
        (down, select(f_opened, matches, f[1]), select(f_opened, columns, f[2]) + one),
    )


@shared
def load_three(lanes: Any, rows: Any, row: int) -> Any:
    """Score, matches and columns of a row."""
    width = width_of(lanes)
    return load(lanes, rows, row, 0), load(lanes, rows, row, width), load(lanes, rows, row, 2 * width)


@shared
def store_three(lanes: Any, rows: Any, row: int, value: Any) -> None:
    """Keep them."""
    width = width_of(lanes)
    store(lanes, rows, row, 0, value[0])
    store(lanes, rows, row, width, value[1])
    store(lanes, rows, row, 2 * width, value[2])


@shared
def carried(
    lanes: Any, query: Any, tables: Any, packed: Any, lengths: Any, border: Any, state: Any, out: Any
) -> None:
    """Score, matches and columns of a query with targets side by side; two columns are visited together.

    `border` is that of both sides, `state` are columns of ``h`` and ``e`` and the scores of two columns.
    """
    scores, sames = tables
    h, e_column, looked_up = state
    number, width = out.dtype.type, width_of(lanes)
    zero, one = splat(lanes, number(0)), splat(lanes, number(1))
    costs = (splat(lanes, number(-OPEN)), splat(lanes, number(-EXTEND)), one)
    for row in range(query.size):
        gap = splat(lanes, number(row + 1))
        left = splat(lanes, border[row + 1])
        store_three(lanes, h, row, (left, zero, gap))
        store_three(lanes, e_column, row, (add_saturating(left, costs[0]), zero, gap + one))
    remaining = load(lanes, lengths, 0, 0)
    result = (zero, zero, zero)
    for at in range(0, packed.shape[0], 2):
        for c in range(2):
            residues = load(lanes, packed, at + c, 0)
            for letter in range(scores.shape[0]):
                found = lookup(lanes, scores, letter, residues)
                store(lanes, looked_up, letter, 2 * c * width, widen(zero, found))
                found = lookup(lanes, sames, letter, residues)
                store(lanes, looked_up, letter, (2 * c + 1) * width, widen(zero, found))
        before = (splat(lanes, border[at]), zero, splat(lanes, number(at)))
        x = (splat(lanes, border[at + 1]), zero, splat(lanes, number(at + 1)))
        y = (splat(lanes, border[at + 2]), zero, splat(lanes, number(at + 2)))
        f0 = (add_saturating(x[0], costs[0]), zero, x[2] + one)
        f1 = (add_saturating(y[0], costs[0]), zero, y[2] + one)
        for row in range(query.size):
            letter = query[row]
            left = load_three(lanes, h, row)
            e = load_three(lanes, e_column, row)
            s, same = load(lanes, looked_up, letter, 0), load(lanes, looked_up, letter, width)
            above = x
            x, e, f0 = visit(costs, before, e, f0, s, same)
            s, same = load(lanes, looked_up, letter, 2 * width), load(lanes, looked_up, letter, 3 * width)
            y, e, f1 = visit(costs, above, e, f1, s, same)
            store_three(lanes, h, row, y)
            store_three(lanes, e_column, row, e)
            before = left
        for value in (x, y):
            remaining = remaining - one
            last = equal(remaining, zero)
            result = (
                select(last, value[0], result[0]),
                select(last, value[1], result[1]),
                select(last, value[2], result[2]),
            )
    store_three(lanes, out, 0, result)


carried_kernel = kernel(carried)


def carried_call(aligner: Any, query: NDArray[np.uint8], targets: Any) -> Callable[[], NDArray[np.int64]]:
    """A call that gives score, matches and columns, shape (3, targets), with everything laid out before."""
    setup = block_setup(block_query(query, aligner.scoring, aligner.free), int(targets.sizes.max()), np.int16)
    assert setup is not None
    lanes, width = setup.lanes, setup.lanes.width
    sames = np.zeros(setup.table.shape, np.int8)
    sames[np.arange(len(sames)), np.unique(query)] = 1
    longest = max(query.size, int(targets.sizes.max()) + 2)
    border = np.append(0, -OPEN - EXTEND * np.arange(longest)).astype(np.int16)
    state = (
        lane_rows(query.size, 3 * width, np.int16),
        lane_rows(query.size, 3 * width, np.int16),
        lane_rows(len(sames), 4 * width, np.int16),
    )
    order, groups = np.argsort(-targets.sizes, kind="stable"), []
    for first in range(0, order.size, width):
        own = order[first : first + width]
        packed = np.full((-(-int(targets.sizes[own[0]]) // 2) * 2, width), PAD, np.uint8)
        lengths = np.zeros((1, width), np.int16)
        for lane, k in enumerate(own.tolist()):
            packed[: targets[k].size, lane], lengths[0, lane] = targets[k], targets[k].size
        groups.append((own, packed, lengths))
    out = np.zeros((1, 3 * width), np.int16)

    def call() -> NDArray[np.int64]:
        found = np.zeros((3, order.size), np.int64)
        for own, packed, lengths in groups:
            carried_kernel(
                lanes, setup.query, (setup.table, sames), packed, lengths, border, state, out
            )  # fmt: skip
            found[:, own] = out.reshape(3, width)[:, : own.size]
        return found

    return call


def best(call: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Processor seconds of the fastest call, and what the last one gave."""
    fastest, result = float("inf"), call()
    for _ in range(repeat):
        start = time.process_time()
        result = call()
        fastest = min(fastest, time.process_time() - start)
    return fastest, result


def measure(size: int, count: int, rng: np.random.Generator) -> None:
    """A line of one size."""

    def drawn(residues: int) -> list[str]:
        return rng.choice(list(LETTERS), residues).tolist()

    query, others = drawn(size), []
    for k in range(count):
        residues = int(rng.integers(4 * size // 7, 10 * size // 7))
        letters = query[:residues] if k % 2 else drawn(residues)
        changed = np.flatnonzero(rng.random(len(letters)) < 0.3)
        for place, letter in zip(changed.tolist(), drawn(changed.size), strict=True):
            letters[place] = letter
        for place in sorted(rng.choice(len(letters), 8, replace=False).tolist(), reverse=True):
            del letters[place]
        others.append("".join(letters))
    aligner = make_aligner(make_scoring(None, OPEN, EXTEND, kind="protein"), threads=1, device="cpu")
    own, targets = aligner.scoring.encode("".join(query)), aligner.encode(others, "target")
    cells = size * int(targets.sizes.sum()) / 1e9
    seconds, found = best(lambda: aligner.align_many(own, targets), 5)
    three, answers = best(carried_call(aligner, own, targets), 5)
    scores, _ = best(lambda: aligner.score_many(own, targets), 5)
    assert np.array_equal(answers, [found.score, found.matches, found.length])
    peers = {}
    for order in ("striped", "scan"):
        theirs: Any = getattr(parasail, f"nw_stats_{order}_16")
        peers[order] = best(
            lambda: [theirs("".join(query), other, OPEN, EXTEND, parasail.blosum62) for other in others],  # noqa: B023
            2,
        )
        assert [one.score for one in peers[order][1]] == found.score.tolist()
    peer = min(seconds for seconds, _ in peers.values())
    same = np.mean([one.matches for one in peers["scan"][1]] == found.matches)
    print(
        f"{size:5} aa x {count:5}: score_many {cells / scores:6.2f}  align_many {cells / seconds:6.2f}  "
        f"carried {cells / three:6.2f}  parasail stats {cells / peer:6.2f} "
        f"(align_many {peer / seconds:.1f} x; {100 * same:.0f} % with as many matches)",
        flush=True,
    )


def mutated(letters: list[str], alphabet: str, rng: np.random.Generator) -> str:
    """A copy with errors in 15 % of its letters: replaced, followed by another one, or left out."""
    kinds, drawn = rng.random(len(letters)), rng.choice(list(alphabet), len(letters))
    parts = []
    for letter, kind, other in zip(letters, kinds.tolist(), drawn.tolist(), strict=True):
        parts += (
            [other] if kind < 0.05 else [letter, other] if kind < 0.1 else [letter] if kind >= 0.15 else []
        )
    return "".join(parts)


def measure_list(alphabet: str, size: int, count: int, rng: np.random.Generator) -> None:
    """Lines of lists of one size."""
    drawn = [rng.choice(list(alphabet), size).tolist() for _ in range(count)]
    queries, targets = ["".join(own) for own in drawn], [mutated(own, alphabet, rng) for own in drawn]
    dna = len(alphabet) == 4
    costs = (7, 2) if dna else (OPEN, EXTEND)
    matrix = parasail.matrix_create("ACGT", 2, -3) if dna else parasail.blosum62
    for mode, word in (("global", "nw"), ("local", "sw")):
        how: Any = {"mode": mode, "gap_open": costs[0], "gap_extend": costs[1], "threads": 1}
        how["kind"] = "dna" if dna else "protein"
        ours, found = best(lambda: align_pairs(queries, targets, **how), 5)  # noqa: B023
        cigars, _ = best(lambda: found.cigars, 2)  # noqa: B023
        peers = {}
        for order in ("striped", "scan", "diag"):
            trace: Any = getattr(parasail, f"{word}_trace_{order}_16")

            def theirs() -> list[Any]:
                found = []
                for query, target in zip(queries, targets, strict=True):
                    # Held all together, their tables would take more time than they are worth.
                    one = trace(query, target, *costs, matrix)  # noqa: B023
                    found.append((one.score, one.cigar.decode))
                return found

            peers[order], answers = best(theirs, 2)
            assert [score for score, _ in answers] == found.score.tolist()
        order = min(peers, key=lambda name: peers[name])
        seconds = ours + cigars
        print(
            f"{count:5} pairs x {size:4} {how['kind']:8} {mode:7} with CIGAR {1e6 * seconds / count:8.1f} "
            f"us, parasail {order} {1e6 * peers[order] / count:8.1f} us ({peers[order] / seconds:.2f} x)",
            flush=True,
        )


if __name__ == "__main__":
    print(processor_name(), flush=True)
    for length, number in SIZES:
        measure(length, number, np.random.default_rng(length))
    # Full groups of lanes, and some of 100 pairs that are left over.
    for letters, length, number in (
        ("ACGT", 150, 1500), ("ACGT", 1000, 100), ("ACGT", 1000, 320), (LETTERS, 350, 300)
    ):  # fmt: skip
        measure_list(letters, length, number, np.random.default_rng(length))
