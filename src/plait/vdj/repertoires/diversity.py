"""Diversity of repertoires: Hill numbers, estimates of what was not seen, rarefaction, lengths and usage.

Formulae and intervals are those of Chao and others (2014, *Ecological Monographs* 84: 45-67) and of their R
package iNEXT: a clonotype is a species, its copies (reads or molecules) are individuals.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from plait.errors import FormatError, InvalidInput, Unsupported, whole_fields
from plait.formats.atomic import check_different
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.rearrangements import open_rearrangements
from plait.formats.tables import facts_of, open_table
from plait.run.executor import Executor, LocalExecutor
from plait.stats.contingency import q_values
from plait.types import Tabular
from plait.vdj.calls import text_of
from plait.vdj.repertoires.sharing import sharing

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]
_Source: TypeAlias = pa.Table | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: Copies from which may be drawn without replacement (numpy's limit).
_MOST_COPIES: Final = 10**9
#: Ways to deal conditions out to subjects that are all looked at.
_MOST_WAYS: Final = 20_000
#: Standard deviations, and places beside them, beyond which a hypergeometric distribution is 0.
_REACH: Final = (12, 30)
_TERMS: Final = 4096
_ORDERS: Final = (0, 1, 2)


class Abundances(NamedTuple):
    """How often clonotypes occur: `copies` int64 (k,), ascending, and how many have so many, int64 (k,)."""

    copies: _Ints
    clonotypes: _Ints

    @classmethod
    def of(cls, copies: ArrayLike) -> Abundances:
        """Those of clonotypes with so many copies each (n,); those with none do not count."""
        values = np.asarray(copies, np.int64)
        return cls(*(part.astype(np.int64) for part in np.unique(values[values > 0], return_counts=True)))

    @property
    def n(self) -> int:
        """All copies."""
        return int(self.copies @ self.clonotypes)

    @property
    def observed(self) -> int:
        """Number of clonotypes."""
        return int(self.clonotypes.sum())

    def having(self, copies: int) -> int:
        """Number of clonotypes with so many copies."""
        return int(self.clonotypes[self.copies == copies].sum())

    @property
    def shannon(self) -> float:
        """Shannon entropy in nats."""
        share = self.copies / self.n
        return float(-(self.clonotypes * share) @ np.log(share))

    @property
    def concentration(self) -> float:
        """Chance that two copies, drawn with replacement, are of one clonotype."""
        return float(self.clonotypes @ (self.copies / self.n) ** 2)

    def hill(self) -> _Floats:
        """Hill numbers of order 0, 1 and 2, (3,)."""
        return np.array([self.observed, math.exp(self.shannon), 1 / self.concentration])

    def gini(self) -> float:
        """Gini coefficient of the copies: 0 if all clonotypes have as many."""
        last = np.cumsum(self.clonotypes)
        ranks = self.clonotypes * (2 * last - self.clonotypes + 1) / 2
        return float(
            2 * (ranks @ self.copies) / (self.observed * self.n) - (self.observed + 1) / self.observed
        )

    def d50(self) -> int:
        """Fewest clonotypes that have half of all copies."""
        copies, clonotypes = self.copies[::-1], self.clonotypes[::-1]
        before = np.cumsum(copies * clonotypes) - copies * clonotypes
        last = int(np.flatnonzero(2 * before < self.n)[-1])
        rest = -(-(self.n - 2 * int(before[last])) // (2 * int(copies[last])))
        return int(clonotypes[:last].sum()) + rest

    def unseen(self) -> float:
        """Clonotypes that were not seen, at least (Chao 1984, bias-corrected where none has two copies)."""
        n, f1, f2 = self.n, self.having(1), self.having(2)
        return (n - 1) / n * (f1 * f1 / (2 * f2) if f2 else f1 * (f1 - 1) / 2)

    def missing(self) -> float:
        """Share of the singletons' share of the repertoire that was not seen, from 0 to 1."""
        n, f1, f2 = self.n, self.having(1), self.having(2)
        if f1 == 0:
            return 0.0
        ones, twos = ((n - 1) * f1, 2 * f2) if f2 else ((n - 1) * (f1 - 1), 2)
        return ones / (ones + twos)

    def chao1_error(self) -> float:
        """Standard error of the number of clonotypes (Chao 1987)."""
        n, f1, f2 = self.n, self.having(1), self.having(2)
        a = (n - 1) / n
        if f2:
            r = f1 / f2
            return math.sqrt(f2 * (a / 2 * r**2 + a**2 * r**3 + a**2 / 4 * r**4))
        variance = a * f1 * (f1 - 1) / 2 + a**2 * f1 * (2 * f1 - 1) ** 2 / 4
        return math.sqrt(max(variance - a**2 * f1**4 / (4 * (self.observed + self.unseen())), 0.0))

    def asymptotic(self) -> _Floats:
        """Estimated Hill numbers of order 0, 1 and 2 of all that could have been drawn, (3,)."""
        n, f1 = self.n, self.having(1)
        if n < 2:
            return np.full(3, np.nan)
        entropy = float((self.clonotypes * self.copies / n) @ (_digamma(n) - _digamma(self.copies)))
        if 0.0 < (seen := self.missing()) < 1.0:
            entropy += f1 / n * _tail(seen, n - 1)
        pairs = float(self.clonotypes @ (self.copies * (self.copies - 1.0))) / (n * (n - 1.0))
        return np.array([self.observed + self.unseen(), math.exp(entropy), 1 / pairs if pairs else np.nan])

    def at(self, m: int) -> _Floats:
        """Expected Hill numbers of order 0, 1 and 2, and coverage, of m copies (4,).

        m is at least 1. Below n they are rarefied, above n extrapolated; at n they are those observed.
        """
        n = self.n
        if m < n:
            any_, _, terms = _drawn(self, m)
            again = float(_drawn(self, m + 1)[1] @ self.clonotypes) / (m + 1)
            found: list[float] = [
                float(any_ @ self.clonotypes),
                math.exp(terms @ self.clonotypes),
                0.0,
                1 - again,
            ]
        else:
            f1, unseen, seen = self.having(1), self.unseen(), self.missing()
            new = unseen * (1 - (1 - f1 / (n * unseen + f1)) ** (m - n)) if unseen else 0.0
            entropy = self.shannon
            if m > n and not math.isnan(estimate := float(self.asymptotic()[1])):
                entropy = (n * entropy + (m - n) * math.log(estimate)) / m
            found = [self.observed + new, math.exp(entropy), 0.0, 1 - f1 / n * seen ** (m - n + 1)]
        pairs = self.clonotypes @ (self.copies * (self.copies - 1.0)) / (n * max(n - 1.0, 1.0))
        found[2] = float(1 / (1 / m + (m - 1) / m * pairs))
        return np.array(found, np.float64)

    def drawn_again(self, rng: np.random.Generator) -> Abundances:
        """As many copies drawn from the repertoire as it is estimated to be, with what was not seen."""
        n, unseen = self.n, math.ceil(self.unseen())
        share = self.copies / n
        lost = self.having(1) / n * self.missing() if unseen else 0.0
        weight = lost / float((self.clonotypes * share) @ (1 - share) ** n) if lost else 0.0
        chance = np.repeat(share * (1 - weight * (1 - share) ** n), self.clonotypes)
        chance = np.append(chance, max(lost, 0.0))
        drawn = rng.multinomial(n, chance / chance.sum())
        others = rng.integers(max(unseen, 1), size=int(drawn[-1]))
        return Abundances.of(np.append(drawn[:-1], np.unique(others, return_counts=True)[1]))


def drawn_copies(copies: _Ints, m: int, rng: np.random.Generator) -> _Ints:
    """How many of m copies, drawn without replacement, are of each clonotype, int64 (n,)."""
    if copies.sum() >= _MOST_COPIES:
        raise Unsupported(
            f"down-sampling of {copies.sum():,} copies", why=f"at most {_MOST_COPIES - 1:,} can be drawn from"
        )
    return rng.multivariate_hypergeometric(copies, m, method="marginals")


def _drawn(abundances: Abundances, m: int) -> tuple[_Floats, _Floats, _Floats]:
    """Of m copies, for clonotypes of each abundance (k,): chances of any and of one, expected entropy term.

    A clonotype's number among them is hypergeometric; its chances are products of ratios from one number to
    the next, made to add up to 1.
    """
    n, x = float(abundances.n), abundances.copies.astype(np.float64)
    mean = m * x / n
    spread = np.sqrt(mean * (1 - x / n) * (n - m) / max(n - 1, 1))
    reach = _REACH[0] * spread + _REACH[1]
    low = np.maximum(np.maximum(m - (n - x), 0), np.floor(mean - reach))
    high = np.minimum(np.minimum(x, m), np.ceil(mean + reach))
    sizes = (high - low + 1).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    group = np.repeat(np.arange(sizes.size), sizes)
    k = low[group] + np.arange(group.size) - starts[group]
    own = x[group]
    with np.errstate(divide="ignore"):
        ratio = np.log((own - k + 1) * (m - k + 1)) - np.log(k * (n - own - m + k))
    ratio[starts] = 0.0
    total = np.cumsum(ratio)
    total -= total[starts][group]
    chance = np.exp(total - np.maximum.reduceat(total, starts)[group])
    chance /= np.add.reduceat(chance, starts)[group]
    entropy = -chance * k / m * np.log(np.maximum(k, 1) / m)
    sums = [
        np.add.reduceat(part, starts)
        for part in (np.where(k > 0, chance, 0.0), np.where(k == 1, chance, 0.0), entropy)
    ]
    return sums[0], sums[1], sums[2]


def _digamma(x: ArrayLike) -> _Floats:
    """Digamma of numbers of at least 1."""
    values = np.asarray(x, np.float64)
    total = np.zeros_like(values)
    for k in range(16):
        total -= 1 / (values + k)
    y = 1 / (values + 16) ** 2
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
    return total + np.log(values + 16) - 0.5 / (values + 16) - series


def _tail(u: float, m: int) -> float:
    """Sum of u^j / (m + j) over j from 1, 0 < u < 1: first terms, Euler-Maclaurin of the rest."""
    j = np.arange(1, _TERMS + 1)
    first = float((u**j) @ (1 / (m + j)))
    start, decay = m + _TERMS, -math.log(u)
    slope = -1 / start**2 - decay / start
    rest = _scaled_exponential_integral(start * decay) - 0.5 / start - slope / 12
    return first + u**_TERMS * rest


def _scaled_exponential_integral(a: float) -> float:
    """exp(a) E1(a) of a positive number, by its series or its continued fraction."""
    if a < 1:
        total, term = -np.euler_gamma - math.log(a), -1.0
        for k in range(1, 25):
            term *= -a / k
            total += term / k
        return math.exp(a) * total
    value = 0.0
    for k in range(120, 0, -1):
        value = k / (1 + k / (a + value))
    return 1 / (a + value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiversitySettings:
    """How diversity is estimated.

    Attributes
    ----------
    downsample
        Copies that are drawn of every subject, without replacement; those with fewer are left out.
    seed
        What draws depend on, with the name of the subject; not threads.
    replicates
        Repertoires drawn anew for standard errors and intervals.
    knots
        Sample sizes of a rarefaction curve, half of them beyond the sample, up to its double.
    condition
        Column with the condition of a row's subject: usage is compared between two of them.
    """

    downsample: int | None = None
    seed: int = 0
    replicates: int = 50
    knots: int = 20
    condition: str | None = None

    def __post_init__(self) -> None:
        """Check them."""
        whole_fields(self, "seed")
        whole_fields(self, "replicates", least=2, most=1000)
        whole_fields(self, "knots", least=4, most=1000)
        whole_fields(self, "downsample", least=1, most=_MOST_COPIES - 1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RepertoireDiversity(Tabular):
    """Diversity of repertoires, as tables; `to_arrow` gives `diversity`.

    Attributes
    ----------
    diversity
        A row per subject: Hill numbers as observed and as estimated, with intervals of 95 %, and more.
    rarefaction
        A row per subject, order of the Hill number and sample size.
    spectratypes
        Clonotypes and copies per subject, V gene and length of the junction in nucleotides.
    usage
        Clonotypes and copies per subject and V gene, J gene, and pair of both.
    differences
        Usage under two conditions, where there are any, with p-values and q-values.
    left_out
        Subjects with too few copies for the down-sampling, and their copies.
    """

    diversity: pa.Table
    rarefaction: pa.Table
    spectratypes: pa.Table
    usage: pa.Table
    differences: pa.Table | None
    left_out: Mapping[str, int]

    def _table(self, rows: int | None) -> pa.Table:
        return self.diversity.slice(0, rows)


#: Reach of an interval of 95 % in standard errors.
_Z: Final = 1.959963984540054


#: Rows about one subject: of `RepertoireDiversity.diversity`, and of its `rarefaction`.
Estimated: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates of subjects by name, each from its own random numbers; picklable."""

    settings: DiversitySettings

    def __call__(self, subject: tuple[str, Abundances]) -> Estimated:
        """Estimate one."""
        name, found = subject
        rng = np.random.default_rng([self.settings.seed, 1, crc32(name.encode())])
        again = [found.drawn_again(rng) for _ in range(self.settings.replicates)]
        return self._row(name, found, again), self._curve(name, found, again)

    def _row(self, name: str, found: Abundances, again: list[Abundances]) -> dict[str, Any]:
        hill, estimates = found.hill(), found.asymptotic()
        errors = np.nanstd([one.asymptotic() for one in again], axis=0, ddof=1)
        errors[0] = found.chao1_error()
        row: dict[str, Any] = {
            "subject": name,
            "clonotypes": found.observed,
            "copies": found.n,
            "singletons": found.having(1),
            "doubletons": found.having(2),
            "coverage": float(found.at(found.n)[3]),
        }
        for order, observed, estimate, error in zip(_ORDERS, hill, estimates, errors, strict=True):
            low, high = _interval(order, observed, estimate, error)
            told = (observed, estimate, error, low, high)
            for suffix, value in zip(("", "_estimate", "_se", "_low", "_high"), told, strict=True):
                row[f"hill_{order}{suffix}"] = float(value)
        return row | {
            "shannon": found.shannon,
            "simpson": 1 - found.concentration,
            "clonality": 1 - found.shannon / math.log(found.observed) if found.observed > 1 else math.nan,
            "gini": found.gini(),
            "d50": found.d50(),
            "d50_share": found.d50() / found.observed,
        }

    def _curve(self, name: str, found: Abundances, again: list[Abundances]) -> list[dict[str, Any]]:
        n, half = found.n, self.settings.knots // 2
        sizes = np.unique(np.rint(np.concatenate([np.linspace(1, n, half), np.linspace(n, 2 * n, half + 1)])))
        rows = []
        for size in sizes.astype(np.int64).tolist():
            at = found.at(size)
            errors = np.std([one.at(size) for one in again], axis=0, ddof=1)
            part = "rarefied" if size < n else "observed" if size == n else "extrapolated"
            low, high = np.maximum(at - _Z * errors, 0), at + _Z * errors
            rows += [
                {
                    "subject": name,
                    "order": order,
                    "copies": size,
                    "part": part,
                    "diversity": float(at[order]),
                    "low": float(low[order]),
                    "high": float(high[order]),
                    "coverage": float(at[3]),
                    "coverage_low": float(low[3]),
                    "coverage_high": float(min(high[3], 1.0)),
                }
                for order in _ORDERS
            ]
        return rows


def _interval(order: int, observed: float, estimate: float, error: float) -> tuple[float, float]:
    """Interval of 95 %, not below what was observed; what was not is log-normal for order 0 (Chao 1987)."""
    more = estimate - observed
    if order == 0 and more > 0:
        factor = math.exp(_Z * math.sqrt(math.log1p((error / more) ** 2)))
        return observed + more / factor, observed + more * factor
    return float(np.maximum(observed, estimate - _Z * error)), estimate + _Z * error


def diversity(
    source: _Source,
    *,
    settings: DiversitySettings | None = None,
    subject: str | None = None,
    layout: LayoutChoice = AUTO,
    executor: Executor | None = None,
) -> RepertoireDiversity:
    """Diversity of the repertoires of subjects: how many clonotypes, how even, and which genes and lengths.

    Parameters
    ----------
    source
        An Arrow table, or one or more files as for ``plait vdj count``.
    settings
        How it is estimated.
    subject
        Column that tells subjects apart; by default ``subject_id``, or what the layout has for it. Where a
        file has none, its name is its subject.
    layout
        Layout of the source, as of `plait.vdj.sharing`.
    executor
        Where subjects are worked on; by default threads of this process. The tables are the same.

    Returns
    -------
    RepertoireDiversity
        The tables, subjects in alphabetical order.

    Raises
    ------
    InvalidInput
        If a setting is out of range, or no subject has enough copies.
    FormatError
        If a file is not what it should be, or a subject has several conditions.
    Unsupported
        If a subject that is to be down-sampled has 10^9 copies or more.

    Notes
    -----
    A clonotype is a junction with its V and J gene, as for `sharing`; its copies are the sum of its
    ``duplicate_count``, or its rows where the table has none. Estimates are those of Chao and others (2014,
    *Ecological Monographs* 84: 45-67): asymptotic Hill numbers, rarefaction, extrapolation and coverage.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from plait.vdj import diversity
    >>> table = pa.table(
    ...     {
    ...         "junction": ["TGTGCCTTC", "TGTAGCTTC", "TGTAGTTTC"],
    ...         "v_call": ["TRBV1*01"] * 3,
    ...         "j_call": ["TRBJ1-1*01"] * 3,
    ...         "subject_id": ["a"] * 3,
    ...         "duplicate_count": [2, 1, 1],
    ...     }
    ... )
    >>> diversity(table).diversity.select(["subject", "copies", "hill_0", "hill_2"]).to_pylist()
    [{'subject': 'a', 'copies': 4, 'hill_0': 3.0, 'hill_2': 2.6666666666666665}]
    """
    wanted = settings or DiversitySettings()
    workers = executor or LocalExecutor()
    found = sharing(source, subject=subject, layout=layout).by_subject
    counted = "duplicate_count" in found.column_names
    copies = pc.coalesce(found["duplicate_count"], found["rows"]) if counted else found["rows"]
    rows = found.select(["subject", "junction", "v_gene", "j_gene"]).append_column("copies", copies)
    rows, left_out = _downsampled(rows.sort_by("subject"), wanted)
    by_subject = [(name, Abundances.of(part["copies"].to_numpy())) for name, part in _parts(rows)]
    estimated = list(workers.map(Estimator(wanted), by_subject))
    lengths = rows.append_column("length", pc.utf8_length(rows["junction"]).cast(pa.int64()))
    usage = _usage(rows)
    conditions = {} if wanted.condition is None else _conditions(source, wanted.condition, subject, layout)
    names = [name for name, _ in by_subject]
    return RepertoireDiversity(
        diversity=pa.Table.from_pylist([row for row, _ in estimated]),
        rarefaction=pa.Table.from_pylist([row for _, curve in estimated for row in curve]),
        spectratypes=_sums(lengths, ["subject", "v_gene", "length"]),
        usage=usage,
        differences=None if wanted.condition is None else _differences(usage, names, conditions),
        left_out=left_out,
    )


def _parts(rows: pa.Table) -> list[tuple[str, pa.Table]]:
    """The rows of each subject, which stand together."""
    names = rows["subject"].combine_chunks().dictionary_encode()
    ends = np.searchsorted(names.indices.to_numpy(), np.arange(len(names.dictionary) + 1))
    return [
        (name, rows.slice(low, high - low))
        for name, low, high in zip(names.dictionary.to_pylist(), ends, ends[1:], strict=False)
    ]


def _downsampled(rows: pa.Table, settings: DiversitySettings) -> tuple[pa.Table, dict[str, int]]:
    """What is drawn of each subject, and copies of those that have too few."""
    kept, left_out = [rows.slice(0, 0)], {}
    for name, part in _parts(rows.filter(pc.greater(rows["copies"], 0))):
        copies = part["copies"].to_numpy()
        if settings.downsample is not None:
            if copies.sum() < settings.downsample:
                left_out[name] = int(copies.sum())
                continue
            rng = np.random.default_rng([settings.seed, 0, crc32(name.encode())])
            # The order in which clonotypes stand must not matter.
            order = [(column, "ascending") for column in ("junction", "v_gene", "j_gene")]
            part = part.sort_by(order)
            drawn = pa.array(drawn_copies(part["copies"].to_numpy(), settings.downsample, rng))
            part = part.set_column(part.column_names.index("copies"), "copies", drawn)
            part = part.filter(pc.greater(part["copies"], 0))
        kept.append(part)
    if len(kept) == 1:
        few = f"at most {max(left_out.values()):,} copies in a subject" if left_out else "no clonotypes"
        at_least = settings.downsample or 1
        raise InvalidInput("diversity", found=few, expected=f"a subject with {at_least:,} copies or more")
    return pa.concat_tables(kept), left_out


def _sums(rows: pa.Table, by: list[str]) -> pa.Table:
    """Clonotypes and copies of each group, in order."""
    grouped = rows.group_by(by, use_threads=False).aggregate([("copies", "count"), ("copies", "sum")])
    ordered = grouped.sort_by([(name, "ascending") for name in by])
    return ordered.select([*by, "copies_count", "copies_sum"]).rename_columns([*by, "clonotypes", "copies"])


def _usage(rows: pa.Table) -> pa.Table:
    """Clonotypes and copies of each V gene, J gene and pair, with their shares of the subject's."""
    totals = {row["subject"]: row for row in _sums(rows, ["subject"]).to_pylist()}
    found = []
    for segment, genes in (("V", ["v_gene"]), ("J", ["j_gene"]), ("VJ", ["v_gene", "j_gene"])):
        for row in _sums(rows, ["subject", *genes]).to_pylist():
            total = totals[row["subject"]]
            shares = {f"{name}_share": row[name] / total[name] for name in ("clonotypes", "copies")}
            found.append(
                {"subject": row["subject"], "segment": segment, "v_gene": "", "j_gene": ""} | row | shares
            )
    return pa.Table.from_pylist(found)


def _conditions(source: _Source, column: str, subject: str | None, layout: LayoutChoice) -> dict[str, str]:
    """The condition of each subject that has one."""
    found: dict[str, str] = {}

    def add(block: Any, role: str) -> None:
        pairs = pa.table({"subject": text_of(block[role]), "condition": text_of(block[column])})
        for row in pairs.group_by(["subject", "condition"], use_threads=False).aggregate([]).to_pylist():
            condition = row["condition"].strip()
            if condition and found.setdefault(row["subject"], condition) != condition:
                raise FormatError(
                    "the table" if isinstance(source, pa.Table) else source,
                    column=column,
                    found=f"{found[row['subject']]!r} and {condition!r} for the subject {row['subject']!r}",
                    expected="one condition a subject",
                )

    def check(names: Sequence[str]) -> None:
        if column not in names:
            raise InvalidInput(
                "condition", found=repr(column), expected=f"one of the columns {', '.join(names[:20])}"
            )

    if isinstance(source, pa.Table):
        check(source.column_names)
        for batch in source.to_batches():
            add(batch, subject or "subject_id")
        return found
    with open_rearrangements(
        source, layout=layout, block_rows=1 << 16, named="subject_id" if subject is None else None
    ) as reader:
        check(reader.schema.names)
        for block in reader:
            add(block, subject or reader.roles["subject"])
    return found


def _differences(usage: pa.Table, names: list[str], conditions: Mapping[str, str]) -> pa.Table:
    """Mean shares of clonotypes under two conditions, with p-values of the rank sum, and q-values."""
    pair = sorted({conditions[name] for name in names if name in conditions})
    if len(pair) != 2:
        raise InvalidInput("condition", found=f"the conditions {pair}", expected="two among the subjects")
    members = [name for name in names if name in conditions]
    first = np.array([conditions[name] == pair[0] for name in members])
    place = {name: k for k, name in enumerate(members)}
    shares: dict[tuple[str, str, str], _Floats] = {}
    for row in usage.to_pylist():
        if row["subject"] in place:
            key = (row["segment"], row["v_gene"], row["j_gene"])
            shares.setdefault(key, np.zeros(len(members)))[place[row["subject"]]] = row["clonotypes_share"]
    rows = []
    for (segment, v_gene, j_gene), values in sorted(shares.items()):
        means = float(values[first].mean()), float(values[~first].mean())
        rows.append(
            {
                "segment": segment,
                "v_gene": v_gene,
                "j_gene": j_gene,
                "condition_a": pair[0],
                "condition_b": pair[1],
                "mean_a": means[0],
                "mean_b": means[1],
                "p_value": rank_sum_p(values, first),
            }
        )
    p, of = np.array([row["p_value"] for row in rows]), np.array([row["segment"] for row in rows])
    q = np.empty_like(p)
    for segment in np.unique(of):
        q[of == segment] = q_values(p[of == segment], int((of == segment).sum()))
    return pa.Table.from_pylist(rows).append_column("q_value", pa.array(q))


@lru_cache(maxsize=2)
def _ways(n: int, size: int) -> _Ints:
    """All sets of so many of n members, int64 (sets, size)."""
    return np.array(list(combinations(range(n), size)), np.int64)


def rank_sum_p(values: _Floats, first: NDArray[np.bool_]) -> float:
    """Two-sided p-value that values (n,) of two groups are alike (Wilcoxon's rank sum, ties included).

    All ways of dealing out the groups are looked at where there are at most 20,000, else the sum is normal.
    """
    ranks = (values[:, None] > values).sum(1) + ((values[:, None] == values).sum(1) + 1) / 2
    n, size = values.size, int(first.sum())
    off = abs(ranks[first].sum() - size * (n + 1) / 2)
    if math.comb(n, size) <= _MOST_WAYS:
        sums = ranks[_ways(n, size)].sum(1)
        return float((np.abs(sums - size * (n + 1) / 2) >= off - 1e-9).mean())
    variance = size * (n - size) / n * float(ranks.var(ddof=1))
    return math.erfc(off / math.sqrt(2 * variance)) if variance else 1.0


def diversity_files(
    inputs: Sequence[str | os.PathLike[str]],
    outputs: Mapping[str, str | os.PathLike[str] | None],
    *,
    settings: DiversitySettings,
    subject: str | None = None,
    layout: LayoutChoice = AUTO,
    executor: Executor | None = None,
) -> RepertoireDiversity:
    """As `diversity`, with the tables that `outputs` names written; all of them or none."""
    if outputs.get("differences") is not None and settings.condition is None:
        raise InvalidInput("differences", found="no column of conditions", expected="--condition with it")
    check_different(*outputs.values())
    found = diversity(inputs, settings=settings, subject=subject, layout=layout, executor=executor)
    facts = {"settings": asdict(settings), "left_out": dict(found.left_out)}
    metadata = facts_of("diversity", inputs, **facts)
    with ExitStack() as stack:
        for name, path in outputs.items():
            if path is not None:
                table: pa.Table = getattr(found, name)
                writer = open_table(path, table.schema, metadata=metadata, inputs=inputs)
                stack.enter_context(writer)
                writer.write(table)
    return found
