"""Near neighbours: against all pairs one by one, whatever the threads, the parts and the order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples, often

from plait.errors import InvalidInput, Unsupported
from plait.run.executor import LocalExecutor
from plait.vdj.repertoires import neighbours
from plait.vdj.repertoires.neighbours import clusters, matches, pairs, single_linkage

Pairs = list[tuple[int, int]]
#: Few letters and lengths, so that near ones are frequent.
TEXTS = st.lists(st.text("AC", max_size=6) | st.text("ACGT", min_size=3, max_size=5), max_size=24)


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return row[-1]


def mismatches(a: str, b: str) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True)) if len(a) == len(b) else 1 << 20


DISTANCES = {"mismatches": mismatches, "edits": edit_distance}


def plainly(texts: list[str], groups: list[int], kind: str, limit: int) -> Pairs:
    near = DISTANCES[kind]
    n = range(len(texts))
    return [
        (i, j) for i in n for j in n[i + 1 :] if groups[i] == groups[j] and near(texts[i], texts[j]) <= limit
    ]


def listed(found: tuple[Any, Any]) -> Pairs:
    i, j = found
    assert i.dtype == j.dtype == np.int64
    return list(zip(i.tolist(), j.tolist(), strict=True))


def components(n: int, found: Pairs) -> list[int]:
    label = list(range(n))
    for _ in range(n):
        for i, j in found:
            label[i] = label[j] = min(label[i], label[j])
    order = {first: k for k, first in enumerate(dict.fromkeys(label))}
    return [order[first] for first in label]


@pytest.mark.parametrize("kind", ["mismatches", "edits"])
@given(texts=TEXTS, limit=st.integers(0, 3), data=st.data())
@examples(60)
def test_all_pairs(kind: str, texts: list[str], limit: int, data: st.DataObject) -> None:
    n = len(texts)
    groups = data.draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    expected = plainly(texts, groups, kind, limit)
    near: Any = {kind: limit}
    assert listed(pairs(texts, groups, **near)) == expected
    labels = clusters(texts, groups, **near).tolist()
    assert labels == components(n, expected)
    i, j = np.array(expected, np.int64).reshape(-1, 2).T
    assert single_linkage(n, i.copy(), j.copy()).tolist() == labels
    cut = data.draw(st.integers(0, n))
    between = [(i, j - cut) for i, j in expected if i < cut <= j]
    assert listed(matches(texts[:cut], groups[:cut], texts[cut:], groups[cut:], **near)) == between


@pytest.mark.slow
@pytest.mark.parametrize("kind", often(1, ["edits", "mismatches"]))
@pytest.mark.parametrize("limit", often(1, [1, 2]))
def test_threads_parts_and_order(kind: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    texts = ["".join(rng.choice(list("ACDE"), size)) for size in rng.integers(5, 8, 400)]
    near: Any = {kind: limit}
    expected = pairs(texts, executor=LocalExecutor(1), **near)
    assert listed(expected) == plainly(texts, [0] * len(texts), kind, limit)
    monkeypatch.setattr(neighbours, "_MOST_ENTRIES", 100)
    monkeypatch.setattr(neighbours, "_BUFFER", 7)
    for threads in (1, 3):
        found = pairs(pa.chunked_array([texts[:9], texts[9:]]), executor=LocalExecutor(threads), **near)
        assert np.array_equal(found, expected)
    order = rng.permutation(len(texts))
    i, j = pairs([texts[k] for k in order], **near)
    turned = np.sort(np.stack([order[i], order[j]]), axis=0)
    assert sorted(turned.T.tolist()) == np.stack(expected).T.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", often(1, ["edits", "mismatches"]))
def test_texts_longer_than_sets_of_blocks(kind: str) -> None:
    rng = np.random.default_rng(6)
    texts = ["".join(rng.choice(list("ACGT"), 80))]
    for k in range(12):
        at = int(rng.integers(80))
        texts.append(texts[k // 3][:at] + "N" + texts[k // 3][at + 1 :])
    texts += [texts[0][1:], texts[0] + "A", texts[0][:50] + texts[0][51:] + "C"]
    for limit in (1, 2, 8 if kind == "mismatches" else 0):
        near: Any = {kind: limit}
        assert listed(pairs(texts, **near)) == plainly(texts, [0] * len(texts), kind, limit)


def test_equal_texts_are_no_work_for_clusters() -> None:
    # All pairs of them would be 2 * 10^10.
    texts = ["CASSF"] * 200_000 + ["CASTF", "CATTF", "CAT"]
    assert np.array_equal(clusters(texts, mismatches=1), [0] * 200_002 + [1])


def test_more_pairs_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_MOST_OF_PASS", "_MOST_PAIRS"):
        with monkeypatch.context() as patch:
            patch.setattr(neighbours, name, 40)
            assert len(pairs(["CASSF"] * 9, mismatches=1)[0]) == 36
            with pytest.raises(Unsupported, match="do not fit into memory"):
                pairs(["CASSF"] * 10, mismatches=1)


@pytest.mark.parametrize(
    ("texts", "words", "message"),
    [
        (["A"], {}, "found none of them, expected one of them"),
        (["A"], {"mismatches": 1, "edits": 1}, "found both"),
        (["A"], {"mismatches": 9}, "mismatches.*9"),
        (["A"], {"edits": 4}, "edits.*4"),
        (["A", None], {"edits": 1}, "row 1"),
        (["A", "B"], {"edits": 1, "groups": [1]}, "groups"),
        (["A", "B"], {"edits": 1, "groups": [1.0, 2.0]}, "groups"),
        ("AB", {"edits": 1}, "one text"),
    ],
)
def test_bad_requests(texts: Any, words: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pairs(texts, **words)
