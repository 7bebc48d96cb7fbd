"""Tables of other programs as AIRR Rearrangement tables: their columns, and how these are to be read.

A layout says under which names a kind of table keeps what AIRR has fields for. It is recognised by the
header, or named. What it gives stands behind the columns of the table, under AIRR's names and as AIRR means
it: a junction holds the conserved codons, calls are names as IMGT writes them with commas between.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from plait.errors import FormatError, InvalidInput, one_of
from plait.formats.checkpoints import letters_of

REQUIRED_ROLES: Final = ("junction", "v_call", "j_call")
#: Recognised by the header.
AUTO: Final = "auto"
#: A layout by name, or names of columns by AIRR field: the others are found by the header.
LayoutChoice: TypeAlias = str | Mapping[str, str]

_SHOWN_COLUMNS = 20
_CALLS: Final = ("v_call", "d_call", "j_call", "c_call")
_NUMBERS: Final = ("duplicate_count", "consensus_count")
#: AIRR fields that are made, in this order; what else layouts name is what they are made from.
FIELDS: Final = (
    *("sequence_id", "cell_id", "repertoire_id", "subject_id", "locus", *_CALLS, "junction", "junction_aa"),
    *("productive", *_NUMBERS),
)
#: What a junction is made from where there is none: a part of a read, or the CDR3 and the regions around it.
_CUT: Final = ("read", "junction_start", "junction_length")
_AROUND: Final = ("cdr3", "fwr3", "fwr4")
#: What the first word of a cell says of productivity.
_PRODUCTIVE: Final = {
    **dict.fromkeys(("true", "t", "1", "in", "productive"), True),
    **dict.fromkeys(("false", "f", "0", "out", "stop", "unproductive"), False),
}
#: Junctions that are looked at, the fewest that tell, and the least share of them with conserved codons.
_LOOKED_AT, _FEWEST, _LEAST_SHARE = 1000, 20, 0.3
#: Different texts of a column that are kept with what they mean.
_MOST_KNOWN: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one kind of table keeps each field.

    `name` is as given to ``--layout``, `description` one line for messages. `columns` has for each AIRR
    field, or what one is made from, the column names accepted for it, case sensitive, the preferred one
    first. A table has the fields `required`, and one of the columns `marks` if there are any. `header` names
    the columns of text without a header line, as far as they go, and `first_row` is a regular expression for
    its first line.

    `names` says how genes are called; cells `missing` hold nothing; a junction is `partial` if the column of
    this name holds one of these. Columns `renamed` have the name of an AIRR field and hold something else.
    `rounded` numbers of reads may be fractions; `ragged` lines may be short.
    """

    name: str
    description: str
    columns: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...] = REQUIRED_ROLES
    marks: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    first_row: str = ""
    names: str = "plain"
    missing: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    rounded: bool = False
    ragged: bool = False

    def sources(self, columns: Sequence[str]) -> dict[str, str]:
        """Column of every field, and of what fields are made from, that a table with these columns has."""
        found = {
            field: next((n for n in names if n in columns), None) for field, names in self.columns.items()
        }
        return {field: name for field, name in found.items() if name is not None}

    def given(self, columns: Sequence[str]) -> set[str]:
        """Fields that such a table has or that can be made."""
        found = set(self.sources(columns))
        made = any(found >= set(parts) for parts in (_CUT, _AROUND))
        return found | ({"junction"} if made else set())

    def fits(self, columns: Sequence[str], required: Sequence[tuple[str, ...]] = ()) -> bool:
        """Whether there is a field of each of `required`, by default the layout's own, and a mark."""
        marked = not self.marks or bool(set(self.marks).intersection(columns))
        return marked and not self.missing_of(columns, required)

    def missing_of(self, columns: Sequence[str], required: Sequence[tuple[str, ...]] = ()) -> list[str]:
        """The first name of those of `required` that have no column."""
        found = self.given(columns)
        return [names[0] for names in self._wanted(required) if not found.intersection(names)]

    def wanted_text(self, required: Sequence[tuple[str, ...]] = ()) -> str:
        """Required columns worded for a message, alternatives joined by ``or``."""
        return ", ".join(
            " or ".join(name for field in names for name in self.accepted(field))
            for names in self._wanted(required)
        )

    def accepted(self, field: str) -> tuple[str, ...]:
        """Names of columns that a field may have, or be made from; its own if the layout has none."""
        made = self.columns.get("read", ()) if field == "junction" else ()
        return self.columns.get(field, made) or (field,)

    def _wanted(self, required: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
        return required or [(name,) for name in self.required]


def _layouts() -> Iterator[Layout]:
    """The layouts of ``data/layouts.json``."""
    told = json.loads((Path(__file__).with_name("data") / "layouts.json").read_text("utf-8"))
    for name, own in told.items():
        one = {**told.get(own.pop("like", None), {}), **own}
        columns = {field: tuple(names) for field, names in one.pop("columns").items()}
        lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in one.items()}
        yield Layout(name=name, columns=columns, **lists)


#: The layouts by name, in the order in which a header is compared with them.
LAYOUTS: Final[Mapping[str, Layout]] = {layout.name: layout for layout in _layouts()}
AIRR: Final = LAYOUTS["airr"]


def check_layout(choice: LayoutChoice) -> None:
    """Check that a layout can be chosen so; InvalidInput if there is none of that name, or no such field."""
    if isinstance(choice, str):
        one_of("layout", choice, (AUTO, *LAYOUTS))
        return
    for name in choice:
        if name not in ("layout", *FIELDS):
            raise InvalidInput("column", found=repr(name), expected=f"one of {', '.join(FIELDS)}")
    check_layout(choice.get("layout", AUTO))


def columns_given(layout: str, pairs: Sequence[str]) -> LayoutChoice:
    """A layout and pairs ``junction=cdr3_nt`` as one choice; InvalidInput if one is no pair, or twice."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not (name and equals and column) or name in found:
            expected = "FIELD=COLUMN, every field once, as junction=cdr3_nt"
            raise InvalidInput("column", found=repr(pair), expected=expected)
        found[name] = column
    return {"layout": layout, **found} if found else layout


def layout_of(
    path: str | os.PathLike[str],
    choice: LayoutChoice,
    columns: Sequence[str],
    first_line: str = "",
    required: Sequence[tuple[str, ...]] = (),
) -> Layout:
    """The layout of a table with these columns, chosen or recognised.

    `first_line` is that of text, `required` as of `Layout.fits`. FormatError if the table does not have the
    columns of the chosen layout, or fits none.
    """
    check_layout(choice)
    own = {} if isinstance(choice, str) else {key: name for key, name in choice.items() if key != "layout"}
    named = choice if isinstance(choice, str) else choice.get("layout", AUTO)
    for name in own.values():
        if name not in columns:
            found = f"the columns {_shown(columns)}"
            raise FormatError(path, found=found, expected=f"a column {name!r}, as --column says")
    known = [with_columns(layout, own) for layout in LAYOUTS.values()]
    if named == AUTO:
        # Tables without a header are looked for first: their first row is no header of any other. Then come
        # those that are all that their layout asks for: Cell Ranger's regions are no AIRR junction.
        known.sort(key=lambda layout: (not layout.first_row, not layout.fits(columns)))
        for layout in known:
            if layout.first_row and re.match(layout.first_row, first_line):
                return layout
            if not layout.first_row and layout.fits(columns, required):
                return layout
        nearest = min(known, key=lambda one: (len(one.missing_of(columns, required)), one.name != "airr"))
        raise _missing_columns(nearest, path, columns, required, AUTO)
    layout = with_columns(LAYOUTS[named], own)
    if not layout.header and not layout.fits(columns, required):
        raise _missing_columns(layout, path, columns, required, named)
    return layout


def with_columns(layout: Layout, own: Mapping[str, str]) -> Layout:
    """The layout with other columns for some fields."""
    return (
        replace(layout, columns={**layout.columns, **{k: (name,) for k, name in own.items()}})
        if own
        else layout
    )


def _shown(columns: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in columns[:_SHOWN_COLUMNS])
    more = len(columns) - _SHOWN_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


def _missing_columns(
    layout: Layout, path: object, columns: Sequence[str], required: Sequence[tuple[str, ...]], asked: str
) -> FormatError:
    lacking = ", ".join(" or ".join(layout.accepted(name)) for name in layout.missing_of(columns, required))
    wanted = f"the columns {layout.wanted_text(required)} (missing: {lacking})"
    others = ", ".join(name for name in LAYOUTS if name != layout.name)
    known = f", or a table of {others}" if asked == AUTO else ""
    return FormatError(
        path,
        found=f"the columns {_shown(columns)}",
        expected=f"layout {layout.name!r} with {wanted}{known}",
        hint=_header_hint(layout, columns, required),
    )


def _header_hint(layout: Layout, columns: Sequence[str], required: Sequence[tuple[str, ...]]) -> str | None:
    if len(columns) == 1 and columns[0].startswith(("@", ">")):
        return "of reads in FASTQ or FASTA, plait vdj annotate makes such a table"
    if re.fullmatch("C[A-Z]{4,}[FW]|TG[TC][ACGT]{4,}", "".join(columns[:1])):
        return "there is no header: plait vdj pgen, scenarios and infer read such text with --layout lines"
    fitting = [other.name for other in LAYOUTS.values() if other.fits(columns, required)]
    if fitting:
        return f"the header fits layout {fitting[0]!r}: choose it with --layout {fitting[0]}"
    if "cdr3" in layout.sources(columns) and "junction" not in layout.given(columns):
        return (
            "a CDR3 as IMGT delimits it lacks the conserved codons, which stand in fwr3 and fwr4: add these "
            "columns, or the junction"
        )
    lowered = {name.strip().lower() for name in columns}
    missing = layout.missing_of(columns, required)
    if any(name.lower() in lowered for field in missing for name in layout.accepted(field)):
        return "column names are matched exactly, including upper and lower case and blanks"
    return f"say where they are: {' '.join(f'--column {name}=NAME' for name in missing)}"


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text, in any of Arrow's ways: string, large string and string view."""
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def as_int64(column: pa.Array) -> pa.Array:
    """Numbers, or text with numbers, as whole numbers; 12.0 is 12. pyarrow.ArrowInvalid for anything else."""
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        # Some programs write whole numbers as 12.0, for the sake of missing ones.
        return column.cast(pa.float64()).cast(pa.int64())


class InputFile(Protocol):
    """A file that is read in batches."""

    path: str | os.PathLike[str]
    schema: pa.Schema
    bytes_read: int
    blank_lines: int

    def batches(self, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, up to so many at a time; of the `columns` that are given, if not of others."""
        ...


class TableInput:
    """A table in memory, in the place of a file."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self.path: str | os.PathLike[str] = "the table"
        self.schema = table.schema
        self.bytes_read = self.blank_lines = 0
        self._table = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])

    def batches(self, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, up to so many at a time, with all columns."""
        yield from self._table.to_batches(max_chunksize=max_rows)


#: Makes a field of a batch whose first row has a number.
_Make: TypeAlias = Callable[[pa.RecordBatch, int], pa.Array]


class ConvertedFile:
    """A file with AIRR fields behind its columns, and `facts`, texts that are the same in all rows.

    Columns that have the name of a new one, or are `renamed`, are called ``input_NAME``. FormatError, with
    its record, for what cannot be read as the layout says.
    """

    def __init__(self, file: InputFile, layout: Layout, facts: Mapping[str, str]) -> None:
        self._file = file
        self.path = file.path
        self._layout = layout
        self._sources = layout.sources(file.schema.names)
        self._known: dict[str, dict[str, Any]] = {}
        self._make: dict[str, tuple[pa.DataType, _Make]] = dict(self._fields())
        self._facts = {*facts}
        for name, text in facts.items():
            self._make[name] = pa.string(), partial(_repeated, text)
        taken = {*file.schema.names, *self._make}
        hidden = {*self._make, *layout.renamed}
        kept = [one.with_name(_free(one.name, taken)) if one.name in hidden else one for one in file.schema]
        self.schema = pa.schema([*kept, *((name, kind) for name, (kind, _) in self._make.items())])
        self._to_check = _LOOKED_AT if "junction" in self._make else 0

    @property
    def bytes_read(self) -> int:
        """Bytes read from disk so far."""
        return self._file.bytes_read

    @bytes_read.setter
    def bytes_read(self, value: int) -> None:
        self._file.bytes_read = value

    @property
    def blank_lines(self) -> int:
        """Blank lines passed over so far."""
        return self._file.blank_lines

    @blank_lines.setter
    def blank_lines(self, value: int) -> None:
        self._file.blank_lines = value

    @property
    def added(self) -> Sequence[str]:
        """Names of what stands behind the columns of the file."""
        return tuple(self._make)

    def batches(self, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, with what is added; of the `columns` that are given."""
        first = 0
        own = dict(zip(self._file.schema.names, self.schema.names, strict=False))
        wanted = self.schema.names if columns is None else columns
        makes = {name: make for name, (_, make) in self._make.items() if name in wanted}
        # What new columns are made of; facts are made of nothing.
        sources = self._sources.values() if makes.keys() - self._facts else ()
        read = [name for name, new in own.items() if new in wanted or name in sources]
        for batch in self._file.batches(max_rows, None if columns is None else read):
            given = dict(zip(map(own.__getitem__, batch.schema.names), batch.columns, strict=True))
            made = {name: make(batch, first) for name, make in makes.items()}
            found = pa.record_batch(given | made)
            if "junction" in makes and self._to_check and first == 0:
                self._check_junctions(found["junction"][: self._to_check])
            yield found
            first += batch.num_rows

    def _fields(self) -> Iterator[tuple[str, tuple[pa.DataType, _Make]]]:
        for name in FIELDS:
            source = self._sources.get(name)
            if self._layout.names == "airr" and source == name:
                continue
            if name == "junction" and name in self._layout.given(self._file.schema.names):
                yield name, (pa.string(), self._junctions)
            elif source is None:
                continue
            elif name in _CALLS:
                yield name, (pa.string(), partial(self._calls, name, source))
            elif name == "productive":
                yield name, (pa.bool_(), partial(self._productive, source))
            elif name in _NUMBERS:
                yield name, (pa.int64(), partial(self._numbers, source))
            else:
                yield name, (pa.string(), partial(self._texts, source))

    def _texts(self, source: str, batch: pa.RecordBatch, first: int = 0) -> pa.Array:
        """A column as text, null where it holds nothing."""
        texts = batch[source].cast(pa.string())
        nothing = pc.is_in(texts, value_set=pa.array(["", *self._layout.missing], pa.string()))
        return pc.if_else(nothing, pa.scalar(None, pa.string()), texts)

    def _numbers(self, source: str, batch: pa.RecordBatch, first: int) -> pa.Array:
        values = self._texts(source, batch) if is_text(batch[source].type) else batch[source]
        try:
            found = as_int64(pc.round(values.cast(pa.float64())) if self._layout.rounded else values)
        except pa.ArrowInvalid as error:
            raise FormatError(self.path, column=source, found=f"{error}", expected="whole numbers") from error
        # Adaptive writes -1 where a number is not known.
        return pc.if_else(pc.greater_equal(found, 0), found, pa.scalar(None, pa.int64()))

    def _productive(self, source: str, batch: pa.RecordBatch, first: int) -> pa.Array:
        if kinds.is_boolean(batch[source].type):
            return batch[source]
        return self._translated(batch[source], "productive", _is_productive, pa.bool_())

    def _calls(self, name: str, source: str, batch: pa.RecordBatch, first: int) -> pa.Array:
        calls = self._texts(source, batch)
        for other in (f"{name[0]}_gene", f"{name[0]}_ties"):
            if other in self._sources:
                vague = pc.invert(pc.fill_null(pc.match_substring_regex(calls, "[-*]"), False))
                texts = self._texts(self._sources[other], batch)
                calls = pc.if_else(pc.and_(vague, texts.is_valid()), texts, calls)
        return self._translated(calls, name, _NAMES[self._layout.names], pa.string())

    def _translated(
        self, column: pa.Array, key: str, of: Callable[[str], Any], kind: pa.DataType
    ) -> pa.Array:
        """What each text stands for; a text is looked at once in the file."""
        known = self._known.setdefault(key, {})
        if len(known) > _MOST_KNOWN:
            known.clear()
        encoded = column.cast(pa.string()).dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        known.update((text, of(text)) for text in texts if text not in known)
        return pa.array([known[text] for text in texts], kind).take(encoded.indices)

    def _junctions(self, batch: pa.RecordBatch, first: int) -> pa.Array:
        if "junction" in self._sources:
            found = self._texts(self._sources["junction"], batch)
        elif self._sources.keys() >= set(_CUT):
            found = self._cut(batch, first)
        else:
            found = self._joined(batch)
        if "partial" in self._sources:
            told = batch[self._sources["partial"]].cast(pa.string())
            cut_off = pc.is_in(told, value_set=pa.array(self._layout.partial, pa.string()))
            found = pc.if_else(cut_off, pa.scalar(None, pa.string()), found)
        return found

    def _cut(self, batch: pa.RecordBatch, first: int) -> pa.Array:
        """Junctions of reads; null where the read begins behind them, or nothing says where they are."""
        letters, ends = letters_of(self._texts(self._sources["read"], batch))
        at, length = (
            pc.fill_null(self._numbers(self._sources[part], batch, first), -1).to_numpy() for part in _CUT[1:]
        )
        there = (at >= 0) & (length >= 0)
        beyond = np.flatnonzero(there & (at + length > np.diff(ends)))
        if beyond.size:
            row = int(beyond[0])
            raise FormatError(
                self.path,
                record=first + row,
                column=self._sources["junction_start"],
                found=f"a junction from {at[row]} on of {length[row]} nucleotides",
                expected=f"places within the read, which has {ends[row + 1] - ends[row]}",
            )
        sizes = np.where(there, length, 0)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.repeat(ends[:-1] + np.maximum(at, 0) - starts[:-1], sizes) + np.arange(starts[-1])
        kept = pa.py_buffer(np.ascontiguousarray(letters[places]))
        cut = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(starts), kept)
        return pc.if_else(pa.array(sizes > 0), cut, pa.scalar(None, pa.large_string())).cast(pa.string())

    def _joined(self, batch: pa.RecordBatch) -> pa.Array:
        """The CDR3 with the codons around it; null where one of them is missing."""
        cdr3, before, behind = (
            pc.replace_substring_regex(self._texts(self._sources[part], batch), "[.-]", "")
            for part in _AROUND
        )
        return pc.binary_join_element_wise(
            pc.utf8_slice_codeunits(before, -3), cdr3, pc.utf8_slice_codeunits(behind, 0, 3), ""
        )

    def _check_junctions(self, junctions: pa.Array) -> None:
        """Refuse a column of CDR3s that lack the conserved codons: they would count as something else."""
        texts = pc.utf8_upper(junctions.drop_null())
        framed = [text for text in texts.to_pylist() if len(text) % 3 == 0]
        codons = [(text[:3] in ("TGT", "TGC")) + (text[-3:] in ("TTT", "TTC", "TGG")) for text in framed]
        if len(framed) < _FEWEST or sum(codons) >= _LEAST_SHARE * 2 * len(codons):
            return
        column = self._sources.get("junction", "junction")
        raise FormatError(
            self.path,
            column=column,
            found=f"{len(framed)} junctions, of which {codons.count(2)} have both conserved codons, such as "
            f"{framed[0][:60]!r}",
            expected="junctions from the conserved Cys to the conserved Phe or Trp, both included",
            hint="a CDR3 as IMGT delimits it lacks these codons; name the column that has them",
        )


def _repeated(text: str, batch: pa.RecordBatch, first: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), batch.num_rows)


def _free(name: str, taken: set[str]) -> str:
    """The name of an input column whose name is that of a new one."""
    new = f"input_{name}"
    while new in taken:
        new = f"input_{new}"
    taken.add(new)
    return new


def _is_productive(text: str) -> bool | None:
    word = re.match(r"\w*", text.lower())
    return _PRODUCTIVE.get(word.group()) if word else None


#: Names of genes within a text of IMGT, as "Homsap IGHV3-23*01 F, or Homsap IGHV3-23D*01 F".
_IMGT_NAME: Final = re.compile(r"(?:TR[ABGD]|IG[HKL])\w[\w/-]*(?:\*\d+)?")
#: Scores, and alleles that are not known, as MiXCR writes them.
_NO_NAME: Final = re.compile(r"\([^()]*\)|\*00\b|\s")
#: Adaptive numbers the genes of every family; these families have one gene, which IMGT gives no number.
_ALONE: Final = re.compile(
    r"(TRBV(?:1|2|9|13|14|15|16|17|18|19|26|27|28|30)|TRAV(?!(?:1|8|9|12|13|26|38)-)\d+"
    r"|TRAJ\d+|TRBD\d|TR[DG][VDJ]\w+|IG[HKL]J\d)-1(?=\*|$)"
)
#: The same of mice, whose families of TRB have one gene but for two.
_ALONE_IN_MICE: Final = re.compile(r"(TRBV(?!1[23]-)\d+|TRBD\d)-1(?=\*|$)")
#: V genes that alpha and delta chains share.
_SHARED: Final = {"TRAV14": "4", "TRAV23": "6", "TRAV29": "5", "TRAV36": "7", "TRAV38-2": "8"}


def _plain_names(text: str) -> str | None:
    """Names without scores and unknown alleles.

    >>> _plain_names("TRBV12-3*00(346.2), TRBV12-4*00(340)"), _plain_names("TRAV29DV5*00")
    ('TRBV12-3,TRBV12-4', 'TRAV29/DV5')
    """
    plain = re.sub(r"(TRAV[\d-]+)(?=DV\d)", r"\1/", _NO_NAME.sub("", text))
    return plain.strip(",") or None


def _imgt_names(text: str) -> str | None:
    """Names within the words of IMGT/HighV-QUEST.

    >>> _imgt_names("Musmus TRBV13-1*01 F, or Musmus TRBV13-1*02 (F)")
    'TRBV13-1*01,TRBV13-1*02'
    """
    return ",".join(_IMGT_NAME.findall(text)) or None


def _adaptive_names(text: str, alone: re.Pattern[str] = _ALONE) -> str | None:
    """Names of Adaptive as IMGT's, by default for human genes; those `alone` in their family have no number.

    >>> (
    ...     _adaptive_names("TCRBV05-01*01"),
    ...     _adaptive_names("TCRBV06-02/06-03*01"),
    ...     _adaptive_names("TCRBV28-01"),
    ... )
    ('TRBV5-1*01', 'TRBV6-2*01,TRBV6-3*01', 'TRBV28')
    >>> _adaptive_names("TCRBV20-or09_02*01"), _adaptive_names("TCRAV29-01"), _adaptive_names("TCRBJ02-07*01")
    ('TRBV20/OR9-2*01', 'TRAV29/DV5', 'TRBJ2-7*01')
    """
    found: list[str] = []
    for name in text.replace("TCR", "TR").split(","):
        gene, star, allele = name.strip().partition("*")
        first, *others = gene.split("/")
        family = re.match(r"\D*", first)
        for one in (first, *((family.group() if family else "") + other for other in others)):
            short = re.sub(r"(?<![1-9])0+(?=\d)", "", re.sub(r"-or(\d+)_(\d+)", r"/OR\1-\2", one))
            short = alone.sub(r"\1", short)
            if short in _SHARED:
                short += f"/DV{_SHARED[short]}"
            found.append(short + star + allele)
    return ",".join(dict.fromkeys(found)).strip(",") or None


_NAMES: Final[Mapping[str, Callable[[str], str | None]]] = {
    "airr": _plain_names,
    "plain": _plain_names,
    "imgt": _imgt_names,
    "adaptive": _adaptive_names,
    "adaptive-mouse": partial(_adaptive_names, alone=_ALONE_IN_MICE),
}
