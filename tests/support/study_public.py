"""Tables of a made-up study about who shares what, and how diverse subjects are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["expected_tables", "subject_tables"]

_Rows = list[list[object]]
_Tables = dict[str, tuple[list[str], _Rows]]


def subject_tables(present: NDArray[np.bool_], v: NDArray[np.str_], names: Sequence[str]) -> _Tables:
    """Overlaps, sets of subjects, V genes by subject, diversity and rarefaction.

    Parameters
    ----------
    present
        Clonotype by subject.
    v
        V gene of each clonotype.
    names
        Of the subjects.
    """
    sizes = present.sum(axis=0)
    overlaps: _Rows = []
    for a, b in combinations(range(len(names)), 2):
        shared = int((present[:, a] & present[:, b]).sum())
        jaccard = shared / max(int(sizes[a] + sizes[b]) - shared, 1)
        overlaps.append(
            [names[a], names[b], int(sizes[a]), int(sizes[b]), shared, jaccard, jaccard * 0.9, jaccard, 100]
        )
    sets, counts = np.unique(present[present.any(axis=1)], axis=0, return_counts=True)
    ranked = np.argsort(-counts, kind="stable")
    members: _Rows = [
        [number, int(counts[k]), names[place]]
        for number, k in enumerate(ranked.tolist(), 1)
        for place in np.flatnonzero(sets[k]).tolist()
    ]
    usage: _Rows = []
    for k, name in enumerate(names):
        genes, times = np.unique(v[present[:, k]], return_counts=True)
        usage += [[name, gene, n, 2 * n] for gene, n in zip(genes.tolist(), times.tolist(), strict=True)]
    curves: _Rows = []
    for name, n in zip(names, sizes.tolist(), strict=True):
        for copies, part, seen in (
            (n // 2, "rarefied", 0.6 * n),
            (n, "observed", n),
            (2 * n, "extrapolated", 1.5 * n),
        ):
            curves.append([name, 0, copies, part, seen, 0.95 * seen, 1.05 * seen, 0.5, 0.4, 0.6])
    hill: _Rows = [[name, n, 2 * n, n, 2 * n] for name, n in zip(names, sizes.tolist(), strict=True)]
    interval = ["diversity", "low", "high", "coverage", "coverage_low", "coverage_high"]
    pair = ["subject_a", "subject_b", "clonotypes_a", "clonotypes_b", "shared", "jaccard", "jaccard_at_depth"]
    return {
        "overlaps": ([*pair, "morisita_horn", "depth"], overlaps),
        "subject_sets": (["set", "clonotypes", "subject"], members),
        "v_by_subject": (["subject", "v_gene", "clonotypes", "rows"], usage),
        "rarefaction": (["subject", "order", "copies", "part", *interval], curves),
        "diversity": (["subject", "clonotypes", "copies", "hill_0", "hill_0_estimate"], hill),
    }


def expected_tables(subjects: NDArray[np.int64], names: Sequence[str]) -> _Tables:
    """Observed and expected sharing, and clonotypes beyond that.

    Parameters
    ----------
    subjects
        Number of subjects of each clonotype.
    names
        Of the subjects.
    """
    levels: _Rows = []
    for k in range(1, len(names) + 1):
        n = int((subjects == k).sum())
        levels.append([k, n, 0.8 * n + 0.01, (0.8 * n) ** 0.5, n // 10])
    columns = ["junction", "junction_aa", "v_gene", "j_gene", "subjects", "expected_subjects", "pgen"]
    who = json.dumps(list(names[:2]), ensure_ascii=False)
    row: list[object] = ["TGTGCCAGC", "CAS", "TRBV1", "TRBJ1-1", 2, 1.01, 1e-9, 1e-4, 0.01, 7, who]
    return {
        "expected_sharing": (["subjects", "observed", "expected", "expected_sd", "beyond"], levels),
        "public_clonotypes": ([*columns, "p_sharing", "q_sharing", "duplicate_count", "subject_ids"], [row]),
    }
