"""Overlaps of subjects and tests of conditions: against their definitions, and against scipy."""

from __future__ import annotations

import math
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import InvalidInput, Unsupported
from plait.vdj import SharingSettings, sharing
from plait.vdj.repertoires.overlap import fisher_p
from plait.vdj.repertoires.sharing import share_files

#: Reads of clonotypes in subjects, by chance.
COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=8).filter(
    lambda rows: all(sum(column) for column in zip(*rows, strict=True))
)


def as_rows(counts: list[list[int]], conditions: str = "xxyy") -> pa.Table:
    rows = [
        {
            "junction": "ACGT"[k % 4] * (k + 3),
            "v_call": "V",
            "j_call": "J",
            "subject_id": f"s{s}",
            "duplicate_count": n,
            "state": conditions[s],
        }
        for k, row in enumerate(counts)
        for s, n in enumerate(row)
        if n
    ]
    return pa.Table.from_pylist(rows)


@given(COUNTS)
def test_measures_are_as_defined(counts: list[list[int]]) -> None:
    found = sharing(as_rows(counts), overlap_depth=1).overlaps
    assert found is not None
    of = np.array(counts, float).T
    share, kept = of / of.sum(axis=1, keepdims=True), 1 - (1 - 1 / of.sum(axis=1, keepdims=True)) ** of
    for row, (a, b) in zip(found.to_pylist(), combinations(range(4), 2), strict=True):
        assert (row["subject_a"], row["subject_b"]) == (f"s{a}", f"s{b}")
        both, any_of = ((of[a] > 0) & (of[b] > 0)).sum(), ((of[a] > 0) | (of[b] > 0)).sum()
        assert (row["shared"], row["clonotypes_a"], row["depth"]) == (both, (of[a] > 0).sum(), 1)
        assert row["jaccard"] == pytest.approx(both / any_of)
        simpson = (share[a] ** 2).sum() + (share[b] ** 2).sum()
        assert row["morisita_horn"] == pytest.approx(2 * (share[a] * share[b]).sum() / simpson)
        assert row["f2"] == pytest.approx(np.sqrt(share[a] * share[b]).sum())
        shared = (kept[a] * kept[b]).sum()
        assert row["shared_at_depth"] == pytest.approx(shared)
        assert row["jaccard_at_depth"] == pytest.approx(shared / (kept[a].sum() + kept[b].sum() - shared))


def scipy_stats() -> Any:
    # Its import takes as long as a tenth of those of all tests.
    return pytest.importorskip("scipy.stats", reason="compared with SciPy, which scikit-learn brings")


@pytest.mark.slow
@given(a=st.integers(0, 9), b=st.integers(0, 12), more=st.tuples(st.integers(0, 9), st.integers(0, 9)))
def test_fisher_against_scipy(a: int, b: int, more: tuple[int, int]) -> None:
    expected = scipy_stats().fisher_exact([[a, b], [more[0], more[1]]]).pvalue
    assert fisher_p(a, b, (a + more[0], b + more[1])) == pytest.approx(expected, rel=1e-9)


def test_conditions() -> None:
    """Of two conditions, with a subject of neither; clonotypes of one subject are not tested."""
    counts = [
        [1, 1, 1, 0, 0, 0, 1],
        [1, 1, 0, 1, 1, 0, 0],
        [1, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 0],
        [1] * 7,
    ]
    states = ["ill"] * 3 + ["well"] * 3 + [""]
    rows = as_rows(counts, states)  # type: ignore[arg-type]  # as good as letters
    found = sharing(rows, settings=SharingSettings(condition="state")).clonotypes
    told = found.sort_by("junction").to_pylist()
    tested = [row for row in told if row["p_condition"] is not None]
    assert len(tested) == 4
    p = [
        scipy_stats().fisher_exact(
            [[row["subjects_ill"], row["subjects_well"]], [3 - row["subjects_ill"], 3 - row["subjects_well"]]]
        )
        for row in tested
    ]
    assert [row["p_condition"] for row in tested] == pytest.approx([one.pvalue for one in p])
    assert [row["q_condition"] for row in tested] == pytest.approx(
        scipy_stats().false_discovery_control([one.pvalue for one in p]).tolist()
    )
    assert math.isclose(min(row["p_condition"] for row in tested), 0.1)


def test_conditions_that_differ() -> None:
    """Of three clonotypes that are tested one is in all ill and no well subjects."""
    counts = [[1] * 6 + [0] * 6, [1] * 12, [0, 1] * 6, [1] + [0] * 11]
    rows = as_rows(counts, ["ill"] * 6 + ["well"] * 6)  # type: ignore[arg-type]  # as good as letters
    found = sharing(rows, settings=SharingSettings(condition="state"))
    q = found.clonotypes["q_condition"].drop_null().to_pylist()
    assert found.differing == (sum(value <= 0.05 for value in q), len(q)) == (1, 3)


@given(
    st.lists(
        st.tuples(st.text("AC", min_size=3, max_size=5), st.sampled_from("VW"), st.sampled_from("ab")),
        min_size=1,
        max_size=12,
    )
)
def test_clusters_against_all_pairs(rows: list[tuple[str, str, str]]) -> None:
    table = pa.table(dict(zip(("junction", "v_call", "subject_id"), zip(*rows, strict=True), strict=True)))
    chosen = {"key": "cdr3nt+v", "mismatches": 1}
    names = ("junction", "v_gene")

    def told(clusters: str) -> list[dict[str, int]]:
        settings = SharingSettings(**chosen, clusters=clusters)  # type: ignore[arg-type]  # one of two
        return sharing(table, settings=settings).clonotypes.to_pylist()

    linked, alone = told("linkage"), told("neighbours")
    whose = {(t, v): {s for u, w, s in rows if (u, w) == (t, v)} for t, v, _ in rows}

    def near(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
        return (
            a[1] == b[1]
            and len(a[0]) == len(b[0])
            and sum(x != y for x, y in zip(a[0], b[0], strict=True)) < 2
        )

    for row in alone:
        own = tuple(row[n] for n in names)
        them = [other for other in whose if near(own, other)]
        assert row["neighbours"] == len(them) - 1
        assert row["neighbour_subjects"] == len(set().union(*(whose[other] for other in them)))
    clusters = {tuple(row[n] for n in names): row["cluster"] for row in linked}
    for a, b in combinations(clusters, 2):
        assert not near(a, b) or clusters[a] == clusters[b]
    for row in linked:
        them = [other for other, cluster in clusters.items() if cluster == row["cluster"]]
        assert row["cluster_size"] == len(them)
        assert row["cluster_subjects"] == len(set().union(*(whose[other] for other in them)))
        reached, before = {them[0]}, set()
        while reached != before:
            before = set(reached)
            reached |= {other for other in them for one in before if near(one, other)}
        assert reached == set(them)
    assert list(dict.fromkeys(row["cluster"] for row in linked)) == list(
        range(1, len(set(clusters.values())) + 1)
    )


@pytest.mark.parametrize("suffix", ["h5ad", "zarr"])
def test_annotated_matrices(tmp_path: Path, suffix: str) -> None:
    anndata = pytest.importorskip("anndata", reason="an extra that is too large for every run")
    source, out = tmp_path / "in.parquet", tmp_path / f"matrix.{suffix}"
    pq.write_table(as_rows([[1, 0, 2, 0], [0, 3, 0, 4]]), source)
    share_files([source], tmp_path / "out.tsv", by_subject=out)
    found = getattr(anndata, f"read_{suffix}")(out)
    assert found.X.toarray().tolist() == [[1, 0], [0, 3], [2, 0], [0, 4]]
    assert list(found.obs_names) == ["s0", "s1", "s2", "s3"] and list(found.var["subjects"]) == [2, 2]
    with pytest.raises(InvalidInput, match="there already"):
        share_files([source], tmp_path / "out.tsv", by_subject=out)


def test_a_matrix_without_anndata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(Unsupported, match=r"pip install 'plait\[anndata\]'"):
        share_files([tmp_path / "in.parquet"], tmp_path / "out.tsv", by_subject=tmp_path / "m.h5ad")
