"""New alleles do not depend on the order of the rows, on batches, or on which strand is written."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.allele_simulation import Individual, changed_allele, simulate_individual, truth_rows

from plait.alphabets import reverse_complement
from plait.vdj.alleles import sites as clonotype_sample
from plait.vdj.alleles.evidence import (
    UNKNOWN,
    AlleleEvidence,
    Differing,
    Spans,
    count_differing,
    count_differing_kernel,
    list_differing,
    list_differing_kernel,
)
from plait.vdj.alleles.new_alleles import NewAlleles, new_alleles_of
from plait.vdj.germline import load_germline

MOUSE = load_germline("mouse_trb")


@cache
def rows() -> pa.RecordBatch:
    """Reads with a new allele, a mutated gene, and rows of other kinds."""
    own = MOUSE.v[0]
    new = changed_allele(own, {(own.anchor or 0) - 9: "T", (own.anchor or 0) - 40: "A"})
    individual = Individual(
        germline=MOUSE, hidden={own.name: [new]}, clonotypes=40, genes=(own.name, MOUSE.v[3].name)
    )
    table = truth_rows(simulate_individual(individual, seed=8), MOUSE).to_pylist()
    for k in range(0, len(table), 17):
        table[k]["junction"] = ""
    for k in range(1, len(table), 19):
        table[k]["sequence"] = "ACGT" * 40
    for k in range(2, len(table), 5):
        table[k]["duplicate_count"] = k
    return pa.RecordBatch.from_pylist(table)


def found_in(table: pa.RecordBatch, edges: list[int], most: int) -> NewAlleles:
    evidence = AlleleEvidence(MOUSE, most_clonotypes=most)
    cuts = [0, *sorted(edge % (table.num_rows + 1) for edge in edges), table.num_rows]
    for first, last in pairwise(cuts):
        evidence.add(table.slice(first, last - first))
    return new_alleles_of(evidence)


@pytest.mark.slow
@given(
    seed=st.integers(0, 1 << 30),
    edges=st.lists(st.integers(0, 1000), max_size=5),
    most=st.sampled_from([10, 25, 3000]),
    waiting=st.sampled_from([1, 1 << 18]),
)
def test_order_and_batches_do_not_matter(seed: int, edges: list[int], most: int, waiting: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        plain = found_in(rows(), [], most)
        patched.setattr(clonotype_sample, "_FEWEST_WAITING", waiting)
        order = np.random.default_rng(seed).permutation(rows().num_rows)
        other = found_in(rows().take(pa.array(order)), edges, most)
    assert other == plain
    assert (most == 3000) <= (plain.candidates["status"].to_pylist() == ["candidate"])


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_the_written_strand_does_not_matter(choices: list[bool]) -> None:
    table = rows().to_pylist()
    for k, row in enumerate(table):
        if choices[k % 4]:
            row["sequence"], row["rev_comp"] = reverse_complement(row["sequence"]), not row["rev_comp"]
    turned = found_in(pa.RecordBatch.from_pylist(table), [], 3000)
    plain = found_in(rows(), [], 3000)
    told = ("forward_reads", "reverse_reads")
    assert turned.candidates.drop(told) == plain.candidates.drop(told)


@pytest.mark.interpreted
@given(
    texts=st.lists(
        st.tuples(st.lists(st.integers(0, 4), min_size=4, max_size=9), st.booleans(), st.integers(0, 3)),
        max_size=5,
    ),
    entry=st.lists(st.integers(0, 4), min_size=12, max_size=12),
)
def test_spans_are_compared_symbol_by_symbol(
    texts: list[tuple[list[int], bool, int]], entry: list[int]
) -> None:
    lengths = [min(len(symbols) - at, 12 - at) for symbols, _, at in texts]
    spans = Spans(
        np.array([s for symbols, _, _ in texts for s in symbols], np.int8),
        np.array(entry, np.int8),
        np.cumsum([0, *(len(symbols) for symbols, _, _ in texts)], dtype=np.int64),
        np.array([mirrored for _, mirrored, _ in texts], np.bool_),
        np.array([at for _, _, at in texts], np.int64),
        np.array([at for _, _, at in texts], np.int64),
        np.array(lengths, np.int64),
    )
    expected, counts = [], []
    for k, (symbols, mirrored, at) in enumerate(texts):
        read = [s if s == UNKNOWN else 3 - s for s in reversed(symbols)] if mirrored else symbols
        pairs = list(zip(read[at:], entry[at:], strict=False))
        expected += [(k, p, a) for p, (a, b) in enumerate(pairs) if a != b and b != UNKNOWN]
        counts.append(sum(a != b and UNKNOWN not in (a, b) for a, b in pairs[:3]))
    room = sum(lengths)
    out = Differing(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int8))
    n = list_differing_kernel(spans, out)
    assert list(zip(*(column[:n].tolist() for column in out), strict=True)) == expected
    found = np.zeros(len(texts), np.int64)
    count_differing_kernel(spans, 3, found)
    assert found.tolist() == counts
    assert [count_differing(spans, k, 3) for k in range(len(texts))] == counts
    at = 0
    for k in range(len(texts)):
        at = list_differing(spans, k, out, at)
    assert at == len(expected)
