"""How many share clonotypes, how alike repertoires are, two conditions, clusters, annotated matrices."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.atomic import bad_output, output_errors
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, run_starts
from plait.vdj.repertoires.expected import FALSE_DISCOVERIES
from plait.vdj.repertoires.neighbours import clusters
from plait.vdj.repertoires.neighbours import pairs as near_pairs

_Ints = NDArray[np.int64]

#: Subjects whose sets are told: those with most reads. There are as many sets as subsets of them.
MOST_IN_SETS: Final = 12
#: Cells of the tables of clonotypes by subjects that are held at a time.
_CELLS: Final = 1 << 22


PATH_COUNT: Final = "path_count"
#: Path counts that wait in memory before they are put aside in order.
_WAITING_BYTES: Final = 16 << 20


class Levels:
    """Clonotypes by the number of subjects that have them, with quantiles of their path counts.

    `path_counts` are those that are known, level by level, each with how often it occurs (`SCHEMA`).
    """

    SCHEMA: Final = pa.schema([("subjects", pa.int32()), ("value", pa.float64()), ("n", pa.int64())])
    _QUANTILES: Final = {"q25": 0.25, "median": 0.5, "q75": 0.75}

    def __init__(self, blocks: SpilledBlocks, subjects: int, counted: bool) -> None:
        self._clonotypes, self._rows, self._known, self._zeros = np.zeros((4, subjects + 1), np.int64)
        self._counted = counted
        order: dict[str, Direction] = {"subjects": "ascending", "value": "ascending"}
        self.path_counts = SortedRuns(blocks, order, memory_bytes=_WAITING_BYTES, combine=self._combined)

    def add(self, clonotypes: pa.RecordBatch) -> None:
        """Add clonotypes: ``subjects``, ``rows`` and, if there are any, path counts, which may be text."""
        subjects = np.asarray(clonotypes["subjects"])
        self._clonotypes += np.bincount(subjects, minlength=self._rows.size)
        np.add.at(self._rows, subjects, np.asarray(clonotypes["rows"]))
        if self._counted:
            known = np.asarray(clonotypes[PATH_COUNT].is_valid())
            values = np.asarray(clonotypes[PATH_COUNT].drop_null().cast(pa.float64(), safe=False))
            self._known += np.bincount(subjects[known], minlength=self._rows.size)
            self._zeros += np.bincount(subjects[known][values == 0], minlength=self._rows.size)
            self.path_counts.add(
                pa.record_batch(
                    {"subjects": subjects[known], "value": values, "n": np.ones(values.size, np.int64)}
                )
            )

    def table(self) -> pa.Table:
        """What `SharingSummary.distribution` tells."""
        levels = np.flatnonzero(self._clonotypes)
        found: dict[str, Any] = {
            "subjects": pa.array(levels, pa.int32()),
            "clonotypes": self._clonotypes[levels],
            "rows": self._rows[levels],
        }
        if self._counted:
            found |= {"counted": self._known[levels], "zero_counts": self._zeros[levels]}
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._known[levels])])
            wanted: dict[int, float] = {}
            places = {name: q * np.maximum(np.diff(ends) - 1, 0) for name, q in self._QUANTILES.items()}
            for place in places.values():
                wanted |= dict.fromkeys((ends[:-1] + np.floor(place).astype(np.int64)).tolist(), np.nan)
                wanted |= dict.fromkeys((ends[:-1] + np.ceil(place).astype(np.int64)).tolist(), np.nan)
            self._find(wanted)
            for name, place in places.items():
                both = (
                    (wanted[int(e + np.floor(p))], wanted[int(e + np.ceil(p))], p % 1)
                    for e, p in zip(ends, place, strict=False)
                )
                values = [float(np.quantile([low, high], part)) for low, high, part in both]
                found[f"{PATH_COUNT}_{name}"] = pa.array(values, mask=np.diff(ends) == 0)
        return pa.table(found)

    def totals(self) -> NDArray[np.int64]:
        """Sums over clonotypes of each number of subjects, (4, n), for `merge`."""
        return np.stack([self._clonotypes, self._rows, self._known, self._zeros])

    def merge(self, totals: NDArray[np.int64], path_counts: Iterable[pa.RecordBatch]) -> None:
        """Add what `totals` and `path_counts`, drained, tell of other clonotypes."""
        for own, other in zip((self._clonotypes, self._rows, self._known, self._zeros), totals, strict=True):
            own += other
        for rows in path_counts:
            self.path_counts.add(rows)

    def _find(self, wanted: dict[int, float]) -> None:
        """The path counts at some places in their order, level by level."""
        places, first = np.array(sorted(wanted)), 0
        for rows in self.path_counts.drain():
            last = first + np.cumsum(np.asarray(rows["n"]))
            here = places[(places >= first) & (places < last[-1])]
            at = np.searchsorted(last, here, side="right")
            wanted.update(zip(here.tolist(), np.asarray(rows["value"])[at].tolist(), strict=True))
            first = int(last[-1])

    @staticmethod
    def _combined(rows: pa.RecordBatch) -> pa.RecordBatch:
        starts = run_starts(rows, ("subjects", "value"))
        n = np.add.reduceat(np.asarray(rows["n"]), starts) if starts.size else starts
        taken = rows.take(pa.array(starts))
        return pa.record_batch([taken["subjects"], taken["value"], pa.array(n)], schema=rows.schema)


class Overlaps:
    """Measures of every two subjects, summed over clonotypes.

    With c reads of a clonotype among the N of a subject, f = c / N: Jaccard's index of clonotypes; the index
    of Morisita and Horn (1966), 2 sum f g / (sum f^2 + sum g^2); F2, the sum of sqrt(f g), as in VDJtools
    (Shugay et al. 2015). Depth-corrected are clonotypes expected where every read is kept with probability
    `depth` / N, and Jaccard's index of these expectations.
    """

    def __init__(self, names: Sequence[str], copies: Sequence[int], depth: int) -> None:
        if depth < 0 or (copies and depth > min(copies)):
            raise InvalidInput(
                "overlap_depth",
                found=depth,
                expected=f"0, or up to {min(copies):,}, the reads of the subject that has fewest",
            )
        self._names = list(names)
        self._copies = np.array(copies, np.float64)
        ranked = sorted(range(len(names)), key=lambda k: (-copies[k], names[k]))[:MOST_IN_SETS]
        #: Those whose sets are told, each with its bit; clonotypes by the set of those that have them.
        self._largest = sorted(ranked)
        self._bits = np.zeros(len(names), np.int64)
        self._bits[self._largest] = 1 << np.arange(len(self._largest))
        self._sets = np.zeros(1 << len(self._largest), np.int64)
        self._depth = depth or min(copies, default=0)
        n = len(names)
        #: Sums over clonotypes of two subjects: both have it, products, their roots, chances at the depth.
        self._both, self._products, self._roots, self._chances = np.zeros((4, n, n))
        self._expected = np.zeros(n)

    def add(self, of: _Ints, who: _Ints, copies: pa.Array, rows: pa.Array) -> None:
        """Add pairs: clonotype (ascending), subject, and number of reads, or of rows where that is null."""
        count = np.asarray(pc.coalesce(copies, rows)).astype(np.float64)
        n = len(self._names)
        with np.errstate(divide="ignore"):
            kept = np.minimum(self._depth / self._copies[who], 1.0)
            chance = -np.expm1(count * np.log1p(-kept))
        self._expected += np.bincount(who, chance, minlength=n)
        whose = np.bincount(of, self._bits[who]).astype(np.int64)
        self._sets += np.bincount(whose, minlength=self._sets.size)
        np.add.at(self._products, (who, who), count**2)
        np.add.at(self._both, (who, who), 1.0)
        # Only clonotypes of several subjects say anything of two.
        public = np.bincount(of)[of] > 1 if of.size else np.zeros(0, np.bool_)
        of, who, count, chance = of[public], who[public], count[public], chance[public]
        place = np.unique(of, return_inverse=True)[1]
        clonotypes = max(1, _CELLS // max(n, 1))
        for first in range(0, int(place[-1]) + 1 if place.size else 0, clonotypes):
            a, b = np.searchsorted(place, [first, first + clonotypes])
            at = place[a:b] - first, who[a:b]
            for total, values in (
                (self._both, np.ones(b - a)),
                (self._products, count[a:b]),
                (self._roots, np.sqrt(count[a:b])),
                (self._chances, chance[a:b]),
            ):
                dense = np.zeros((at[0][-1] + 1, n))
                dense[at] = values
                products = dense.T @ dense
                np.fill_diagonal(products, 0.0)
                total += products

    def table(self) -> pa.Table:
        """A row for every two subjects, in alphabetical order."""
        a, b = np.triu_indices(len(self._names), 1)
        shared, distinct = self._both[a, b], np.diagonal(self._both)
        n, squares = self._copies, np.diagonal(self._products)
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = self._products[a, b] / (n[a] * n[b])
            alike = 2 * cross / (squares[a] / n[a] ** 2 + squares[b] / n[b] ** 2)
            at_depth = self._chances[a, b]
            measures = {
                "jaccard": shared / (distinct[a] + distinct[b] - shared),
                "morisita_horn": alike,
                "f2": self._roots[a, b] / np.sqrt(n[a] * n[b]),
                "shared_at_depth": at_depth,
                "jaccard_at_depth": at_depth / (self._expected[a] + self._expected[b] - at_depth),
            }
        names = pa.array(self._names, pa.large_string())
        return pa.table(
            {
                "subject_a": names.take(pa.array(a)),
                "subject_b": names.take(pa.array(b)),
                "clonotypes_a": distinct[a].astype(np.int64),
                "clonotypes_b": distinct[b].astype(np.int64),
                "shared": shared.astype(np.int64),
                **{name: pa.array(values, from_pandas=True) for name, values in measures.items()},
                "depth": np.full(a.size, self._depth),
            }
        )

    def sets(self) -> pa.Table:
        """How many clonotypes each set of subjects has in common and none of the others, the most first.

        Of more than `MOST_IN_SETS` subjects, those with most reads, whatever the others have.
        """
        there = np.flatnonzero(self._sets[1:]) + 1
        there = there[np.argsort(-self._sets[there], kind="stable")]
        names = [[self._names[k] for k in self._largest if one & self._bits[k]] for one in there.tolist()]
        return pa.table({"subjects": pa.array(names, pa.list_(pa.string())), "clonotypes": self._sets[there]})


class ConditionTest:
    """Fisher's exact test of every clonotype that several subjects have: more of them under one condition.

    `conditions` are the two; `group` (subjects,) is 0 or 1, 2 for subjects of neither.
    """

    def __init__(self, conditions: tuple[str, str], group: _Ints) -> None:
        self.conditions = conditions
        self._group = group
        self._sizes = [int((group == k).sum()) for k in range(2)]
        #: Tested clonotypes by subjects of each condition: q values need no more of the others.
        self.tests = np.zeros((self._sizes[0] + 1, self._sizes[1] + 1), np.int64)

    @classmethod
    def of(
        cls, path: str, column: str, conditions: Mapping[str, Collection[str]], names: Sequence[str]
    ) -> ConditionTest:
        """The test of subjects (`names`) from what rows say; FormatError if it is not two conditions."""
        said = {name: sorted(filter(None, conditions.get(name, ()))) for name in names}
        for name, values in said.items():
            if len(values) > 1:
                raise FormatError(
                    path,
                    column=column,
                    found=f"{values[0]!r} and {values[1]!r} for subject {name!r}",
                    expected="one condition for each subject",
                )
        found = sorted({values[0] for values in said.values() if values})
        if len(found) != 2:
            raise FormatError(
                path,
                column=column,
                found=f"{len(found)} conditions ({', '.join(map(repr, found[:10]))})",
                expected="two",
                hint="leave the cells of subjects of any other condition empty",
            )
        group = [found.index(said[name][0]) if said[name] else 2 for name in names]
        return cls((found[0], found[1]), np.array(group))

    def counted(self, of: _Ints, who: _Ints, sizes: _Ints) -> dict[str, pa.Array]:
        """Subjects of each condition that have each clonotype, from pairs of clonotype and subject."""
        group = self._group[who]
        a, b = (np.bincount(of[group == k], minlength=sizes.size) for k in range(2))
        public = a + b > 1
        np.add.at(self.tests, (a[public], b[public]), 1)
        both = zip(self.conditions, (a, b), strict=True)
        return {f"subjects_{name}": pa.array(n, pa.int32()) for name, n in both}

    def tested(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """``p_condition`` and ``q_condition`` of clonotypes; null for those of fewer than two subjects."""
        p, q = self._values()
        a, b = (np.asarray(rows[f"subjects_{name}"]) for name in self.conditions)
        few = a + b < 2
        return {
            "p_condition": pa.array(p[a, b], mask=few),
            "q_condition": pa.array(q[a, b], mask=few),
        }

    def differing(self) -> tuple[int, int]:
        """Clonotypes with ``q_condition`` up to 0.05, and all that were tested."""
        _, q = self._values()
        return int(self.tests[q <= FALSE_DISCOVERIES].sum()), int(self.tests.sum())

    def _values(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values p and q by subjects of each condition, of those that occur."""
        p, q = np.ones((2, *self.tests.shape))
        a, b = np.nonzero(self.tests)
        known: dict[int, list[int]] = {}
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            p[x, y] = fisher_p(x, y, (self._sizes[0], self._sizes[1]), known)
        values, place = np.unique(p[a, b], return_inverse=True)
        rank = np.cumsum(np.bincount(place, self.tests[a, b], minlength=values.size))
        if values.size:
            adjusted = np.minimum.accumulate((values * rank[-1] / rank)[::-1])[::-1]
            q[a, b] = np.minimum(adjusted, 1.0)[place]
        return p, q


def fisher_p(a: int, b: int, sizes: tuple[int, int], known: dict[int, list[int]] | None = None) -> float:
    """Two-sided p of a and b of so many subjects (`sizes`): tables of this margin no more probable than it.

    Of whole numbers, so that equally probable tables are told as such. `known` keeps what has been computed.
    """
    known = {} if known is None else known
    k, (of_a, of_b) = a + b, sizes
    low, high = max(0, k - of_b), min(k, of_a)
    if k not in known:
        known[k] = [comb(of_a, x) * comb(of_b, k - x) for x in range(low, high + 1)]
    ways = known[k]
    return sum(way for way in ways if way <= ways[a - low]) / comb(of_a + of_b, k)


def clustered(
    clonotypes: pa.Table,
    pairs: pa.Table,
    key: Sequence[str],
    *,
    mismatches: int | None,
    edits: int | None,
    linkage: bool,
) -> pa.Table:
    """Clonotypes with those near them: within so many mismatches or edits, and of the same genes.

    By single linkage ``cluster`` (from 1, the first clonotype's first), ``cluster_size`` and
    ``cluster_subjects``; otherwise ``neighbours`` and ``neighbour_subjects``, of a clonotype and those near
    it. `pairs` (clonotype and subject) come in the order of the clonotypes.
    """
    n = clonotypes.num_rows
    group = np.zeros(n, np.int64)
    for name in key[1:]:
        codes = clonotypes[name].combine_chunks().dictionary_encode()
        group = group * max(len(codes.dictionary), 1) + np.asarray(codes.indices)
    group = np.unique(group, return_inverse=True)[1].astype(np.int32)
    limit = {"mismatches": mismatches} if edits is None else {"edits": edits}
    junctions = clonotypes[key[0]].combine_chunks()
    of = np.repeat(np.arange(n), np.asarray(clonotypes["subjects"]))
    who = np.asarray(pairs["subject"].combine_chunks().dictionary_encode().indices).astype(np.int64)
    if linkage:
        cluster = clusters(junctions, group, **limit)
        size, subjects = np.bincount(cluster)[cluster], _distinct(cluster[of], who, n)[cluster]
        found = {"cluster": cluster + 1, "cluster_size": size, "cluster_subjects": subjects}
    else:
        i, j = near_pairs(junctions, group, **limit)
        sizes = np.asarray(clonotypes["subjects"]).astype(np.int64)
        centre, other = np.concatenate([i, j, np.arange(n)]), np.concatenate([j, i, np.arange(n)])
        starts = np.cumsum(sizes) - sizes
        at = np.repeat(starts[other] - (np.cumsum(sizes[other]) - sizes[other]), sizes[other])
        whose = who[at + np.arange(at.size)]
        subjects = _distinct(np.repeat(centre, sizes[other]), whose, n)
        found = {"neighbours": np.bincount(centre, minlength=n) - 1, "neighbour_subjects": subjects}
    for name, values in found.items():
        clonotypes = clonotypes.append_column(name, pa.array(values.astype(np.int64)))
    return clonotypes


def _distinct(of: _Ints, who: _Ints, n: int) -> _Ints:
    """How many different `who` each of n has."""
    most = int(who.max(initial=0)) + 1
    found: _Ints = np.bincount(np.unique(of * most + who) // most, minlength=n)
    return found


_MATRICES: Final = (".h5ad", ".zarr")


def is_matrix(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of an annotated matrix; Unsupported if it is and anndata is not there."""
    if Path(path).suffix.lower() not in _MATRICES:
        return False
    if Path(path).exists():
        raise bad_output(path, ", which is there already", "another name", "remove it first")
    try:
        importlib.import_module("anndata")
    except ImportError as error:
        raise Unsupported("AnnData", why="anndata is not installed; pip install 'plait[anndata]'") from error
    return True


def write_matrix(
    path: str | os.PathLike[str],
    clonotypes: pa.Table,
    pairs: pa.Table,
    subjects: Sequence[str],
    key: Sequence[str],
    facts: str,
) -> None:
    """Write numbers of reads (or rows) of subjects (obs) and clonotypes (var) as AnnData, h5ad or zarr.

    The matrix is sparse, by clonotypes, and all of it is in memory.
    """
    # What has no types, and comes with anndata.
    anndata, pandas, sparse = map(importlib.import_module, ("anndata", "pandas", "scipy.sparse"))
    ends = np.concatenate([[0], np.cumsum(np.asarray(clonotypes["subjects"]), dtype=np.int64)])
    who = np.asarray(pc.index_in(pairs["subject"], value_set=pa.array(subjects, pa.large_string())))
    counts = pairs["rows"]
    if "duplicate_count" in pairs.column_names:
        counts = pc.coalesce(pairs["duplicate_count"], counts)
    columns: dict[str, Any] = {name: clonotypes[name].to_pylist() for name in clonotypes.column_names}
    if "subject_ids" in columns:
        columns["subject_ids"] = [",".join(names) for names in columns["subject_ids"]]
    # Texts as they have always been: not every version of anndata writes those of newer kinds.
    for name, values in columns.items():
        if values and isinstance(values[0], str):
            columns[name] = np.array(values, object)
    names = ["_".join(row) for row in zip(*(columns[name] for name in key), strict=True)]
    var = pandas.DataFrame(columns, index=pandas.Index(names, dtype=object))
    var = var.astype({name: object for name, values in columns.items() if isinstance(values, np.ndarray)})
    obs = pandas.DataFrame(index=pandas.Index(list(subjects), name="subject", dtype=object))
    found = anndata.AnnData(
        X=sparse.csc_matrix((np.asarray(counts), who, ends), shape=(len(subjects), len(var))),
        obs=obs,
        var=var,
        uns={"plait.sharing": facts},
    )
    _written(Path(path), found)


def _written(path: Path, found: Any) -> None:
    """Write an AnnData under its name once it is whole."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with output_errors(path):
            (found.write_zarr if path.suffix == ".zarr" else found.write_h5ad)(partial)
            os.replace(partial, path)
    finally:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        partial.unlink(missing_ok=True)
