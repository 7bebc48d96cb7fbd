"""Known specificities: how many clonotypes are near receptors of a query, and more than by chance.

Chance is a background: junctions drawn from a recombination model, or clonotypes of control repertoires. Of
all near a query, in repertoires or background, the number in repertoires is binomial if these are alike.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput, whole_fields
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.rearrangements import RearrangementReader
from plait.formats.tables import facts_of, open_table
from plait.run.executor import Executor, LocalExecutor
from plait.stats.contingency import q_values
from plait.vdj.airr import translations
from plait.vdj.alleles.sites import binomial_tail
from plait.vdj.calls import ClonotypeKey, first_genes, text_of
from plait.vdj.model import RecombinationModel
from plait.vdj.model.sampling import BlockDraws
from plait.vdj.repertoires.neighbours import distance_limit, matches
from plait.vdj.repertoires.sharing import SharingSettings, sharing

_Ints: TypeAlias = NDArray[np.int64]
_Path: TypeAlias = str | os.PathLike[str]
_Source: TypeAlias = pa.Table | _Path | Sequence[_Path]

_BLOCK_ROWS: Final = 1 << 16
_BLOCK_DRAWS: Final = 1 << 16
#: Blocks without a productive junction, after which a model is taken for one that makes none.
_MOST_EMPTY: Final = 64
_SEPARATOR: Final = "\t"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourSettings:
    """What is near a query.

    Attributes
    ----------
    key
        What is compared, as in `SharingSettings`: genes in it have to be the same.
    mismatches, edits
        Most mismatches, or edits, between junctions; one mismatch if neither is given.
    draws
        Productive junctions drawn from a model for the background.
    seed
        What they depend on.
    """

    key: str = "cdr3aa+v+j"
    mismatches: int | None = None
    edits: int | None = None
    draws: int = 1_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Check them."""
        ClonotypeKey.named(self.key)
        if self.mismatches is None and self.edits is None:
            object.__setattr__(self, "mismatches", 1)
        distance_limit(self.mismatches, self.edits)
        whole_fields(self, "draws", least=1, most=1_000_000_000)
        whole_fields(self, "seed", most=2**63 - 1)


class _Clonotypes(NamedTuple):
    """Clonotypes with the texts of a key, junction first, and in how many subjects each is, int64 (n,)."""

    columns: list[pa.Array]
    subjects: _Ints


@dataclass(frozen=True, kw_only=True)
class Specificities:
    """What is near the receptors of a query.

    Attributes
    ----------
    table
        The rows of the query with all columns, and behind them ``neighbours`` (clonotypes near it),
        ``neighbour_subjects``, ``occurrences`` (a clonotype in three subjects occurs three times),
        ``background``, ``expected`` occurrences, ``fold``, ``p_value`` and ``q_value``; null in rows without
        a junction or a gene that the key has.
    occurrences
        Occurrences of all clonotypes.
    background
        Junctions of the background.
    clonotypes, subjects
        Distinct clonotypes, and subjects.
    """

    table: pa.Table
    occurrences: int
    background: int
    clonotypes: int
    subjects: int


def specificities(
    queries: _Path,
    source: _Source,
    background: RecombinationModel | _Source,
    *,
    settings: NeighbourSettings | None = None,
    subject: str | None = None,
    layout: LayoutChoice = AUTO,
    executor: Executor | None = None,
) -> Specificities:
    """Count the clonotypes near each receptor of a query, and compare with a background.

    Parameters
    ----------
    queries
        A table of receptors, with junctions (amino acids) and calls as the key has them, and any others.
    source
        Repertoires: an Arrow table, or one or more files as for ``plait vdj count``.
    background
        A recombination model, or control repertoires as `source`.
    settings
        What is near.
    subject
        Column that tells subjects apart; by default ``subject_id``, or what the layout has for it.
    layout
        Layout of all tables, as of `plait.vdj.sharing`.
    executor
        Where the work is done; by default threads of this process. The results are the same.

    Returns
    -------
    Specificities
        The rows of the query with what is near them.

    Raises
    ------
    InvalidInput
        If a setting is out of range, the query has a column of a result, or there are no clonotypes.
    FormatError
        If a file is not what it should be.

    Notes
    -----
    Occurrences in different subjects are taken for independent, as are draws. p-values are one-sided, for
    more occurrences than expected, and exact given both numbers; q-values are those of Benjamini and Hochberg
    over the query.
    """
    wanted = settings or NeighbourSettings()
    workers = executor or LocalExecutor()
    table, query, known = _read_queries(queries, wanted, layout)
    of_key = SharingSettings(key=wanted.key, subject=subject, layout=layout)
    shared = sharing(source, settings=of_key, executor=executor)
    target = _of_table(shared.clonotypes, wanted.key)
    if isinstance(background, RecombinationModel):
        control = _drawn(background, wanted, workers)
    else:
        control = _of_table(sharing(background, settings=of_key, executor=executor).clonotypes, wanted.key)
    totals = int(target.subjects.sum()), int(control.subjects.sum())
    if not all(totals):
        raise InvalidInput("specificities", found="no clonotypes", expected="some, and a background")
    found = _counts(query, target, control, shared.by_subject, wanted, workers)
    for name, values in found.items():
        # Rows without a key take nothing.
        whole = np.zeros(table.num_rows, values.dtype)
        whole[known] = values
        missing = np.ones(table.num_rows, np.bool_)
        missing[known] = np.isnan(values)
        table = table.append_column(name, pa.array(whole, mask=missing))
    return Specificities(
        table=table,
        occurrences=totals[0],
        background=totals[1],
        clonotypes=shared.clonotypes.num_rows,
        subjects=len(shared.subjects),
    )


def _counts(
    query: list[pa.Array],
    target: _Clonotypes,
    control: _Clonotypes,
    by_subject: pa.Table,
    settings: NeighbourSettings,
    executor: Executor,
) -> dict[str, NDArray[Any]]:
    """The columns of the result, (n,) each; clonotypes stand in the order of their rows by subject."""
    n = len(query[0])
    of, near = _near(query, target, settings, executor)
    times, starts = target.subjects[near], np.cumsum(target.subjects) - target.subjects
    who = by_subject["subject"].combine_chunks().dictionary_encode()
    place = np.repeat(starts[near] - (np.cumsum(times) - times), times) + np.arange(times.sum())
    whose = np.asarray(who.indices)[place].astype(np.int64)
    pairs = np.unique(np.repeat(of, times) * len(who.dictionary) + whose)
    other, drawn = _near(query, control, settings, executor)
    seen, chance = (
        np.bincount(k, w, n).astype(np.int64) for k, w in ((of, times), (other, control.subjects[drawn]))
    )
    totals = int(target.subjects.sum()), int(control.subjects.sum())
    rate, expected = totals[0] / sum(totals), chance * (totals[0] / totals[1])
    p = np.array([binomial_tail(x, x + y, rate) for x, y in zip(seen.tolist(), chance.tolist(), strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        fold = np.where(chance > 0, seen / expected, np.nan)
    values = (
        np.bincount(of, minlength=n),
        np.bincount(pairs // len(who.dictionary), minlength=n),
        seen,
        chance,
    )
    return dict(zip(_RESULTS, (*values, expected, fold, p, q_values(p, n)), strict=True))


#: Columns of the result.
_RESULTS: Final = (
    *("neighbours", "neighbour_subjects", "occurrences", "background"),
    *("expected", "fold", "p_value", "q_value"),
)


def _read_queries(
    path: _Path, settings: NeighbourSettings, layout: LayoutChoice
) -> tuple[pa.Table, list[pa.Array], _Ints]:
    """All rows of a query, the columns of the key of those that have them, and which these are."""
    key = ClonotypeKey.named(settings.key)
    junction, *others = key.required
    with RearrangementReader([path], layout=layout, block_rows=_BLOCK_ROWS, required=key.required) as reader:
        table, at = pa.Table.from_batches(reader, schema=reader.schema), reader.roles
    clash = [name for name in _RESULTS if name in table.column_names]
    if clash:
        raise InvalidInput(
            "queries", found=f"the column {clash[0]!r}", expected="other names than of results"
        )
    texts = text_of(table[at[junction[0]]].combine_chunks())
    if key.acids and at[junction[0]] == "junction":
        texts = pc.fill_null(translations(texts), "").cast(pa.large_string())
    calls = [first_genes(table[at[role]].combine_chunks()) for (role,) in others]
    columns = [pc.utf8_upper(texts), *calls]
    known = np.flatnonzero(np.all([np.asarray(pc.not_equal(column, "")) for column in columns], axis=0))
    return table, [column.take(pa.array(known)) for column in columns], known


def _of_table(clonotypes: pa.Table, key: str) -> _Clonotypes:
    columns = [clonotypes[name].combine_chunks() for name in ClonotypeKey.named(key).columns]
    return _Clonotypes(columns, clonotypes["subjects"].to_numpy().astype(np.int64))


def _drawn(model: RecombinationModel, settings: NeighbourSettings, executor: Executor) -> _Clonotypes:
    """The first productive junctions drawn from a model, each in a subject of its own."""
    key = ClonotypeKey.named(settings.key)
    work = BlockDraws(model, settings.seed, True, _BLOCK_DRAWS)
    names = ["junction_aa" if key.acids else "junction", *(f"{s}_call" for s in "vj" if getattr(key, s))]
    parts, rows = [], 0
    with closing(executor.map(work, itertools.count())) as blocks:
        for number, block in enumerate(blocks, 1):
            parts.append(block.select(names))
            rows += block.num_rows
            if rows >= settings.draws:
                break
            if rows == 0 and number == _MOST_EMPTY:
                found = f"{model.name!r}, which makes no productive junction"
                raise InvalidInput("model", found=found, expected="one that makes some")
    table = pa.Table.from_batches(parts).slice(0, settings.draws)
    junctions, *calls = (table[name].combine_chunks() for name in names)
    columns = [junctions.cast(pa.large_string()), *map(first_genes, calls)]
    return _Clonotypes(columns, np.ones(table.num_rows, np.int64))


def _near(
    query: list[pa.Array], target: _Clonotypes, settings: NeighbourSettings, executor: Executor
) -> tuple[_Ints, _Ints]:
    """Pairs of a receptor and a clonotype of the same genes that are near each other."""
    groups = np.zeros(len(query[0]) + len(target.columns[0]), np.int64)
    if len(query) > 1:
        both = [pa.concat_arrays([a, b]) for a, b in zip(query[1:], target.columns[1:], strict=True)]
        genes = pc.binary_join_element_wise(*both, pa.scalar(_SEPARATOR, pa.large_string()))
        groups = np.asarray(genes.dictionary_encode().indices).astype(np.int64)
    cut = len(query[0])
    # Only genes of the query matter.
    kept = np.flatnonzero(np.isin(groups[cut:], groups[:cut]))
    junctions = target.columns[0].take(pa.array(kept))
    i, j = matches(
        *(query[0], groups[:cut], junctions, groups[cut:][kept]),
        mismatches=settings.mismatches,
        edits=settings.edits,
        executor=executor,
    )
    return i, kept[j]


def specificity_file(
    queries: _Path,
    inputs: Sequence[_Path],
    output: _Path,
    background: RecombinationModel | Sequence[_Path],
    **options: Any,
) -> Specificities:
    """As `specificities`, with the table written to `output`."""
    found = specificities(queries, inputs, background, **options)
    facts: dict[str, Any] = {"queries": os.path.realpath(queries)}
    facts |= {"occurrences": found.occurrences, "background": found.background}
    read = [queries, *inputs]
    if isinstance(background, RecombinationModel):
        facts["model"] = background.identity()
    else:
        facts["control"] = [os.path.realpath(path) for path in background]
        read += background
    metadata = facts_of("neighbours", inputs, **facts)
    with open_table(output, found.table.schema, metadata=metadata, inputs=read) as writer:
        writer.write(found.table.combine_chunks())
    return found
