"""Hash values of texts: the same everywhere, spread evenly."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from plait.formats import sorted_runs as module
from plait.formats.sorted_runs import text_hash


def texts(n: int) -> list[str | None]:
    rng = np.random.default_rng(1)
    found: list[str | None] = ["".join(rng.choice(list("ACGT"), k)) for k in rng.integers(0, 40, n)]
    found[::7] = [None] * len(found[::7])
    return found


def test_equal_texts_only() -> None:
    column = pa.array(texts(3000), pa.large_string())
    values = text_hash(column)
    filled = [text or "" for text in column.to_pylist()]
    of: dict[str, int] = {}
    assert all(
        of.setdefault(text, value) == value for text, value in zip(filled, values.tolist(), strict=True)
    )
    assert len(set(of.values())) == len(of)


def test_pieces_and_slices_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array(texts(500), pa.large_string())
    whole = text_hash(column)
    assert (text_hash(column.slice(100, 250)) == whole[100:350]).all()
    monkeypatch.setattr(module, "_SLICE", 7)
    assert (text_hash(column) == whole).all()
    assert text_hash(column.slice(0, 0)).size == 0


def test_the_same_on_every_machine() -> None:
    # Written down once: rows are dealt out by these values, on many machines for one study.
    values = text_hash(pa.array(["", "TGTGCC", "TRBV13-1"], pa.large_string()))
    assert values.tolist() == [0, 5749670570828349547, 11283800876644275534]


def test_spread() -> None:
    values = text_hash(pa.array([f"TRBV{k}" for k in range(6400)], pa.large_string()))
    assert np.bincount((values % np.uint64(64)).astype(np.int64), minlength=64).min() > 60
