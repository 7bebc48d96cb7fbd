"""Fold the sequences of files: in blocks, several at a time, written in their order."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from plait._version import __version__
from plait.devices.target import resolve
from plait.dp.intervals.launches import bases_done
from plait.folding import folds
from plait.folding.constraints import Molecule
from plait.folding.inputs import GPU_BLOCK_BASES, Inputs, Records
from plait.folding.structures import brackets, described, most_expected_accuracy
from plait.formats import atomic
from plait.run.executor import LocalExecutor, Progress

if TYPE_CHECKING:
    import pyarrow as pa


_Path = str | os.PathLike[str]
FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": (".txt", ".db", ".dbn", ".txt.gz", ".txt.zst", ".db.gz"),
    "tsv": (".tsv", ".tsv.gz", ".tsv.zst"),
    "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
    "parquet": (".parquet",),
}


class FoldRequest(NamedTuple):
    """What is found of every sequence besides a best structure.

    `pairs`: how probable these are, and the centroid by them; `mea`, `drawings`: these need them, too;
    `samples` are drawn with `seed`; `suboptimal`: structures of so many kcal/mol more than the least, at most
    `most`. `gamma`: what a pair counts for in `mea`, otherwise as is usual for the parameters.
    """

    pairs: bool = False
    mea: bool = False
    samples: int = 0
    seed: int = 0
    suboptimal: float | None = None
    most: int = 100_000
    drawings: bool = False
    gamma: float | None = None

    @property
    def ensemble(self) -> bool:
        """Whether all structures are summed."""
        return self.pairs or self.samples > 0


class Folding(NamedTuple):
    """How many sequences were folded, and of how many there are more suboptimal structures than written."""

    sequences: int
    cut: int


def fold_file(
    inputs: Inputs,
    output: _Path | None,
    settings: folds.FoldSettings,
    request: FoldRequest,
    *,
    format: str | None = None,
    pairs: _Path | None = None,
    drawings: _Path | None = None,
    threads: int | None = None,
    each: int = 1,
    device: str = "auto",
    progress: Callable[[Progress], None] | None = None,
) -> Folding:
    """Fold the sequences of files, by `threads`, of which a block has `each`.

    `output` None is standard output; `pairs`, a table, gets the probabilities of all pairs; `drawings`, a
    folder, gets pictures and a page of each sequence.
    """
    chosen = atomic.output_format(output, format, FORMATS, standard="text", by_name=("parquet",))
    # While one block takes longer, threads go on with those behind it.
    executor = LocalExecutor(threads, waiting=4)
    total = os.path.getsize(inputs.path)
    work = _Work(inputs, settings, request, pairs is not None, resolve(device, each))
    done, cut = 0, 0
    atomic.check_different(atomic.file_or_standard_output(output), pairs)

    def numbered() -> Iterator[tuple[int, Records]]:
        first = 0
        blocks = inputs.records(*([GPU_BLOCK_BASES] if work.target.devices else []))
        for records in blocks if work.target.devices else chain.from_iterable(map(Records.cut, blocks)):
            yield first, records
            first += len(records.sequences)

    with ExitStack() as stack:
        write = stack.enter_context(
            _writer(atomic.file_or_standard_output(output), chosen, request, inputs, settings)
        )
        table = stack.enter_context(_pair_table(pairs, inputs)) if pairs is not None else None
        draw = stack.enter_context(_drawing_folder(drawings)) if drawings is not None else None
        reached = Progress(0, 0, total)
        if progress is not None:
            stack.enter_context(_followed(progress, lambda: reached))
        for block in stack.enter_context(closing(executor.map(work, numbered()))):
            write(block.rows)
            if table is not None and block.pairs is not None:
                table.write(block.pairs)
            if draw is not None:
                draw(block.rows, block.drawings)
            done, cut = done + len(block.rows), cut + block.cut
            reached = Progress(done, block.bytes_read, total)
            if progress is not None:
                progress(reached)
    return Folding(done, cut)


@contextmanager
def _followed(progress: Callable[[Progress], None], reached: Callable[[], Progress]) -> Iterator[None]:
    """Tell twice a second how far long sequences are."""
    over = threading.Event()

    def follow() -> None:
        while not over.wait(0.5):
            told, bases = reached(), bases_done()
            if bases:
                progress(replace(told, bytes_read=min(told.bytes_read + bases, told.total_bytes)))

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Block(NamedTuple):
    """Bytes read, a row for each sequence, the table of their pairs, drawings, incomplete suboptimals."""

    bytes_read: int
    rows: list[dict[str, Any]]
    pairs: pa.RecordBatch | None
    drawings: list[dict[str, str]]
    cut: int


@dataclass(frozen=True)
class _Work:
    """Fold a block."""

    inputs: Inputs
    settings: folds.FoldSettings
    request: FoldRequest
    tabled: bool
    target: Any

    def __call__(self, numbered: tuple[int, Records]) -> _Block:
        first, records = numbered
        asked, settings = self.request, self.settings
        molecules = [self.inputs.molecule(records, k, settings) for k in range(len(records.sequences))]
        best = folds.fold_molecules(molecules, settings, self.target)
        for k, one in enumerate(best):
            if told := folds.unmet(one):
                raise self.inputs.unfit(records, k, told, "one at least")
        columns: dict[str, Sequence[Any]] = {
            "name": records.names if records.names is not None else [None] * len(best),
            "sequence": [one.upper().replace(b"T", b"U").decode() for one in records.sequences],
            "structure": [structure for _, structure in best],
            "energy": _rounded(folds.energy_of(score) for score, _ in best),
        }
        tables: list[folds.Ensemble] = []
        if asked.ensemble:
            wanted = folds.EnsembleRequest(asked.pairs, asked.samples, asked.seed, first)
            tables = folds.sum_molecules(molecules, best, settings, wanted, self.target)
            columns |= _of_ensembles(tables, molecules, settings, asked)
        cut = 0
        if asked.suboptimal is not None:
            found = folds.suboptimals_of(molecules, settings, asked.suboptimal, asked.most, self.target)
            columns["suboptimal"] = [near.structures for near in found]
            columns["suboptimal_energies"] = [np.round(near.energies, 2).tolist() for near in found]
            cut = sum(not near.complete for near in found)
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        of_pairs = _pairs_of(rows, tables, first) if self.tabled else None
        drawn = zip(rows, tables, strict=True) if asked.drawings else ()
        drawings = [_drawings(row, table, settings) for row, table in drawn]
        return _Block(records.bytes_read, rows, of_pairs, drawings, cut)


def _drawings(row: Mapping[str, Any], found: folds.Ensemble, settings: folds.FoldSettings) -> dict[str, str]:
    """Pictures and a page of a sequence, by the ends of their names."""
    from plait.folding.drawing import Drawn, dots_svg, mountain_svg, page, structure_svg

    drawn = Drawn(row["name"] or "RNA", row["sequence"], row["structure"], found.table)
    unit = settings.model.parameters.unit
    facts = {
        "bases": f"{len(drawn.sequence):,}",
        "least energy": f"{row['energy']:.2f} {unit}",
        "of the ensemble": f"{found.ensemble_energy:.2f} {unit}",
        "share of the structure": f"{found.frequency:.3g}",
        "diversity": f"{found.diversity:.2f}",
    }
    made = f"plait {__version__}; {settings.model.name}"
    least = f"{drawn.structure} ({row['energy']:.2f}) least energy"
    lines = [drawn.sequence, least, f"{found.centroid()[0]} centroid"]
    return {
        ".svg": structure_svg(drawn),
        "_pairs.svg": dots_svg(drawn),
        "_mountain.svg": mountain_svg(drawn),
        ".html": page(drawn, facts, lines, made),
    }


@contextmanager
def _drawing_folder(
    folder: _Path,
) -> Iterator[Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, str]]], None]]:
    """What writes drawings of some sequences, files named by them; FormatError if the disk is full."""
    path, names = Path(folder), set[str]()
    if path.exists() and not path.is_dir():
        raise atomic.bad_output(folder, ", which is a file", "the name of a folder")
    numbers = count(1)

    def write(rows: Sequence[Mapping[str, Any]], drawings: Sequence[Mapping[str, str]]) -> None:
        for row, texts, number in zip(rows, drawings, numbers, strict=False):
            first = (row["name"] or "").split(" ")[0]
            word = re.sub(r"[^\w.+-]+", "_", first, flags=re.ASCII)[:80].lstrip(".")
            name = word if word and word.lower() not in names else f"{word or 'sequence'}_{number}"
            names.add(name.lower())
            for end, text in texts.items():
                with atomic.TextOutput(path / (name + end)) as output:
                    output.write(text.encode())

    with atomic.folder_or_nothing(path):
        yield write


def _rounded(energies: Iterable[float]) -> list[float]:
    return [round(energy, 2) for energy in energies]


def _of_ensembles(
    found: Sequence[folds.Ensemble],
    molecules: Sequence[Molecule],
    settings: folds.FoldSettings,
    request: FoldRequest,
) -> dict[str, Sequence[Any]]:
    """Columns of ensembles."""
    columns: dict[str, Sequence[Any]] = {
        "ensemble_energy": [one.ensemble_energy for one in found],
        "frequency": [one.frequency for one in found],
    }
    if request.pairs:
        told = described([one.table for one in found])
        columns |= {
            "pair_marks": told.marks,
            "diversity": told.diversities,
            "centroid": brackets(told.centroids),
            "centroid_energy": _rounded(folds.energies_of(molecules, told.centroids, settings.model)),
            "centroid_distance": told.distances,
        }
    if request.mea:
        gamma = request.gamma or settings.model.gamma
        best = [most_expected_accuracy(one.table, gamma) for one in found]
        structures = [partners for partners, _ in best]
        columns |= {
            "mea_structure": brackets(structures),
            "mea_energy": _rounded(folds.energies_of(molecules, structures, settings.model)),
            "mea_accuracy": [accuracy for _, accuracy in best],
        }
    if request.samples:
        columns["samples"] = [one.samples for one in found]
    return columns


def text_of(row: Mapping[str, Any], unit: str = "kcal/mol") -> str:
    """A sequence as RNAfold writes it, and drawn and suboptimal structures behind that, one a line."""
    lines = [] if row["name"] is None else [f">{row['name']}"]
    lines += [row["sequence"], f"{row['structure']} ({row['energy']:6.2f})"]
    if "pair_marks" in row:
        lines.append(f"{row['pair_marks']} [{row['ensemble_energy']:6.2f}]")
        lines.append(f"{row['centroid']} {{{row['centroid_energy']:6.2f} d={row['centroid_distance']:.2f}}}")
    elif "ensemble_energy" in row:
        lines.append(f" free energy of ensemble = {row['ensemble_energy']:6.2f} {unit}")
    if "mea_structure" in row:
        lines.append(f"{row['mea_structure']} {{{row['mea_energy']:6.2f} MEA={row['mea_accuracy']:.2f}}}")
    if "ensemble_energy" in row:
        told = f" frequency of mfe structure in ensemble {row['frequency']:g}"
        lines.append(f"{told}; ensemble diversity {row['diversity']:<6.2f}" if "diversity" in row else told)
    lines += row.get("samples", ())
    near = zip(row.get("suboptimal", ()), row.get("suboptimal_energies", ()), strict=True)
    lines += [f"{structure} {energy:6.2f}" for structure, energy in near]
    return "\n".join(lines) + "\n"


def _schema(request: FoldRequest) -> pa.Schema:
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    fields = [("name", text), ("sequence", text), ("structure", text), ("energy", number)]
    if request.ensemble:
        fields += [("ensemble_energy", number), ("frequency", number)]
    if request.pairs:
        fields += [("pair_marks", text), ("diversity", number), ("centroid", text)]
        fields += [("centroid_energy", number), ("centroid_distance", number)]
    if request.mea:
        fields += [("mea_structure", text), ("mea_energy", number), ("mea_accuracy", number)]
    if request.samples:
        fields.append(("samples", pa.list_(text)))
    if request.suboptimal is not None:
        fields += [("suboptimal", pa.list_(text)), ("suboptimal_energies", pa.list_(number))]
    return pa.schema(fields)


@contextmanager
def _writer(
    output: str | None, chosen: str, request: FoldRequest, inputs: Inputs, settings: folds.FoldSettings
) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """What writes rows as text, each by itself, or as those of a table."""
    if chosen in ("text", "jsonl"):
        unit = settings.model.parameters.unit
        line = partial(text_of, unit=unit) if chosen == "text" else _json_line
        with atomic.TextOutput(output, inputs=inputs.paths) as text:
            yield lambda rows: text.write("".join(map(line, rows)).encode())
        return
    import pyarrow as pa

    from plait.formats.tables import table_or_lines

    schema = _schema(request)
    told = {
        "version": __version__,
        "parameters": settings.model.parameters.name,
        "temperature": settings.model.temperature,
        "dangles": settings.model.dangles,
        "max_span": settings.max_span,
        **({"enforce": True} if settings.enforce else {}),
        **({"shape": [settings.slope, settings.intercept]} if inputs.shape is not None else {}),
        **({"seed": request.seed} if request.samples else {}),
        **({"gamma": request.gamma} if request.gamma is not None else {}),
    }
    metadata = {"plait.provenance": json.dumps(told, sort_keys=True)}
    with table_or_lines(output, schema, metadata=metadata, inputs=inputs.paths) as table:
        yield lambda rows: table.write(pa.RecordBatch.from_pylist(list(rows), schema=schema))


def _json_line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _pair_table(pairs: _Path, inputs: Inputs) -> Any:
    import pyarrow as pa

    from plait.formats.tables import open_table

    schema = pa.schema([("name", pa.string()), ("i", pa.int32()), ("j", pa.int32()), ("p", pa.float64())])
    return open_table(pairs, schema, metadata={}, inputs=inputs.paths)


#: Pairs that are less probable are not written.
_LEAST_WRITTEN: Final = 1e-6


def _pairs_of(
    rows: Sequence[Mapping[str, Any]], tables: Sequence[folds.Ensemble], first: int
) -> pa.RecordBatch:
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
