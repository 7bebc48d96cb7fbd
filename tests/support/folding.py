"""Folding with small made-up weights: the recurrence cell by cell, and every structure one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals.launches import filled
from plait.dp.intervals.loops import (
    CLOSING,
    EXTERIOR,
    OWN,
    STEM,
    LoopTables,
    LoopWeights,
    Strands,
    allowed,
    as_stem,
    entry,
    hairpin_weight,
    inward,
    loop_weight,
    pair_type,
)
from plait.folding.energies import OWN_LOOPS
from plait.lang.algebras import choice, extend

LETTERS = "NACGU"
#: Those with a weight of their own.
HAIRPINS = ("CAAAG", "GGAAAC", "CAAAAAAG")
PAIRS = ("", "CG", "GC", "GU", "UG", "AU", "UA")


def pair_types() -> NDArray[np.int8]:
    found = np.zeros((6, 6), np.int8)
    for kind, pair in enumerate(PAIRS):
        if pair:
            found[LETTERS.index(pair[0]), LETTERS.index(pair[1])] = kind
    return found.reshape(-1)


def codes_of(sequence: str) -> NDArray[np.int8]:
    return np.array([LETTERS.index(base) for base in sequence], np.int8)


def weights_of(draw: Any, most: int, never: Any = None) -> LoopWeights:
    """Tables with entries of `draw(shape)`; with a zero (`never`), some loops have weights of their own."""
    tables = LoopTables(
        pair_types(),
        draw((most + 1,)),
        *(draw((31,)) for _ in range(4)),
        draw((OWN,)),
        draw((7, 7)),
        draw((7, 7, 5)),
        draw((7, 7, 5, 5)),
        draw((7, 7, 5, 5, 5)),
        draw((7, 7, 5, 5, 5, 5)),
        draw((7 * 36, 6)),
        draw((7 * 36, 6)),
        draw((1 + len(HAIRPINS),)),
    )
    if never is not None:
        tables.interior[6:8], tables.asymmetry[0] = filled((2,), never), never
    hairpins = [codes_of(hairpin).tolist() for hairpin in HAIRPINS]
    return tables.packed(hairpins, () if never is None else OWN_LOOPS)


def all_alike(value: Any, most: int, never: Any = None) -> LoopWeights:
    """Weights that are all the same."""
    return weights_of(lambda shape: filled(shape, value), most, never)


def structures(sequence: str) -> Iterator[list[tuple[int, int]]]:
    """Pairs of every structure."""

    def from_base(i: int, opened: list[int], pairs: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        if i == len(sequence):
            if not opened:
                yield pairs
            return
        yield from from_base(i + 1, opened, pairs)
        yield from from_base(i + 1, [*opened, i], pairs)
        if opened and i - opened[-1] > 3 and sequence[opened[-1]] + sequence[i] in PAIRS[1:]:
            yield from from_base(i + 1, opened[:-1], [*pairs, (opened[-1], i)])

    yield from from_base(0, [], [])


def has_long_loop(pairs: list[tuple[int, int]]) -> bool:
    """Whether an interior loop has more than 30 bases."""
    return any(
        0 < len(inner) < 2 and inner[0][0] - i + j - inner[0][1] - 2 > 30
        for i, j in pairs
        for inner in [within(pairs, i, j)]
    )


def within(pairs: list[tuple[int, int]], i: int, j: int) -> list[tuple[int, int]]:
    """The pairs directly within one, or within the ends of a sequence."""
    inside = [(p, q) for p, q in pairs if i < p and q < j]
    return [(p, q) for p, q in inside if not any(a < p and q < b for a, b in inside)]


def weight_of(
    pairs: list[tuple[int, int]], rule: Any, alg: Any, weights: LoopWeights, strands: Strands
) -> Any:
    """Weight of one structure, loop by loop."""

    def around(p: int, q: int, column: int) -> Any:
        return as_stem(weights, strands, column, p, q, 0)

    total = alg.one
    outer = within(pairs, -1, strands.longest)
    for p, q in outer:
        total = extend(alg, total, around(p, q, EXTERIOR))
    for _ in range(strands.longest - sum(q - p + 1 for p, q in outer)):
        total = extend(alg, total, rule.outside)
    for i, j in pairs:
        inner = within(pairs, i, j)
        row = inward(strands, pair_type(weights, strands, i, j, 0), i, j, 0)
        if not inner:
            total = extend(alg, total, hairpin_weight(weights, strands, alg, row, i, j, 0))
        elif len(inner) == 1:
            total = extend(alg, total, loop_weight(weights, strands, alg, i, j, *inner[0], 0))
        else:
            total = extend(alg, total, entry(weights, row + CLOSING))
            for p, q in inner:
                total = extend(alg, total, around(p, q, STEM))
            for _ in range(j - i - 1 - sum(q - p + 1 for p, q in inner)):
                total = extend(alg, total, rule.unpaired)
    return total


def cell_by_cell(rule: Any, alg: Any, weights: LoopWeights, strands: Strands) -> tuple[dict[Any, Any], Any]:
    """C of all cells, and X: the recurrence as it is written, each interior loop by itself."""
    n = strands.longest
    closed: dict[Any, Any] = {}
    from_base: list[dict[int, Any]] = [{} for _ in range(n)]
    one: dict[Any, Any] = {}
    two: dict[Any, Any] = {}
    exterior = [alg.one] * (n + 1)

    def add(a: Any, b: Any, c: Any) -> Any:
        return choice(alg, a, extend(alg, b, c))

    for i in range(n - 1, -1, -1):
        exterior[i] = extend(alg, exterior[i + 1], rule.outside)
        stem: dict[int, Any] = {}
        for j in range(i + 4, n):
            kind = pair_type(weights, strands, i, j, 0)
            if kind == 0 or not allowed(strands, i, j, 0):
                continue
            row = inward(strands, kind, i, j, 0)
            value = hairpin_weight(weights, strands, alg, row, i, j, 0)
            for p in range(i + 1, min(i + 32, j - 4)):
                for q, inner in from_base[p].items():
                    if j - 32 + p - i <= q < j:
                        value = add(value, inner, loop_weight(weights, strands, alg, i, j, p, q, 0))
            value = add(value, two.get((i + 1, j - 1), alg.zero), entry(weights, row + CLOSING))
            closed[i, j] = from_base[i][j] = value
            stem[j] = extend(alg, value, as_stem(weights, strands, STEM, i, j, 0))
            behind = extend(alg, as_stem(weights, strands, EXTERIOR, i, j, 0), exterior[j + 1])
            exterior[i] = add(exterior[i], value, behind)
        single = alg.zero
        for j in range(i, n):
            single = add(stem.get(j, alg.zero), single, rule.unpaired)
            split = alg.zero
            for k, value in stem.items():
                if k < j:
                    split = add(split, value, one.get((k + 1, j), alg.zero))
            two[i, j] = add(split, two.get((i + 1, j), alg.zero), rule.unpaired)
            below = extend(alg, one.get((i + 1, j), alg.zero), rule.unpaired)
            one[i, j] = choice(alg, choice(alg, below, split), single)
    return closed, exterior
