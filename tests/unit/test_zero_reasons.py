"""Every probability of zero has the first reason that holds, as the reasons are worded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.examples import often
from support.recombination import small_model

from plait.vdj.model import PGEN_STATUSES, GenerationProbability, RecombinationModel
from plait.vdj.model.junctions import encode_texts
from plait.vdj.model.pgen import ZERO_REASONS

Words = Sequence[Sequence[str]]


def alike(word: str, text: str) -> int:
    """How many letters both have in common from the beginning."""
    size = 0
    while size < min(len(word), len(text)) and word[size] == text[size]:
        size += 1
    return size


def begins_alike(words: Words, text: str) -> int:
    """The same of all that the words say."""
    at = 0
    for some in words:
        size = max(alike(word, text[at:]) for word in some)
        at += size
        if size < len(some[0]):
            break
    return at


def longest_part(words: Words, text: str, deletions: np.ndarray) -> int:
    """Length of the longest part that a gene can be cut to, and the words begin with; 0 for none."""
    kept = range(1, begins_alike(words, text) + 1)
    possible = [k for k in kept if len(text) - k < deletions.size and deletions[len(text) - k] > 0]
    return max(possible, default=0)


def reason(model: RecombinationModel, words: Words, v: Sequence[int], j: Sequence[int]) -> str:
    """The first reason that holds."""
    p_dj = model.p_dj.sum(axis=1)
    v, j = [k for k in v if model.p_v[k] > 0], [k for k in j if p_dj[:, k].max() > 0]
    if not v or not j:
        return "j_never_chosen" if v else "v_never_chosen"
    if len(p_dj) > 1 and not p_dj[np.ix_(v, j)].any():
        return "genes_never_together"
    back = [[w[::-1] for w in some] for some in reversed(words)]
    kept_v = max(longest_part(words, model.extended("V", k), model.p_v_deletions[k]) for k in v)
    kept_j = max(longest_part(back, model.extended("J", k)[::-1], model.p_j_deletions[k]) for k in j)
    if not kept_v or not kept_j:
        return "j_not_matching" if kept_v else "v_not_matching"
    most = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))
    gap = sum(len(some[0]) for some in words) - kept_v - kept_j
    return "too_many_insertions" if gap > most else "no_scenario"


def texts_of(kind: str, rng: np.random.Generator, n: int) -> list[str]:
    tokens = {
        "nt": list("ACGTRN"),
        "aa": list("ACDEFGHIKLMNPQRSTVWYBZX*"),
        "motif": [".", "A", "T", "[TS]", "[HPQ]", "L"],
    }[kind]
    weight = np.array([6.0] * 4 + [1] * 2) if kind == "nt" else np.ones(len(tokens))
    sizes = rng.integers(6, 21, n) if kind == "nt" else rng.integers(2, 8, n)
    found = ["".join(rng.choice(tokens, size, p=weight / weight.sum())) for size in sizes]
    if kind == "nt":
        found[: n // 2] = ["AC" + text + "GC" for text in found[: n // 2]]
    return found


def genes_of(engine: GenerationProbability, segment: str, calls: Any) -> Callable[[int], tuple[int, ...]]:
    """Which genes are meant in each row of a column; without one all functional genes."""
    given = engine._encoder.calls[segment].read(calls, 0 if calls is None else len(calls))
    return lambda row: given.genes[0 if calls is None else int(given.codes[row])]


@pytest.mark.parametrize("kind", often(1, ["nt", "aa", "motif"]))
def test_the_first_reason_that_holds(kind: str) -> None:
    seen = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = small_model(seed, d=seed % 2 == 0)
        engine = GenerationProbability(model, threads=1)
        texts = texts_of(kind, rng, 60)
        calls = [
            rng.choice([genes[0].name, genes[1].name, f"{genes[0].name},{genes[1].name}"], 60).tolist()
            for genes in (model.v, model.j)
        ]
        encoded = encode_texts(pa.array(texts), kind)
        for v_call, j_call in ((None, None), calls, (calls[0], None)):
            found = engine.compute(texts, v_call, j_call, kind=kind)
            v, j = genes_of(engine, "v", v_call), genes_of(engine, "j", j_call)
            for row in np.flatnonzero(found.pgen == 0).tolist():
                part = slice(encoded.start[row], encoded.start[row] + encoded.length[row])
                words = [encoded.words[code] for code in encoded.codes[part].tolist()]
                expected = reason(model, words, v(row), j(row))
                assert PGEN_STATUSES[found.status[row]] == expected, (seed, texts[row])
                seen.add(expected)
    assert seen >= {"v_not_matching", "j_not_matching", "too_many_insertions"}
    assert seen <= set(ZERO_REASONS)


def test_many_calls_and_many_motifs() -> None:
    model = small_model(3)
    engine = GenerationProbability(model, threads=1)
    # More kinds of motifs than automata are kept, one after the other and again.
    for _ in range(2):
        for letter in "ACDEFGHIKLM":
            found = engine.compute([f"W[{letter}W]W"], kind="motif")
            assert PGEN_STATUSES[found.status[0]] == "v_not_matching"
