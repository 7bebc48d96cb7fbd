"""A small made-up study: the tables and the description that ``plait vdj study`` leaves in its folder.

Its numbers are drawn, not computed from sequences, and have the shape of real ones: short N2 regions are
shared more often, and path counts with them. `support.study_regression` draws the tables of the
regression.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from support.study_description import study_description
from support.study_pgen import pgen_tables
from support.study_public import expected_tables, subject_tables
from support.study_regression import regression_tables

__all__ = ["write_study_folder", "write_table"]

_PI, _NU = range(5), range(11)
_V = [
    f"TRBV{k}"
    for k in (1, 2, 3, 4, 5, "12-1", "12-2", "13-1", "13-2", "13-3", 14, 15, 16, 17, 19, 20, 29, 31)
]
_J = [f"TRBJ{k}" for k in ("1-1", "1-2", "1-3", "1-4", "1-5", "2-1", "2-3", "2-4", "2-5", "2-7")]
_CODONS = ["GCC", "AGC", "GGG", "GAC", "CAG", "AAC", "ACA", "CTC", "CGA", "TAT"]
_RESIDUES = "ASGDQNTLRY"
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_SHARED = 2000
_LEAST_FOR_INTERVAL = 120
_Rows = list[list[object]]


@dataclass(frozen=True, slots=True)
class _Clonotypes:
    """One value a clonotype, but for `present`: clonotype by subject."""

    present: NDArray[np.bool_]
    v: NDArray[np.int64]
    j: NDArray[np.int64]
    length: NDArray[np.int64]
    n2: NDArray[np.int64]
    log_count: NDArray[np.float64]
    rows: NDArray[np.int64]

    @property
    def subjects(self) -> NDArray[np.int64]:
        counted: NDArray[np.int64] = self.present.sum(axis=1)
        return counted


def write_study_folder(
    folder: str | os.PathLike[str],
    *,
    subjects: int | Sequence[str] = 8,
    clonotypes: int = 4000,
    regression: bool = True,
    path_counts: bool = True,
    pgen: bool = False,
    genes: Mapping[str, str] | None = None,
    files: Sequence[str] = (),
    seed: int = 0,
) -> Path:
    """Write ``study.json`` and ``tables/*.tsv`` as ``plait vdj study`` does.

    Parameters
    ----------
    folder
        Where; made if it is not there.
    subjects
        How many, or their names.
    clonotypes
        How many.
    regression
        Whether there is one.
    path_counts
        Whether clonotypes have them.
    pgen
        Whether there are generation probabilities.
    genes
        Other names for some genes.
    files
        Names of input files, in place of ordinary ones.
    seed
        Of the draw.

    Returns
    -------
    Path
        The folder.
    """
    out = Path(folder)
    (out / "tables").mkdir(parents=True, exist_ok=True)
    names = [f"mouse-{k + 1}" for k in range(subjects)] if isinstance(subjects, int) else list(subjects)
    rng = np.random.default_rng(seed)
    drawn = _draw(rng, clonotypes, len(names))
    called = dict(genes or {})
    v_names = np.array([called.get(name, name) for name in _V])
    j_names = np.array([called.get(name, name) for name in _J])
    tables: dict[str, tuple[list[str], _Rows]] = {
        "subjects": _subjects(drawn, names),
        "statuses": (
            ["status", "rows", "meaning"],
            [
                ["ok", int(drawn.rows.sum()), "counted"],
                ["no_v_anchor", 12, "where the CDR3 part of the V allele lies is not known"],
            ],
        ),
        "sharing_levels": _sharing_levels(drawn, path_counts),
        "n2_length_by_sharing": _n2_length_by_sharing(drawn),
        "vj_usage": _vj_usage(drawn, v_names, j_names),
        "cdr3_lengths": _cdr3_lengths(drawn, names),
        "n_composition": _n_composition(rng, drawn),
        "correlations": _correlations(rng, drawn, names, v_names, j_names, path_counts),
        "top_shared": _top_shared(rng, drawn, v_names, j_names, path_counts),
    }
    tables |= subject_tables(drawn.present, v_names[drawn.v], names)
    if path_counts:
        tables["path_count_by_sharing"] = _path_count_by_sharing(drawn)
        tables["sweep"] = _sweep(drawn)
    if regression:
        tables |= regression_tables(rng, path_counts)
    if pgen:
        tables |= pgen_tables(rng, drawn.subjects, drawn.log_count - 17)
        tables |= expected_tables(drawn.subjects, names)
    for name, (columns, rows) in tables.items():
        write_table(out / "tables" / f"{name}.tsv", columns, rows)
    described = study_description(
        names,
        files,
        rows=int(drawn.rows.sum()),
        clonotypes=int(drawn.v.size),
        shared=int((drawn.subjects > 1).sum()),
        regression=regression,
        path_counts=path_counts,
    )
    described["tables"] = {name: f"tables/{name}.tsv" for name in tables}
    (out / "study.json").write_text(json.dumps(described, indent=1), encoding="utf-8")
    return out


def write_table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a tab-separated table; None is an empty cell.

    Parameters
    ----------
    path
        The file.
    columns
        Their names.
    rows
        The cells.
    """
    lines = ["\t".join(columns)]
    lines += ["\t".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _draw(rng: np.random.Generator, clonotypes: int, subjects: int) -> _Clonotypes:
    n2 = np.minimum(rng.negative_binomial(2, 0.35, clonotypes), 15)
    log_count = np.round(6.6 - 0.13 * n2 + 0.5 * rng.standard_normal(clonotypes), 3)
    log_count[rng.random(clonotypes) < 0.01] = -np.inf
    strength = np.exp(-2.9 - 0.28 * n2 + 1.1 * rng.standard_normal(clonotypes))
    present = rng.random((clonotypes, subjects)) < (1 - np.exp(-strength))[:, None]
    alone = ~present.any(axis=1)
    present[alone, rng.integers(0, subjects, int(alone.sum()))] = True
    return _Clonotypes(
        present=present,
        v=np.minimum((rng.random(clonotypes) ** 1.7 * len(_V)).astype(np.int64), len(_V) - 1),
        j=np.minimum((rng.random(clonotypes) ** 1.4 * len(_J)).astype(np.int64), len(_J) - 1),
        length=3 * (10 + rng.binomial(8, 0.45, clonotypes)) + (rng.random(clonotypes) < 0.05),
        n2=n2.astype(np.int64),
        log_count=log_count,
        rows=present.sum(axis=1) + rng.poisson(0.3, clonotypes),
    )


def _subjects(drawn: _Clonotypes, names: list[str]) -> tuple[list[str], _Rows]:
    columns = [
        "subject",
        "files",
        "rows",
        "rows_left_out",
        "clonotypes",
        "shared_clonotypes",
        "duplicate_count",
    ]
    rows: _Rows = []
    covariates = (("young", 8), ("old", 18))
    for k, name in enumerate(names):
        mine = drawn.present[:, k]
        n = int(mine.sum())
        rows.append(
            [name, 1, n + 7 * k, 3 * k, n, int((drawn.subjects[mine] > 1).sum()), 9 * n, *covariates[k % 2]]
        )
    return [*columns, "group", "age_weeks"], rows


def _levels(drawn: _Clonotypes) -> list[int]:
    return [int(level) for level in np.unique(drawn.subjects)]


def _sharing_levels(drawn: _Clonotypes, path_counts: bool) -> tuple[list[str], _Rows]:
    names = [f"q{round(100 * q):02d}" for q in _QUANTILES]
    columns = ["subjects", "clonotypes", "rows", "counted", "zero_counts"]
    columns += [f"path_count_{name}" for name in names] + ["path_count_mean_log10"]
    columns += [f"n2_length_{name}" for name in names] + ["n2_length_mean", "n2_at_share"]
    rows: _Rows = []
    for level in _levels(drawn):
        mine = drawn.subjects == level
        logs, n2, n = drawn.log_count[mine], drawn.n2[mine], int(mine.sum())
        row: list[object] = [level, n, int(drawn.rows[mine].sum())]
        if path_counts:
            row += [n, int(np.isinf(logs).sum())]
            row += [round(float(q)) for q in 10 ** np.quantile(logs, _QUANTILES, method="lower")]
            row += [float(logs[np.isfinite(logs)].mean()) if np.isfinite(logs).any() else None]
        else:
            row += [0, 0, *[None] * 6]
        row += [float(q) for q in np.quantile(n2, _QUANTILES)]
        rows.append([*row, round(float(n2.mean()), 4), round(0.41 + 0.01 * level, 4)])
    return columns, rows


def _path_count_by_sharing(drawn: _Clonotypes) -> tuple[list[str], _Rows]:
    rows: _Rows = []
    for level in _levels(drawn):
        logs = drawn.log_count[drawn.subjects == level]
        if zeros := int(np.isinf(logs).sum()):
            rows.append([level, None, None, zeros])
        bins, counts = np.unique(np.floor(logs[np.isfinite(logs)] * 4), return_counts=True)
        rows += [[level, b / 4, (b + 1) / 4, int(n)] for b, n in zip(bins, counts, strict=True)]
    return ["subjects", "log10_low", "log10_high", "clonotypes"], rows


def _n2_length_by_sharing(drawn: _Clonotypes) -> tuple[list[str], _Rows]:
    rows: _Rows = []
    for level in _levels(drawn):
        lengths, counts = np.unique(drawn.n2[drawn.subjects == level], return_counts=True)
        rows += [[level, int(length), int(n)] for length, n in zip(lengths, counts, strict=True)]
    rows.append([1, None, 40])
    return ["subjects", "n2_length", "clonotypes"], rows


def _sweep(drawn: _Clonotypes) -> tuple[list[str], _Rows]:
    rows: _Rows = []
    for pi in _PI:
        for nu in _NU:
            # Fewer N nucleotides and shorter palindromes: fewer paths, and none at all where N2 is longer.
            logs = drawn.log_count - 0.32 * (10 - nu) - 0.4 * (4 - pi)
            logs = np.where(drawn.n2 > nu, -np.inf, np.maximum(logs, 0))
            for level in _levels(drawn):
                mine = logs[drawn.subjects == level]
                quarters = 10 ** np.quantile(mine, (0.25, 0.5, 0.75), method="lower")
                zeros = int(np.isinf(mine).sum())
                rows.append([pi, nu, level, mine.size, zeros, *(round(float(q), 3) for q in quarters)])
    return (
        [
            "pi",
            "nu",
            "subjects",
            "counted",
            "zero_counts",
            "path_count_q25",
            "path_count_q50",
            "path_count_q75",
        ],
        rows,
    )


def _vj_usage(drawn: _Clonotypes, v: NDArray[np.str_], j: NDArray[np.str_]) -> tuple[list[str], _Rows]:
    rows: _Rows = []
    for pair in sorted(set(zip(drawn.v.tolist(), drawn.j.tolist(), strict=True))):
        mine = (drawn.v == pair[0]) & (drawn.j == pair[1])
        shared = int((drawn.subjects[mine] > 1).sum())
        rows.append([v[pair[0]], j[pair[1]], int(mine.sum()), int(drawn.rows[mine].sum()), shared])
    return ["v_gene", "j_gene", "clonotypes", "rows", "shared_clonotypes"], rows


def _cdr3_lengths(drawn: _Clonotypes, names: list[str]) -> tuple[list[str], _Rows]:
    rows: _Rows = []
    for k, name in enumerate(names):
        lengths, counts = np.unique(drawn.length[drawn.present[:, k]], return_counts=True)
        rows += [[name, int(a), int(n), int(n) + 2] for a, n in zip(lengths, counts, strict=True)]
    return ["subject", "junction_length", "clonotypes", "rows"], rows


def _n_composition(rng: np.random.Generator, drawn: _Clonotypes) -> tuple[list[str], _Rows]:
    rows: _Rows = []
    n_shared = int((drawn.subjects > 1).sum())
    for span in ("n1", "n2", "ndn"):
        for shared, n in (("T", n_shared), ("F", drawn.subjects.size - n_shared)):
            if not n:
                continue
            weights = np.array([0.19, 0.29, 0.33, 0.19]) + 0.015 * rng.standard_normal(4)
            shares = weights / weights.sum()
            for base, share in zip("acgt", shares, strict=True):
                half = 1.96 * float(np.sqrt(share * (1 - share) / (4 * n)))
                cells = [round(float(x), 5) for x in (share, share - half, share + half)]
                rows.append([span, shared, base, round(4 * n * float(share)), *cells])
    return ["span", "shared", "base", "nucleotides", "share", "low", "high"], rows


def _correlations(
    rng: np.random.Generator,
    drawn: _Clonotypes,
    names: list[str],
    v: NDArray[np.str_],
    j: NDArray[np.str_],
    path_counts: bool,
) -> tuple[list[str], _Rows]:
    strata = [("all", "all", drawn.v.size)]
    strata += [("subject", name, int(drawn.present[:, k].sum())) for k, name in enumerate(names)]
    strata += [("v_gene", str(name), int((drawn.v == k).sum())) for k, name in enumerate(v)]
    strata += [("j_gene", str(name), int((drawn.j == k).sum())) for k, name in enumerate(j)]
    rows: _Rows = []
    centres = {"path_count": 0.11, "n2_length": -0.24, "n2_at": 0.05}
    for kind, stratum, n in strata:
        for x, centre in centres.items():
            for y, share in (("subjects", 1.0), ("duplicate_count", 0.2)):
                unwanted = (x == "path_count" and not path_counts) or (kind == "subject" and y == "subjects")
                if n < 10 or unwanted or (kind != "subject" and y == "subjects" and len(names) < 2):
                    continue
                for method, scale in (("spearman", 1.0), ("kendall", 0.8)):
                    half = 1.96 / np.sqrt(n)
                    middle = scale * share * centre + (kind != "all") * 0.3 * half * rng.standard_normal()
                    cells = [round(float(x), 5) for x in (middle, middle - half, middle + half)]
                    # A small stratum has no interval.
                    ends = cells[1:] if n >= _LEAST_FOR_INTERVAL else [None, None]
                    rows.append([kind, stratum, x, y, method, cells[0], *ends, n])
    return ["stratum_kind", "stratum", "x", "y", "method", "estimate", "low", "high", "n"], rows


def _top_shared(
    rng: np.random.Generator,
    drawn: _Clonotypes,
    v: NDArray[np.str_],
    j: NDArray[np.str_],
    path_counts: bool,
) -> tuple[list[str], _Rows]:
    order = np.lexsort((-drawn.rows, -drawn.subjects))
    rows: _Rows = []
    for k in order[: min(_MOST_SHARED, order.size)]:
        middle = rng.integers(0, len(_CODONS), max(int(drawn.length[k]) // 3 - 4, 1))
        junction = "TGTGCC" + "".join(_CODONS[m] for m in middle) + "CAGTTC"
        residues = "CA" + "".join(_RESIDUES[m] for m in middle) + "QF"
        count = round(float(10 ** drawn.log_count[k])) if path_counts else None
        row = [junction, residues, v[drawn.v[k]], j[drawn.j[k]], int(drawn.subjects[k]), int(drawn.rows[k])]
        rows.append([*row, 4 * int(drawn.rows[k]), count, int(drawn.n2[k])])
    return [
        "junction", "junction_aa", "v_gene", "j_gene", "subjects", "rows", "duplicate_count",
        "path_count", "n2_length",
    ], rows  # fmt: skip
