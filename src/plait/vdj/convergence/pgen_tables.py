"""Rank correlations of path counts and N2 regions with sharing and frequency, in all strata; and Pgen.

Path-counting models and generation probability (Pgen) stand beside each other, on the same clonotypes. Pgen
of a part's clonotypes is found again by content and parameters; path counts under every model of a sweep,
and Pgen, are held in bins.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as arrow_ipc
from numpy.typing import NDArray

from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.checkpoints import letters_of
from plait.stats.contingency import ContingencyTable, Pairs, Stratum, Tally, student_quantile
from plait.stats.rank_correlation import (
    PAIRED_MEASURES,
    Triples,
    kendall,
    paired_differences,
    spearman,
    triples_of,
)
from plait.vdj.calls import CLONOTYPE, MEANINGS, STATUS_MEANINGS
from plait.vdj.convergence.settings import effective_facts
from plait.vdj.model.pgen import PGEN_STATUSES, GenerationProbability
from plait.vdj.model.recombination_model import RecombinationModel

_Name: TypeAlias = Callable[[Stratum], Stratum]


#: Kinds of strata, each with how its names are made of a V and a J gene; whatever else is in a name stays.
STRATA: Final[dict[str, _Name]] = {
    "all": lambda stratum: stratum[2:],
    "v_gene": lambda stratum: stratum[:1] + stratum[2:],
    "j_gene": lambda stratum: stratum[1:],
    "vj": lambda stratum: stratum,
}

_SHARES: Final = {"all": 1, "j_gene": 2, "v_gene": 4, "vj": 8}


@dataclass(slots=True)
class GeneStrata:
    """Counted pairs by V and J gene. Instances can be pickled.

    Up to `exact` distinct (V, J, x, y), one exact table holds them. Then each kind of strata has a table of
    its own, of at most `rounded` entries without strata, two, four and eight times that by J gene, V gene and
    both. What is held depends on the rows alone, not on their order or parts.
    """

    exact: int
    rounded: int
    _exact: ContingencyTable | None = field(default_factory=ContingencyTable)
    _bounded: dict[str, ContingencyTable] = field(default_factory=dict)
    _rows: int = 0

    def add(self, x: NDArray[Any], y: NDArray[Any], strata: tuple[NDArray[Any], Sequence[Stratum]]) -> None:
        """Add rows: values (n,), none NaN; strata as numbers (n,) with names by number: V, J, others."""
        if self._exact is not None:
            self._exact.add(x, y, strata=strata)
            self._taken(len(x))
            return
        numbers, names = strata
        for kind, table in self._bounded.items():
            table.add(x, y, strata=(numbers, [STRATA[kind](name) for name in names]))

    def merge(self, other: GeneStrata) -> None:
        """Add what another one of the same bounds holds; it stays as it is."""
        if self._exact is not None and other._exact is not None:
            self._exact.merge(other._exact)
            self._taken(len(other._exact))
            return
        self._part()
        for kind, table in self._bounded.items():
            if other._exact is not None:
                table.merge(other._exact.grouped(STRATA[kind], most=self._most(kind)))
            else:
                table.merge(other._bounded[kind])

    def table(self, kind: str) -> ContingencyTable:
        """Counted pairs in one kind of strata, of `STRATA`."""
        self._settle()
        return self._bounded[kind] if self._exact is None else self._exact.grouped(STRATA[kind])

    @property
    def digits(self) -> dict[str, int | None]:
        """Leading binary digits to which values were rounded, by kind of strata; empty if all are exact."""
        self._settle()
        return {kind: table.digits for kind, table in self._bounded.items()}

    def __len__(self) -> int:
        """Entries of the finest table."""
        self._settle()
        return len(self._bounded["vj"] if self._exact is None else self._exact)

    def __getstate__(self) -> tuple[Any, ...]:
        self._settle()
        return self.exact, self.rounded, self._exact, self._bounded, self._rows

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.exact, self.rounded, self._exact, self._bounded, self._rows = state

    def _taken(self, rows: int) -> None:
        """Look at the bound once so many rows have come that it could be passed."""
        self._rows += rows
        if self._rows > 2 * self.exact:
            self._settle()

    def _settle(self) -> None:
        if self._exact is not None:
            self._rows = len(self._exact)
            if self._rows > self.exact:
                self._part()

    def _part(self) -> None:
        if self._exact is not None:
            exact = self._exact
            self._bounded = {
                kind: exact.grouped(name, most=self._most(kind)) for kind, name in STRATA.items()
            }
            self._exact = None

    def _most(self, kind: str) -> int:
        return self.rounded * _SHARES[kind]


_BASES: Final = ("n2_a", "n2_c", "n2_g", "n2_t")
#: Columns of the clonotypes that `FigureTables.add_pairs` reads, where the study has them, beside its own
#: ``subject``, ``rows`` and ``duplicate_count`` (those of the clonotype in this subject); and ``pgen_nt``
#: with `FigureSettings.pgen`.
PAIR_COLUMNS: Final = (
    *("v_gene", "j_gene", "subjects", "junction_length", "path_count", "n2_length"),
    *_BASES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSettings:
    """Settings of the tables.

    Shared are clonotypes of `shared_by` subjects or more. Entry ``i * len(nu) + k`` of path_count_sweep
    belongs to pi[i] and nu[k]. Strata of fewer than `fewest` rows get no correlation. For `exact_pairs` and
    `rounded_pairs` see `GeneStrata`. `most_shared` rows are in top_shared.tsv.
    """

    shared_by: int = 2
    pi: tuple[int, ...] = ()
    nu: tuple[int, ...] = ()
    confidence: float = 0.95
    fewest: int = 20
    exact_pairs: int = 1 << 20
    rounded_pairs: int = 1 << 17
    most_shared: int = 2000
    pgen: bool = False

    @property
    def models(self) -> list[tuple[int, int]]:
        """Limits (pi, nu) of the models of the sweep, in the order of path_count_sweep."""
        return [(pi, nu) for pi in self.pi for nu in self.nu]


#: Columns of correlations.tsv.
CORRELATION_COLUMNS: Final = ("stratum_kind", "stratum", "x", "y", "method", "estimate", "low", "high", "n")
#: What is correlated: x; Pgen only where the study has it.
MEASURES: Final = ("path_count", "pgen_nt", "n2_length", "n2_at")
#: The number of subjects that have a clonotype: a y whose unit is the clonotype.
SHARING: Final = "subjects"
#: How often a subject has a clonotype: a y whose unit is the clonotype in a subject. The first one that the
#: input has.
FREQUENCIES: Final = ("duplicate_count", "rows")

#: Entries of tables by subject, in multiples of those without strata.
_SUBJECTS: Final = 4
_METHODS: Final = (spearman, kendall)

_Values: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
#: y and x.
_Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class CorrelationTables:
    """Counted pairs of every x and y, by V and J gene and by subject. Instances can be pickled."""

    settings: FigureSettings
    _by_gene: dict[_Key, GeneStrata] = field(default_factory=dict)
    _by_subject: dict[_Key, ContingencyTable] = field(default_factory=dict)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes, as for `FigureTables.add_clonotypes`: sharing by V and J gene."""
        self._add(table, SHARING, by_gene=True)

    def add_pairs(self, table: pa.Table) -> None:
        """Add pairs, as for `FigureTables.add_pairs`.

        Frequency goes by V and J gene and by subject, sharing by subject.
        """
        frequency = next(name for name in FREQUENCIES if name in table.column_names)
        self._add(table, frequency, by_gene=True)
        self._add(table, frequency, by_gene=False)
        if SHARING in table.column_names:
            self._add(table, SHARING, by_gene=False)

    def merge(self, other: CorrelationTables) -> None:
        """Add what another one of the same settings holds."""
        for key, strata in other._by_gene.items():
            self._genes(key).merge(strata)
        for key, table in other._by_subject.items():
            self._subjects(key).merge(table)

    def of_sharing(self, x: str) -> Pairs:
        """Counted pairs of x, one of `MEASURES`, and the number of subjects, over all clonotypes."""
        return self._genes((SHARING, x)).table("all").pairs()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of correlations.tsv: strata in order of kind and name, then x, y and method."""
        for kind in _KINDS:
            found: dict[str, list[dict[str, Any]]] = {}
            for x in MEASURES:
                for y in (SHARING, *FREQUENCIES):
                    table = self._table(kind, (y, x))
                    if table is not None:
                        self._estimate(table, kind, x, y, found)
            for stratum in sorted(found):
                yield from found[stratum]

    def notes(self) -> list[str]:
        """What was rounded to keep tables small, in words."""
        found = []
        for x in MEASURES:
            for y in (SHARING, *FREQUENCIES):
                tables = {kind: self._table(kind, (y, x)) for kind in _KINDS}
                digits = {kind: table.digits for kind, table in tables.items() if table is not None}
                texts = [f"{kind} {number}" for kind, number in digits.items() if number is not None]
                if texts:
                    found.append(
                        f"Correlations of {x} and {y}: as there are more than {self.settings.exact_pairs:,} "
                        f"distinct pairs, values were rounded; binary digits kept: {', '.join(texts)}."
                    )
        return found

    def _table(self, kind: str, key: _Key) -> ContingencyTable | None:
        """Counted pairs in one kind of strata, where there are any."""
        if kind == "subject":
            held = self._by_subject.get(key)
            return held if held is not None and len(held) else None
        strata = self._by_gene.get(key)
        return strata.table(kind) if strata is not None and len(strata) else None

    def _estimate(
        self, table: ContingencyTable, kind: str, x: str, y: str, found: dict[str, list[dict[str, Any]]]
    ) -> None:
        for stratum in table.strata:
            if "" in stratum:
                continue
            pairs = table.pairs(stratum)
            n = int(pairs.counts.sum())
            text = " ".join(stratum)
            for method in _METHODS:
                row: dict[str, Any] = dict.fromkeys(CORRELATION_COLUMNS)
                row |= {"stratum_kind": kind, "stratum": text}
                row |= {"x": x, "y": y, "method": method.__name__, "n": n}
                if n >= self.settings.fewest:
                    got = method(pairs, confidence=self.settings.confidence)
                    values = {"estimate": got.estimate, "low": got.low, "high": got.high}
                    row |= {name: None if np.isnan(value) else value for name, value in values.items()}
                found.setdefault(text, []).append(row)

    def _genes(self, key: _Key) -> GeneStrata:
        chosen = self.settings
        return self._by_gene.setdefault(key, GeneStrata(chosen.exact_pairs, chosen.rounded_pairs))

    def _subjects(self, key: _Key) -> ContingencyTable:
        chosen = self.settings
        new = ContingencyTable(_SUBJECTS * chosen.rounded_pairs, chosen.exact_pairs)
        return self._by_subject.setdefault(key, new)

    def _add(self, table: pa.Table, y: str, *, by_gene: bool) -> None:
        levels, known_y = _numbers(table, y)
        numbers, names = strata_of(table, ("v_gene", "j_gene") if by_gene else ("subject",))
        for x in MEASURES:
            if x == "pgen_nt" and not self.settings.pgen:
                continue
            values, known = _measure(table, x)
            kept = known & known_y
            rows = self._genes((y, x)) if by_gene else self._subjects((y, x))
            rows.add(values[kept], levels[kept], strata=(numbers[kept], names))


#: Kinds of strata, in the order of the table.
_KINDS: Final = ("all", "subject", "v_gene", "j_gene", "vj")


def _numbers(table: pa.Table, name: str) -> _Values:
    """A column, and where it is known."""
    column = table[name].combine_chunks()
    known = np.asarray(column.is_valid())
    return np.asarray(column.fill_null(0)), known


def _measure(table: pa.Table, x: str) -> _Values:
    """Values of x, and where there are any."""
    if x == "n2_at":
        if not set(_BASES) <= set(table.column_names):
            return np.zeros(len(table)), np.zeros(len(table), bool)
        (a, known), (c, _), (g, _), (t, _) = (_numbers(table, name) for name in _BASES)
        total = a + c + g + t
        return np.divide(a + t, total, out=np.zeros(len(table)), where=total > 0), known & (total > 0)
    if x not in table.column_names:
        return np.zeros(len(table), np.int64), np.zeros(len(table), bool)
    return _numbers(table, x)


def strata_of(
    table: pa.Table, names: Sequence[str], levels: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], list[Stratum]]:
    """Numbers of strata, and the names of those that there are: texts of columns, and the level, if any."""
    words, columns = [], []
    for name in names:
        encoded = pc.fill_null(table[name], "").combine_chunks().dictionary_encode()
        words.append(encoded.dictionary.to_pylist())
        columns.append(np.asarray(encoded.indices).astype(np.int64))
    if levels is not None:
        distinct, place = np.unique(levels, return_inverse=True)
        words.append([str(level) for level in distinct.tolist()])
        columns.append(place.astype(np.int64))
    codes = np.zeros(len(table), np.int64)
    for column, known in zip(columns, words, strict=True):
        codes = codes * len(known) + column
    used, numbers = np.unique(codes, return_inverse=True)
    parts = []
    for known in reversed(words):
        used, rest = np.divmod(used, max(len(known), 1))
        parts.append([known[k] for k in rest.tolist()])
    return numbers.astype(np.int64), list(zip(*reversed(parts), strict=True))


#: ``"use"``: probability that the junction is made with the V and J gene of the clonotype; ``"ignore"``: with
#: any genes of the model.
ModelCalls: TypeAlias = Literal["use", "ignore"]

#: What is added to the table of clonotypes.
PGEN_FIELDS: Final = (pa.field("pgen_nt", pa.float64()), pa.field("pgen_status", pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PgenColumns:
    """Computes what `PGEN_FIELDS` names; picklable, so that any process can.

    `calls`: whether the genes of a clonotype are taken for what it was made of. Results are kept in `folder`,
    one file for all clonotypes of a part.
    """

    model: RecombinationModel
    calls: ModelCalls
    folder: Path

    def added(self, clonotypes: pa.Table) -> pa.Table:
        """Clonotypes with ``pgen_nt``, null where there is no number, and ``pgen_status``.

        They have the columns junction, v_gene and j_gene, ordered by junction. FormatError if the disk is
        full.
        """
        engine = GenerationProbability(self.model, threads=1)
        path = self.folder / f"pgen-{self._key(clonotypes, engine)}.arrow"
        found = _stored(path, clonotypes.num_rows)
        if found is None:
            found = self._computed(clonotypes, engine)
            with (
                AtomicFile(path, durable=False) as file,
                output_errors(path),
                arrow_ipc.new_file(file.stream, found.schema) as writer,
            ):
                writer.write_table(found)
        for place, name in enumerate(PGEN_FIELDS):
            clonotypes = clonotypes.append_column(name, found.column(place))
        return clonotypes

    def _computed(self, clonotypes: pa.Table, engine: GenerationProbability) -> pa.Table:
        junctions, v, j = (clonotypes[name].combine_chunks() for name in CLONOTYPE)
        if self.calls == "use":
            pgen = engine.compute(junctions, v, j)
            values, codes = pgen.pgen, pgen.status
        else:
            # One junction with several pairs of genes is one text.
            encoded = junctions.dictionary_encode()
            place = np.asarray(encoded.indices)
            pgen = engine.compute(encoded.dictionary)
            values, codes = pgen.pgen[place], pgen.status[place]
        statuses = pa.array(PGEN_STATUSES, pa.string()).take(pa.array(codes.astype(np.int32)))
        return pa.table([pa.array(values, mask=np.isnan(values)), statuses], schema=pa.schema(PGEN_FIELDS))

    def _key(self, clonotypes: pa.Table, engine: GenerationProbability) -> str:
        used = self.calls == "use"
        facts = effective_facts(engine.provenance("nt", used, used).as_dict(), "model")
        found = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16)
        for name in CLONOTYPE:
            letters, starts = letters_of(clonotypes[name].combine_chunks())
            found.update(np.diff(starts).tobytes())
            found.update(letters.data)
        return found.hexdigest()


def _stored(path: Path, rows: int) -> pa.Table | None:
    """What is kept under this name, if it is whole."""
    try:
        with pa.OSFile(str(path)) as source, arrow_ipc.open_file(source) as reader:
            found = reader.read_all()
    except (pa.ArrowException, OSError):
        return None
    return found if found.num_rows == rows and found.schema.equals(pa.schema(PGEN_FIELDS)) else None


_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Measures that have such an interval.
JACKKNIFE_MEASURES: Final = ("spearman", "auc")
#: Subjects below which the spread between them is hardly known.
FEWEST_SUBJECTS: Final = 4


class SubjectCells(NamedTuple):
    """Clonotypes of one subject, counted by two variables and the number of subjects that have them.

    Columns are (m,); y includes this subject.
    """

    x: NDArray[Any]
    z: NDArray[Any]
    y: _Ints
    counts: _Ints


def subject_intervals(
    subjects: Sequence[SubjectCells], *, shared_by: int, confidence: float = 0.95
) -> dict[str, tuple[float, float]]:
    """Intervals for a measure of z less that of x with sharing, over subjects like these.

    By `JACKKNIFE_MEASURES`, those that there is an interval of. Without a subject its clonotypes have one
    subject less, and those that were in it alone are gone. With S subjects and the difference theta_s without
    subject s, the variance is ``(S - 1) / S * sum((theta_s - mean)^2)`` (the jackknife; Efron and Stein 1981,
    *Annals of Statistics* 9: 586-596), and the interval is that of Student's t with S - 1 degrees of freedom.
    """
    if len(subjects) < FEWEST_SUBJECTS:
        return {}
    x, z, y, counts = (np.concatenate(columns) for columns in zip(*subjects, strict=True))
    sizes = [len(one.counts) for one in subjects]
    x_place, z_place = (np.unique(values, return_inverse=True)[1].astype(np.int64) for values in (x, z))
    most = int(y.max(initial=0)) + 1
    pair = (x_place * (int(z_place.max(initial=0)) + 1) + z_place) * most
    # Every clonotype with the sharing that it has, and with one subject less.
    keys, cell = np.unique(np.concatenate([pair + y, pair + y - 1]), return_inverse=True)
    now, before = cell[: len(y)], cell[len(y) :]
    place = np.zeros((3, keys.size), np.int64)
    for row, values in zip(place, (x_place, z_place), strict=False):
        row[now], row[before] = values, values
    place[2] = keys % most
    # A clonotype is counted by every subject that has it.
    total = np.bincount(now, counts, keys.size) / np.maximum(place[2], 1)
    whole = _differences(place, total, shared_by)
    ends = np.cumsum(sizes)
    left_out = []
    for start, end in zip(ends - sizes, ends, strict=True):
        rows = total - np.bincount(now[start:end], counts[start:end], keys.size)
        rows += np.bincount(before[start:end], counts[start:end], keys.size)
        left_out.append(_differences(place, np.where(place[2] > 0, np.rint(rows), 0.0), shared_by))
    reach = student_quantile((1 + confidence) / 2, len(subjects) - 1)
    found = {}
    for k, measure in enumerate(JACKKNIFE_MEASURES):
        values = np.array([one[k] for one in left_out])
        if math.isnan(whole[k]) or np.isnan(values).any():
            continue
        spread = float(np.sum((values - values.mean()) ** 2)) * (len(values) - 1) / len(values)
        if spread > 0:
            half = reach * math.sqrt(spread)
            found[measure] = (whole[k] - half, whole[k] + half)
    return found


def _differences(place: _Ints, rows: _Floats, shared_by: int) -> tuple[float, float]:
    """Both measures of z less those of x."""
    x, z, y = place
    shared = y >= shared_by
    return (
        _spearman(z, y, rows) - _spearman(x, y, rows),
        _area(z, shared, rows) - _area(x, shared, rows),
    )


def _middles(values: _Ints, rows: _Floats) -> tuple[_Floats, float]:
    """Centred mid-distribution value of each cell, and their variance."""
    n = float(rows.sum())
    sums = np.bincount(values, rows)
    middle = (np.cumsum(sums) - sums / 2) / n - 0.5
    return middle[values], (1 - float(np.sum((sums / n) ** 3))) / 12


def _spearman(x: _Ints, y: _Ints, rows: _Floats) -> float:
    n = float(rows.sum())
    if not n:
        return math.nan
    (u, a), (v, b) = _middles(x, rows), _middles(y, rows)
    if min(a, b) < 1e-15:
        return math.nan
    return float(np.sum(rows * u * v)) / n / math.sqrt(a * b)


def _area(x: _Ints, event: NDArray[np.bool_], rows: _Floats) -> float:
    having, without = (np.bincount(x, np.where(kind, rows, 0.0)) for kind in (event, ~event))
    positives, negatives = float(having.sum()), float(without.sum())
    if not (positives and negatives):
        return math.nan
    return float(np.sum(having * (np.cumsum(without) - without / 2))) / positives / negatives


_SWEEP_QUANTILES: Final = {"path_count_q25": 0.25, "path_count_q50": 0.5, "path_count_q75": 0.75}
#: Columns of sweep.tsv.
SWEEP_COLUMNS: Final = ("pi", "nu", "subjects", "counted", "zero_counts", *_SWEEP_QUANTILES)
#: Bins of a factor of ten, of path counts and of Pgen, which spans many more of these.
_COUNT_BINS, _PGEN_BINS = 20, 10
#: Added to the logarithm of Pgen: what is smaller is in the first bin.
_LEAST: Final = 100
#: What rounding may take off a logarithm: a power of ten is in the bin that it begins.
_SLACK: Final = 1e-9
_BLOCK: Final = 1 << 16
#: Cells up to which a block is counted in a full array.
_FULL: Final = 1 << 22
_COLUMN: Final = "path_count_sweep"


@dataclass(slots=True)
class SweepCounts:
    """Clonotypes by model, number of subjects, path count and, if there is one, Pgen. Can be pickled.

    Path counts are in bins of 0.05 of the logarithm to base 10, Pgen in those of 0.1; zeros have a bin of
    their own. So what is held is bounded, and ranks are hardly coarser than they were.
    """

    settings: FigureSettings
    pgen: bool = False
    _bins: ContingencyTable = field(default_factory=ContingencyTable)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes that have path counts and, where it matters, Pgen.

        Columns subjects and, if there is a sweep, path_count_sweep; pgen_nt.
        """
        if _COLUMN not in table.column_names or not self.settings.models:
            return
        for start in range(0, len(table), _BLOCK):
            self._add(table.slice(start, _BLOCK))

    def merge(self, other: SweepCounts) -> None:
        """Add what another one of the same settings holds."""
        self._bins.merge(other._bins)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of sweep.tsv: models in their order, then by number of subjects."""
        for place, (pi, nu) in enumerate(self.settings.models):
            for stratum in self._levels(place):
                bins, _, counts = self._bins.pairs(stratum)
                row = {"pi": pi, "nu": nu, "subjects": int(stratum[1]), "counted": int(counts.sum())}
                row["zero_counts"] = int(counts[bins == 0].sum())
                yield row | {name: _quantile(bins, counts, share) for name, share in _SWEEP_QUANTILES.items()}

    def triples(self, place: int) -> Triples:
        """Path count, Pgen and number of subjects of the clonotypes, under the model at `place`."""
        return triples_of(*_joined(self._bins, self._levels(place)))

    def _levels(self, place: int) -> list[Stratum]:
        """Strata of a model, by number of subjects."""
        of_model = (name for name in self._bins.strata if name[0] == str(place))
        return sorted(of_model, key=lambda name: int(name[1]))

    def _add(self, table: pa.Table) -> None:
        models = len(self.settings.models)
        counts = np.asarray(table[_COLUMN].combine_chunks().flatten()).reshape(len(table), -1)
        if counts.shape[1] != models:
            raise ValueError(f"{counts.shape[1]} counts a clonotype, {models} models")
        levels, level = np.unique(np.asarray(table["subjects"]), return_inverse=True)
        pgen = np.zeros(len(table), np.int64)
        if self.pgen:
            pgen = _bins_of(np.asarray(table["pgen_nt"]), _PGEN_BINS, least=_LEAST)
        base = int(pgen.max(initial=0)) + 1
        for place in range(models):
            bins = _bins_of(counts[:, place], _COUNT_BINS, slack=_SLACK)
            width = int(bins.max(initial=0)) + 1
            keys = (level * width + bins) * base + pgen
            used, found = _counted(keys, len(levels) * width * base)
            rest, z = np.divmod(used, base)
            of_level, x = np.divmod(rest, width)
            names = [(str(place), str(one)) for one in levels.tolist()]
            self._bins.add(x, z, found, strata=(of_level, names))


def _bins_of(values: NDArray[Any], bins: int, *, least: int = 0, slack: float = 0.0) -> NDArray[np.int64]:
    """Bins of logarithms to base 10, so many of a factor of ten: 0 for zero, 1 up to ten to the -`least`."""
    positive = values > 0
    logarithms = np.log10(np.where(positive, values, 1).astype(np.float64))
    found = np.floor((logarithms + least) * bins + slack).astype(np.int64) + 1
    return np.where(positive, np.maximum(found, 1), 0)


def _quantile(bins: NDArray[np.int64], counts: NDArray[np.int64], share: float) -> float:
    """Middle of the first bin that reaches this share of all."""
    ends = np.cumsum(counts)
    place = int(bins[np.searchsorted(ends, share * ends[-1])])
    return 10 ** ((place - 0.5) / _COUNT_BINS) if place else 0.0


def _counted(keys: NDArray[Any], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct keys, and how often each occurs."""
    if size > _FULL:
        used, counts = np.unique(keys, return_counts=True)
        return used.astype(np.int64), counts.astype(np.int64)
    found = np.bincount(keys)
    used = np.flatnonzero(found)
    return used, found[used]


#: Columns of pgen_comparison.tsv.
PGEN_COLUMNS: Final = (
    *("stratum_kind", "stratum", "y", "scope", "pi", "nu", "measure"),
    *("path_count", "pgen", "difference", "low", "high", "subjects_low", "subjects_high", "n"),
)
#: Columns of pgen_statuses.tsv.
PGEN_STATUS_COLUMNS: Final = ("status", "clonotypes", "rows", "shared_clonotypes", "meaning")

#: Leading binary digits to which frequencies are rounded here: no more levels than that takes.
_FREQUENCY_DIGITS: Final = 6


@dataclass(slots=True)
class PgenTables:
    """Counted triples of path count, Pgen and sharing or frequency, in strata. Instances can be pickled.

    Clonotypes without a path count or without Pgen are in none of them; a Pgen of zero is a number like any
    other, the lowest. Strata are those of genes or subjects with the level of sharing or frequency as the
    last word of their names.
    """

    settings: FigureSettings
    _sweep: SweepCounts = field(init=False)
    _by_gene: GeneStrata = field(init=False)
    _by_subject: dict[str, ContingencyTable] = field(default_factory=dict)
    _statuses: Tally = field(default_factory=lambda: Tally(("clonotypes", "rows", "shared_clonotypes")))

    def __post_init__(self) -> None:
        """Begin with empty tables."""
        self._sweep = SweepCounts(self.settings, pgen=True)
        self._by_gene = GeneStrata(self.settings.exact_pairs, self.settings.rounded_pairs)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes, as for `FigureTables.add_clonotypes`, with pgen_nt and pgen_status."""
        shared = (np.asarray(table["subjects"]) >= self.settings.shared_by).astype(np.int64)
        self._statuses.add([table["pgen_status"]], [np.ones(len(table), np.int64), table["rows"], shared])
        known = _known(table)
        self._sweep.add_clonotypes(known)
        levels = np.asarray(known[SHARING]).astype(np.int64)
        self._by_gene.add(*_values(known), strata_of(known, ("v_gene", "j_gene"), levels))

    def add_pairs(self, table: pa.Table) -> None:
        """Add pairs, as for `FigureTables.add_pairs`, with pgen_nt."""
        frequency = next(name for name in FREQUENCIES if name in table.column_names)
        for y in (SHARING, frequency):
            known = _known(table.filter(pc.is_valid(table[y])))
            levels = np.asarray(known[y]).astype(np.int64)
            if y != SHARING:
                levels = _rounded(levels)
            self._subjects(y).add(*_values(known), strata=strata_of(known, ("subject",), levels))

    def merge(self, other: PgenTables) -> None:
        """Add what another one of the same settings holds."""
        self._by_gene.merge(other._by_gene)
        for y, table in other._by_subject.items():
            self._subjects(y).merge(table)
        self._sweep.merge(other._sweep)
        self._statuses.merge(other._statuses)

    def status_rows(self) -> Iterator[dict[str, Any]]:
        """Rows of pgen_statuses.tsv: the most frequent first."""
        found = [(key[0], sums) for key, sums in self._statuses]
        for status, sums in sorted(found, key=lambda one: (-one[1]["clonotypes"], one[0])):
            meaning = MEANINGS["study_pgen"].get(status, STATUS_MEANINGS.get(status, ""))
            yield {"status": status, **sums, "meaning": meaning}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of pgen_comparison.tsv: the single model in all strata, then every model of the sweep."""
        for y in (SHARING, *FREQUENCIES):
            for kind in _KINDS:
                for stratum, triples in self._strata_of(y, kind):
                    yield from self._compared(kind, stratum, y, triples)
        for place, (pi, nu) in enumerate(self.settings.models):
            for row in self._rows("all", "", SHARING, self._sweep.triples(place)):
                yield row | {"scope": "sweep", "pi": pi, "nu": nu}

    def notes(self) -> list[str]:
        """What was rounded to keep tables small, in words."""
        digits = {f"{SHARING} by {kind}": number for kind, number in self._by_gene.digits.items()}
        digits |= {f"{y} by subject": table.digits for y, table in self._by_subject.items()}
        texts = [f"{name} {number}" for name, number in digits.items() if number is not None]
        if not texts:
            return []
        return [
            f"Comparison of path counts and Pgen: as there are more than {self.settings.exact_pairs:,} "
            f"distinct values, they were rounded; binary digits kept: {', '.join(texts)}."
        ]

    def _subjects(self, y: str) -> ContingencyTable:
        chosen = self.settings
        new = ContingencyTable(_SUBJECTS * chosen.rounded_pairs, chosen.exact_pairs)
        return self._by_subject.setdefault(y, new)

    def _strata_of(self, y: str, kind: str) -> Iterator[tuple[str, dict[str, Triples]]]:
        """Strata by name, each with its triples, all of them and those above zero."""
        by_gene = y == SHARING and kind != "subject"
        if not by_gene and (y not in self._by_subject or kind not in ("all", "subject")):
            return
        table = self._by_gene.table(kind) if by_gene else self._by_subject[y]
        if kind == "all" and not by_gene:
            table = table.grouped(lambda stratum: stratum[1:])
        names: dict[Stratum, list[Stratum]] = {}
        for name in table.strata:
            names.setdefault(name[:-1], []).append(name)
        for stratum in sorted(names):
            if "" in stratum:
                continue
            x, z, y_values, counts = _joined(table, names[stratum])
            found = {"all": triples_of(x, z, y_values, counts)}
            if kind == "all":
                above = (x > 0) & (z > 0)
                found["above_zero"] = triples_of(x[above], z[above], y_values[above], counts[above])
            yield " ".join(stratum), found

    def _compared(
        self, kind: str, stratum: str, y: str, triples: dict[str, Triples]
    ) -> Iterator[dict[str, Any]]:
        for scope, chosen in triples.items():
            over = {}
            if (kind, y, scope) == ("all", SHARING, "all"):
                over = self._over_subjects()
            for row in self._rows(kind, stratum, y, chosen, kendall=kind == "all"):
                row["scope"] = scope
                if row["measure"] in over and row["low"] is not None:
                    row["subjects_low"], row["subjects_high"] = over[row["measure"]]
                yield row

    def _rows(
        self, kind: str, stratum: str, y: str, triples: Triples, *, kendall: bool = False
    ) -> Iterator[dict[str, Any]]:
        """One row for each measure."""
        left_out = {name for name, there in (("kendall", kendall), ("auc", y == SHARING)) if not there}
        measures = [name for name in PAIRED_MEASURES if name not in left_out]
        n = int(triples.counts.sum())
        chosen = self.settings
        found = []
        if n >= chosen.fewest:
            threshold = chosen.shared_by
            found = paired_differences(measures, triples, threshold=threshold, confidence=chosen.confidence)
        for k, measure in enumerate(measures):
            row: dict[str, Any] = dict.fromkeys(PGEN_COLUMNS)
            row |= {"stratum_kind": kind, "stratum": stratum, "y": y, "measure": measure, "n": n}
            if found:
                one = found[k]
                values = {"path_count": one.x, "pgen": one.z, "difference": one.difference}
                values |= {"low": one.low, "high": one.high}
                row |= {name: None if np.isnan(value) else value for name, value in values.items()}
            yield row

    def _over_subjects(self) -> dict[str, tuple[float, float]]:
        table = self._by_subject.get(SHARING)
        if table is None:
            return {}
        names: dict[str, list[Stratum]] = {}
        for name in table.strata:
            names.setdefault(name[0], []).append(name)
        cells = [SubjectCells(*_joined(table, names[subject])) for subject in sorted(names)]
        return subject_intervals(
            cells, shared_by=self.settings.shared_by, confidence=self.settings.confidence
        )


def _known(table: pa.Table) -> pa.Table:
    """Rows with a path count and Pgen."""
    return table.filter(pc.and_(pc.is_valid(table["path_count"]), pc.is_valid(table["pgen_nt"])))


def _values(table: pa.Table) -> tuple[NDArray[Any], NDArray[np.float64]]:
    return np.asarray(table["path_count"]), np.asarray(table["pgen_nt"])


def _joined(
    table: ContingencyTable, names: Sequence[Stratum]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Values and counts of some strata, with the level of each."""
    # Behind an empty one, as there may be none.
    pairs = [table.pairs(name) for name in ((), *names)]
    x, z, counts = (np.concatenate([one[k] for one in pairs]) for k in range(3))
    levels = np.array([0, *(int(name[-1]) for name in names)], np.int64)
    return x, z, np.repeat(levels, [len(one.counts) for one in pairs]), counts


def _rounded(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers of 0 or more with a few leading binary digits; the others are made 0."""
    shift = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - _FREQUENCY_DIGITS, 0)
    return (values >> shift) << shift
