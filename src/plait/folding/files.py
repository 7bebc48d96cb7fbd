"""Fold the sequences of a file: in blocks, several at a time, written in their order."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.target import free_bytes, resolve
from plait.dp.intervals.launches import bytes_needed
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.folding.folds import (
    LONGEST,
    Ensemble,
    EnsembleRequest,
    FoldSettings,
    Loop,
    codes_checked,
    energy_of,
    evaluate,
    fold_strands,
    sum_strands,
)
from plait.folding.parameters import LETTERS
from plait.folding.structures import brackets
from plait.formats.atomic import TextOutput, file_or_standard_output, output_format
from plait.formats.compression import ByteSource
from plait.formats.fasta import first_text, read_fasta, sequence_file_kind, shown_start
from plait.run.executor import LocalExecutor

if TYPE_CHECKING:
    import pyarrow as pa

_Path = str | os.PathLike[str]
#: Bases of a block.
_BLOCK_BASES: Final = 1 << 13
_EXPECTED: Final = "FASTA, or a sequence a line; plain, gzip or zstd"
_PIECE: Final = 1 << 20
#: Memory that is told beforehand.
_MUCH: Final = 1 << 28
FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": (".txt", ".db", ".dbn", ".txt.gz", ".txt.zst", ".db.gz"),
    "tsv": (".tsv", ".tsv.gz", ".tsv.zst"),
    "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
    "parquet": (".parquet",),
}


class FoldRequest(NamedTuple):
    """What is found of every sequence besides a best structure.

    `probabilities`: sums over all structures; `centroid`, `mea`: structures by them; `samples` are drawn with
    `seed`.
    """

    probabilities: bool = False
    centroid: bool = False
    mea: bool = False
    samples: int = 0
    seed: int = 0

    @property
    def ensemble(self) -> bool:
        """Whether all structures are summed."""
        return self.probabilities or self.centroid or self.mea or self.samples > 0

    @property
    def of_pairs(self) -> bool:
        """Whether probabilities of pairs are needed."""
        return self.probabilities or self.centroid or self.mea


class Records(NamedTuple):
    """Consecutive sequences: `names` without the header's sign, or None where there are no headers."""

    names: list[str] | None
    sequences: list[bytes]
    lines: list[int]
    bytes_read: int


class Survey(NamedTuple):
    """A file of sequences: how many, the bases of the longest, and bytes of memory that are needed."""

    sequences: int
    longest: int
    bytes_needed: int

    @property
    def note(self) -> str | None:
        """What is said before a run that needs much memory."""
        if self.bytes_needed < _MUCH:
            return None
        return f"up to {self.longest:,} bases: needs {self.bytes_needed / 2**20:,.0f} MiB of memory"


@dataclass(frozen=True, slots=True)
class FoldProgress:
    """Sequences folded, and bytes read out of all."""

    rows: int
    bytes_read: int
    total_bytes: int


def read_records(path: _Path) -> Iterator[Records]:
    """Sequences of a file, FASTA or one a line, in blocks; FormatError says what is wrong where."""
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        first, line = first_text(source, _PIECE, _EXPECTED)
        if not first:
            raise FormatError(path, found="no sequence, only blank lines", expected=_EXPECTED)
        if not first.startswith(b">"):
            shown_start(path, first, _EXPECTED)
            yield from _lines(path, source, first, line)
            return
    for block in read_fasta(path, block_residues=_BLOCK_BASES):
        names = [
            f"{name} {told}" if told else name
            for name, told in zip(block.names, block.descriptions, strict=True)
        ]
        sequences = [block.sequence(k) for k in range(len(block))]
        yield Records(names, sequences, block.lines.tolist(), block.bytes_read)


def _lines(path: _Path, source: ByteSource, text: bytes, line: int) -> Iterator[Records]:
    held = text
    block: list[bytes] = []
    lines: list[int] = []
    while held:
        piece = source.read(_PIECE)
        whole, _, rest = held.rpartition(b"\n") if piece else (held, b"", b"")
        for word in whole.split(b"\n") if whole else []:
            if word.strip():
                block.append(word.strip())
                lines.append(line)
            line += 1
            if sum(map(len, block)) >= _BLOCK_BASES:
                yield Records(None, block, lines, source.bytes_read)
                block, lines = [], []
        if len(rest) > LONGEST + _PIECE:
            raise FormatError(
                path, line=line, found="a very long line", expected=f"at most {LONGEST:,} bases"
            )
        held = rest + piece
    if block:
        yield Records(None, block, lines, source.bytes_read)


def survey(path: _Path, request: FoldRequest, threads: int) -> Survey:
    """Look through a file of sequences; Unsupported if there is too little memory for them."""
    longest: list[int] = []
    count = 0
    for records in read_records(path):
        count += len(records.sequences)
        longest = heapq.nlargest(threads, [*longest, *map(len, records.sequences)])
    need = sum(bytes_needed(bases, ensemble=request.ensemble) for bases in longest if bases <= LONGEST)
    free = free_bytes()
    if need > free:
        raise Unsupported(
            f"{path}: a sequence of {longest[0]:,} bases",
            why=f"{len(longest)} at a time need {need:,} bytes of memory, {free:,} are free",
        )
    return Survey(count, longest[0] if longest else 0, need)


def fold_file(
    path: _Path,
    output: _Path | None,
    settings: FoldSettings,
    request: FoldRequest,
    *,
    format: str | None = None,
    pairs: _Path | None = None,
    threads: int | None = None,
    device: str = "auto",
    progress: Callable[[FoldProgress], None] | None = None,
) -> int:
    """Fold the sequences of a file, and give their number.

    `output` None is standard output; `pairs`, a table, gets the probabilities of all pairs.
    """
    chosen = output_format(output, format, FORMATS, standard="text", by_name=("parquet",))
    executor = LocalExecutor(threads)
    target = resolve(device, 1)
    total = os.path.getsize(path)
    work = _Work(path, settings, request, pairs is not None, target)
    done = 0

    def numbered() -> Iterator[tuple[int, Records]]:
        first = 0
        for records in read_records(path):
            yield first, records
            first += len(records.sequences)

    with ExitStack() as stack:
        writer: Any = stack.enter_context(
            _writer(file_or_standard_output(output), chosen, request, path, settings)
        )
        table = stack.enter_context(_pair_table(pairs, path)) if pairs is not None else None
        for records, rows, of_pairs in stack.enter_context(closing(executor.map(work, numbered()))):
            writer.write(rows)
            if table is not None and of_pairs is not None:
                table.write(of_pairs)
            done += len(rows)
            if progress is not None:
                progress(FoldProgress(done, records, total))
    return done


@dataclass(frozen=True)
class _Work:
    """Fold a block: bytes read, a row for each sequence, and the table of their pairs."""

    path: _Path
    settings: FoldSettings
    request: FoldRequest
    tabled: bool
    target: Any

    def __call__(self, numbered: tuple[int, Records]) -> tuple[int, list[dict[str, Any]], Any]:
        first, records = numbered
        codes = [self._codes(records, k) for k in range(len(records.sequences))]
        rows = []
        tables: list[Ensemble] = []
        if self.request.ensemble:
            asked = EnsembleRequest(
                self.request.of_pairs or self.tabled, self.request.samples, self.request.seed, first
            )
            tables = sum_strands(codes, self.settings, asked, self.target)
            found = [(one.structure, one.energy) for one in tables]
        else:
            folds = fold_strands(codes, self.settings, self.target)
            found = [(brackets(one.partners), energy_of(one.score)) for one in folds]
        for k, (structure, energy) in enumerate(found):
            row: dict[str, Any] = {
                "name": records.names[k] if records.names is not None else None,
                "sequence": _letters(codes[k]),
                "structure": structure,
                "energy": round(energy, 2),
            }
            if tables:
                row.update(_of_ensemble(tables[k], row["sequence"], self.settings, self.request))
            rows.append(row)
        of_pairs = _pairs_of(rows, tables, first) if self.tabled else None
        return records.bytes_read, rows, of_pairs

    def _codes(self, records: Records, k: int) -> NDArray[np.int8]:
        try:
            return codes_checked(records.sequences[k], k + 1)
        except InvalidInput as wrong:
            of = f" of {records.names[k].split()[0]}" if records.names is not None else ""
            raise FormatError(
                self.path, line=records.lines[k], found=f"{wrong.found}{of}", expected=wrong.expected
            ) from None


def _letters(codes: NDArray[np.int8]) -> str:
    return bytes(np.frombuffer(LETTERS.encode(), np.uint8)[codes]).decode()


def _of_ensemble(
    found: Ensemble, sequence: str, settings: FoldSettings, request: FoldRequest
) -> dict[str, Any]:
    """Columns of an ensemble."""

    def energy(structure: str) -> float:
        return round(sum(loop.energy for loop in evaluate(sequence, structure, settings.model)), 2)

    row: dict[str, Any] = {"ensemble_energy": found.ensemble_energy, "frequency": found.frequency}
    if request.of_pairs:
        row |= {"pair_marks": found.marks, "diversity": found.diversity}
    if request.of_pairs:
        centre, distance = found.centroid()
        row |= {"centroid": centre, "centroid_energy": energy(centre), "centroid_distance": distance}
    if request.mea:
        best, accuracy = found.most_expected_accuracy()
        row |= {"mea_structure": best, "mea_energy": energy(best), "mea_accuracy": accuracy}
    if request.samples:
        row["samples"] = found.samples
    return row


def text_of(row: Mapping[str, Any]) -> str:
    """A sequence as RNAfold writes it, and drawn structures behind that, one a line."""
    lines = [] if row["name"] is None else [f">{row['name']}"]
    lines += [row["sequence"], f"{row['structure']} ({row['energy']:6.2f})"]
    if "pair_marks" in row:
        lines.append(f"{row['pair_marks']} [{row['ensemble_energy']:6.2f}]")
        lines.append(f"{row['centroid']} {{{row['centroid_energy']:6.2f} d={row['centroid_distance']:.2f}}}")
    elif "ensemble_energy" in row:
        lines.append(f" free energy of ensemble = {row['ensemble_energy']:6.2f} kcal/mol")
    if "mea_structure" in row:
        lines.append(f"{row['mea_structure']} {{{row['mea_energy']:6.2f} MEA={row['mea_accuracy']:.2f}}}")
    if "ensemble_energy" in row:
        told = f" frequency of mfe structure in ensemble {row['frequency']:g}"
        lines.append(f"{told}; ensemble diversity {row['diversity']:<6.2f}" if "diversity" in row else told)
    return "\n".join([*lines, *row.get("samples", ())]) + "\n"


def _schema(request: FoldRequest) -> pa.Schema:
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    fields = [("name", text), ("sequence", text), ("structure", text), ("energy", number)]
    if request.ensemble:
        fields += [("ensemble_energy", number), ("frequency", number)]
    if request.of_pairs:
        fields += [("pair_marks", text), ("diversity", number), ("centroid", text)]
        fields += [("centroid_energy", number), ("centroid_distance", number)]
    if request.mea:
        fields += [("mea_structure", text), ("mea_energy", number), ("mea_accuracy", number)]
    if request.samples:
        fields.append(("samples", pa.list_(text)))
    return pa.schema(fields)


class _TextRows:
    """Rows as text, each by itself."""

    def __init__(self, output: TextOutput, line: Callable[[Mapping[str, Any]], str]) -> None:
        self._output = output
        self._line = line

    def __enter__(self) -> _TextRows:
        self._output.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._output.__exit__(*raised)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows."""
        self._output.write("".join(map(self._line, rows)).encode())


class _TableRows:
    """Rows of a table in a file, or as text on standard output."""

    def __init__(self, table: Any, schema: pa.Schema) -> None:
        self._table = table
        self._schema = schema

    def __enter__(self) -> _TableRows:
        self._table.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._table.__exit__(*raised)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows."""
        import pyarrow as pa

        self._table.write(pa.RecordBatch.from_pylist(list(rows), schema=self._schema))


class _Printed:
    """A table as text on standard output."""

    def __init__(self, schema: pa.Schema) -> None:
        from plait.formats.tables import header

        self._output = TextOutput(None)
        self._output.write(header("standard output", schema))
        self._rows = 0

    def __enter__(self) -> _Printed:
        self._output.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._output.__exit__(*raised)

    def write(self, batch: pa.RecordBatch) -> None:
        from plait.formats.tables import rows_as_text

        for piece in rows_as_text("standard output", batch, self._rows):
            self._output.write(piece)
        self._rows += batch.num_rows


def _writer(
    output: str | None, chosen: str, request: FoldRequest, path: _Path, settings: FoldSettings
) -> _TextRows | _TableRows:
    if chosen in ("text", "jsonl"):
        line = text_of if chosen == "text" else _json_line
        return _TextRows(TextOutput(output, inputs=[path]), line)
    schema = _schema(request)
    if output is None:
        return _TableRows(_Printed(schema), schema)
    from plait.formats.tables import open_table

    model = settings.model
    told = {
        "version": __version__,
        "parameters": model.parameters.name,
        "temperature": model.temperature,
        "dangles": model.dangles,
        "max_span": settings.max_span,
        **({"seed": request.seed} if request.samples else {}),
    }
    metadata = {"plait.provenance": json.dumps(told, sort_keys=True)}
    return _TableRows(open_table(output, schema, metadata=metadata, inputs=[path]), schema)


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _pair_table(pairs: _Path, path: _Path) -> Any:
    import pyarrow as pa

    from plait.formats.tables import open_table

    schema = pa.schema([("name", pa.string()), ("i", pa.int32()), ("j", pa.int32()), ("p", pa.float64())])
    return open_table(pairs, schema, metadata={}, inputs=[path])


#: Pairs that are less probable are not written.
_LEAST_WRITTEN: Final = 1e-6


def _pairs_of(rows: Sequence[Mapping[str, Any]], tables: Sequence[Ensemble], first: int) -> pa.RecordBatch:
    """Pairs of a block, bases from 1 on."""
    import pyarrow as pa

    names, places, values = [], [np.empty((0, 2), np.int32)], [np.empty(0)]
    for number, (row, found) in enumerate(zip(rows, tables, strict=True), first + 1):
        likely = found.table.probabilities >= _LEAST_WRITTEN
        name = str(number) if row["name"] is None else row["name"].split()[0]
        names += [name] * int(likely.sum())
        places.append(found.table.pairs[likely] + 1)
        values.append(found.table.probabilities[likely])
    i, j = np.concatenate(places).astype(np.int32).T
    return pa.record_batch(
        [pa.array(names, pa.string()), pa.array(i), pa.array(j), pa.array(np.concatenate(values))],
        names=["name", "i", "j", "p"],
    )


def evaluated(path: _Path, settings: FoldSettings) -> Iterator[tuple[str | None, str, str, list[Loop]]]:
    """Name, sequence, structure and loops of every record of a file as RNAfold writes them."""
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        lines = b"".join(iter(lambda: source.read(_PIECE), b"")).decode("utf-8", "replace").splitlines()
    name, sequence = None, None
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            name, sequence = line[1:].strip(), None
        elif line.strip() and sequence is None:
            sequence = line.strip()
        elif line.strip() and sequence is not None:
            structure = line.split()[0]
            try:
                loops = evaluate(sequence, structure, settings.model)
            except InvalidInput as wrong:
                raise FormatError(path, line=number, found=wrong.found, expected=wrong.expected) from None
            yield name, sequence, structure, loops
            name, sequence = None, None
    if sequence is not None:
        raise FormatError(
            path, line=len(lines), found="a sequence without a structure", expected="one below it"
        )
