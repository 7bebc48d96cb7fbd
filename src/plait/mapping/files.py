"""From files to files: hits, counts, products of pairs of primers, and barcodes of reads."""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.atomic import (
    TextOutput,
    check_output,
    file_or_standard_output,
    output_errors,
    output_format,
    write_json,
)
from plait.formats.fastq import ReadBlock
from plait.mapping.genome import Genome
from plait.mapping.hits import (
    HitRows,
    aligned_places,
    bam_alignments_kernel,
    cigars,
    hit_table,
    joined,
    no_hits,
    pam_texts,
    queries,
    ranks,
    targets,
)
from plait.mapping.mapper import STATUSES, MappedReads
from plait.mapping.mapper import HitRows as Loci
from plait.mapping.patterns import Pattern, Patterns, read_patterns
from plait.mapping.records import TEXT_FORMATS, RecordFormat, Records
from plait.mapping.search import Finder, FindSettings, found_in, with_file_settings
from plait.run.executor import Executor, LocalExecutor
from plait.types import Provenance

if TYPE_CHECKING:
    import pyarrow as pa

    from plait.formats.tables import PartSettings
    from plait.mapping.find_parts import FindTotals

_Path = str | os.PathLike[str]

#: Names of the formats, and what file names they go with.
FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "tsv": (".tsv", ".tsv.gz", ".tsv.zst"),
        "parquet": (".parquet",),
        "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
        "bed": (".bed", ".bed.gz", ".bed.zst"),
        "paf": (".paf", ".paf.gz", ".paf.zst"),
        "sam": (".sam", ".sam.gz", ".sam.zst"),
        "bam": (".bam",),
        "cas-offinder": (".txt", ".txt.gz", ".txt.zst"),
    }
)
#: Hits that are written together.
_ROWS_AT_A_TIME: Final = 1 << 15
#: Operations of BAM, as paths have them: = for the same letter, X for another, D, I.
_OPERATIONS: Final = np.array([7, 8, 2, 1])
_CAS_HEAD: Final = "#Bulge type\tcrRNA\tDNA\tChromosome\tPosition\tDirection\tMismatches\tBulge Size\n"


def hit_format(output: _Path | None, format: str | None, *, table: bool) -> str:
    """The format of an output, one of `FORMATS`; `table`: other tables than of hits have columns only.

    `InvalidInput` if it is unknown, or the name of the file says another one.
    """
    found = output_format(output, format, FORMATS, standard="tsv", by_name=("parquet", "bam"))
    if table and found not in ("tsv", "parquet", "jsonl"):
        raise InvalidInput("format", found=found, expected="tsv, parquet or jsonl for anything but hits")
    return found


#: Takes tables, batch by batch.
Write = Callable[["pa.RecordBatch"], None]


@contextmanager
def open_batches(
    output: _Path | None, schema: pa.Schema, format: str, provenance: Provenance, inputs: Iterable[_Path]
) -> Iterator[Write]:
    """Write tables as TSV, Parquet or JSON lines, whole or not at all."""
    from plait.formats.tables import PrintedTable, open_table

    path = file_or_standard_output(output)
    facts = {"plait.provenance": json.dumps(provenance.as_dict(), sort_keys=True)}
    if path is not None and format != "jsonl":
        with open_table(path, schema, metadata=facts, inputs=inputs) as table:
            yield table.write
        return
    with TextOutput(path, inputs=inputs) as text:
        if format == "jsonl":
            yield lambda batch: text.write(
                "".join(json.dumps(row) + "\n" for row in batch.to_pylist()).encode()
            )
        else:
            yield PrintedTable(text, schema).write
    if path is not None:
        write_json(f"{path}.json", {"provenance": provenance.as_dict()})


class Named(Protocol):
    """The sequences that have been read."""

    names: list[str]
    lengths: list[int]


#: Takes hits, with the sequences.
WriteHits = Callable[[HitRows, Named], None]


@contextmanager
def open_hits(
    output: _Path | None, finder: Finder, format: str, provenance: Provenance, inputs: Iterable[_Path]
) -> Iterator[WriteHits]:
    """Write hits in one of `FORMATS`, whole or not at all."""
    patterns, side = finder.patterns, finder.settings.pam_side
    if format in ("tsv", "parquet", "jsonl"):
        schema = hit_table(no_hits(), patterns, []).schema
        with open_batches(output, schema, format, provenance, inputs) as write:
            yield lambda rows, texts: write(hit_table(rows, patterns, texts.names)) if len(rows) else None
        return
    with TextOutput(output, inputs=inputs) as text:
        if format in ("bed", "cas-offinder"):
            lines = _bed if format == "bed" else _cas_offinder
            text.write(b"" if format == "bed" else _CAS_HEAD.encode())
            yield lambda rows, texts: text.write("".join(lines(rows, patterns, texts, side)).encode())
            return
        with TemporaryFile() as file:
            kept = _KeptHits(file, len(patterns))
            yield kept.add
            if format == "paf":
                for rows in kept:
                    text.write("".join(_paf(rows, patterns, kept.texts, side)).encode())
            else:
                for records in _records(kept, finder, TEXT_FORMATS[format]):
                    text.write(records)


class _KeptHits:
    """Hits kept in a file until all are known, for formats that begin with the lengths of sequences.

    `best` int64 (patterns,) are the fewest errors of each, and `first` the number of the first hit with them.
    """

    texts: Named

    def __init__(self, file: IO[bytes], patterns: int) -> None:
        self._file = file
        self._parts = self._count = 0
        self.best = np.full(patterns, np.iinfo(np.int64).max)
        self.first = np.full(patterns, -1)

    def add(self, rows: HitRows, texts: Named) -> None:
        """Keep some more, behind the others."""
        self.texts = texts
        if not len(rows):
            return
        order = np.lexsort((rows.distance, rows.pattern))
        pattern, at = np.unique(rows.pattern[order], return_index=True)
        better = rows.distance[order[at]] < self.best[pattern]
        self.best[pattern[better]] = rows.distance[order[at]][better]
        self.first[pattern[better]] = self._count + order[at][better]
        with output_errors("temporary file of hits"):
            pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)
        self._parts += 1
        self._count += len(rows)

    def __iter__(self) -> Iterator[HitRows]:
        self._file.seek(0)
        for _ in range(self._parts):
            yield pickle.load(self._file)


def _records(kept: _KeptHits, finder: Finder, kind: type[RecordFormat]) -> Iterator[bytes | memoryview]:
    """SAM or BAM: hits in the order of the texts, the first of a pattern's best as its primary record.

    Patterns without hits come last.
    """
    none, patterns = np.zeros(0, np.int64), finder.patterns
    texts, lengths = kept.texts, np.array(kept.texts.lengths, np.int64)
    form = kind(Genome(tuple(texts.names), none, lengths, np.zeros((0, 3), np.int64), "", ""))
    form.grouped = ""
    if name := _repeated(texts.names):
        expected = "a name of its own for each, as SAM asks"
        raise InvalidInput("texts", found=f"several sequences named {name!r}", expected=expected)
    yield form.head(__version__, "")
    ends = np.cumsum([0, *(len(pattern.sequence) for pattern in patterns)])
    letters = np.frombuffer(bytearray("".join(own.sequence for own in patterns).upper().encode()), np.uint8)
    reads = ReadBlock([pattern.name for pattern in patterns], letters, ends)
    words = [{"ok": "mapped"}.get(status, status) for status in finder.final_statuses()]
    statuses = np.array([STATUSES.index(word) for word in words], np.uint8)
    block = partial(MappedReads, reads, np.zeros(len(patterns), np.int64), statuses, finder.told())
    written, number = np.zeros(len(patterns), np.int64), 0
    for rows in kept:
        own = number + np.arange(len(rows))
        number += len(rows)
        rank = ranks(rows.pattern, written) + 1
        mapped = np.ones(len(rows), np.bool_)
        found = Records(rows.pattern, own - own[0], mapped, own == kept.first[rows.pattern], rank)
        yield form.encode(block(_as_loci(rows, finder.settings.pam_side)), found)
    missing = np.flatnonzero(written == 0)
    every = np.ones(missing.size, np.bool_)
    nothing = Records(
        missing, np.zeros(missing.size, np.int64), ~every, every, np.ones(missing.size, np.int64)
    )
    yield form.encode(block(_as_loci(no_hits(), 3)), nothing)
    yield form.end()


def _repeated(names: Sequence[str]) -> str:
    """The first name that is there twice, or nothing."""
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _as_loci(rows: HitRows, pam_side: int) -> Loci:
    """Hits as loci of reads, with alignments as BAM has them."""
    steps, count = rows.steps, len(rows)
    runs, counts = np.zeros((count, steps.shape[1]), np.int64), np.zeros(count, np.int64)
    differences, sizes = np.zeros((count, 4 * steps.shape[1] + 20), np.uint8), np.zeros(count, np.int64)
    bam_alignments_kernel(steps, rows.letters, _OPERATIONS.copy(), runs, counts, differences, sizes)
    begin, end = aligned_places(rows, pam_side)
    places = rows.strand, rows.sequence, begin, end
    return Loci(rows.pattern, *places, rows.distance, runs, counts, differences, sizes)


def _bed(rows: HitRows, patterns: Sequence[Pattern], texts: Named, pam_side: int) -> Iterator[str]:
    distances = rows.distance.tolist()
    for k, (begin, end) in enumerate(zip(rows.start.tolist(), rows.end.tolist(), strict=True)):
        name, score = patterns[rows.pattern[k]].name, max(1000 - 100 * distances[k], 0)
        sequence = int(rows.sequence[k])
        # What sticks out at an end of a sequence has no place in it.
        place = f"{max(begin, 0)}\t{min(end, texts.lengths[sequence])}"
        yield f"{texts.names[sequence]}\t{place}\t{name}\t{score}\t{'+-'[rows.strand[k]]}\n"


def _paf(rows: HitRows, patterns: Sequence[Pattern], texts: Named, pam_side: int) -> Iterator[str]:
    distances, (begins, ends) = rows.distance.tolist(), aligned_places(rows, pam_side)
    for k, cigar in enumerate(cigars(rows)):
        pattern, sequence, strand = patterns[rows.pattern[k]], int(rows.sequence[k]), int(rows.strand[k])
        length = len(pattern.sequence)
        same = length - int(rows.mismatches[k] + rows.missing[k])
        columns = length + int(rows.extra[k])
        yield (
            f"{pattern.name}\t{length}\t0\t{length}\t{'+-'[strand]}\t{texts.names[sequence]}\t"
            f"{texts.lengths[sequence]}\t{begins[k]}\t{ends[k]}\t{same}\t{columns}\t255\t"
            f"NM:i:{distances[k]}\tcg:Z:{cigar}\n"
        )


def _cas_offinder(rows: HitRows, patterns: Sequence[Pattern], texts: Named, pam_side: int) -> Iterator[str]:
    """The eight columns of its output with bulges; both kinds at once, which it has not, as ``DNA+RNA``."""
    pams, own, found = pam_texts(rows), queries(rows, patterns), targets(rows)
    for k, (query, target, pam) in enumerate(zip(own, found, pams, strict=True)):
        extra, missing = int(rows.extra[k]), int(rows.missing[k])
        kind = "+".join(word for word, count in (("DNA", extra), ("RNA", missing)) if count) or "X"
        unknown, pam = "N" * len(pam), pam.upper()
        pair = f"{unknown}{query}\t{pam}{target}" if pam_side == 5 else f"{query}{unknown}\t{target}{pam}"
        place = f"{texts.names[rows.sequence[k]]}\t{int(rows.start[k])}\t{'+-'[rows.strand[k]]}"
        yield f"{kind}\t{pair}\t{place}\t{int(rows.mismatches[k])}\t{extra + missing}\n"


def count_table(patterns: Sequence[Pattern], statuses: Sequence[str], totals: Any) -> pa.RecordBatch:
    """Numbers of hits by pattern and distance, with the status of each pattern."""
    import pyarrow as pa

    width = totals.shape[1]
    columns: dict[str, Any] = {
        "pattern_name": [pattern.name for pattern in patterns for _ in range(width)],
        "pattern": [pattern.sequence for pattern in patterns for _ in range(width)],
        "status": [status for status in statuses for _ in range(width)],
        "distance": list(range(width)) * len(patterns),
        "hits": totals.ravel().tolist(),
    }
    return pa.record_batch(columns)


def in_windows(found: Iterable[tuple[Named, HitRows]], longest: int) -> Iterator[tuple[Named, HitRows]]:
    """Hits that come in order: forward ones once, with all backward ones of their products.

    Those are held of which a product of so many letters may have its other end in hits to come.
    """
    held = no_hits()
    for blocks, own in found:
        rows = joined([held, own])
        waiting = np.zeros(len(rows), np.bool_)
        if len(rows):
            waiting = (rows.sequence == rows.sequence[-1]) & (rows.start + longest >= rows.start[-1])
        held = rows.taken(waiting)
        yield blocks, rows.taken(~waiting | (rows.strand == 1))
    yield blocks, held


def product_table(
    rows: HitRows, patterns: Sequence[Pattern], names: Sequence[str], longest: int
) -> pa.RecordBatch:
    """Pairs of hits that look at each other, of a sequence each, up to `longest` letters from end to end.

    `rows`, in order, have all backward hits that products of the forward ones may have.
    """
    import pyarrow as pa

    forward, backward = np.flatnonzero(rows.strand == 0), np.flatnonzero(rows.strand == 1)
    # Sequences stand one behind the other, too far away for a product over two of them.
    far = longest + int(rows.end.max(initial=0)) + 1
    starts = rows.sequence[forward] * far + rows.start[forward]
    ends = rows.sequence[backward] * far + rows.end[backward]
    order = np.argsort(ends, kind="stable")
    backward, ends = backward[order], ends[order]
    # The other primer may not end before this one does.
    firsts = np.searchsorted(ends, rows.sequence[forward] * far + rows.end[forward], "left")
    lasts = np.maximum(np.searchsorted(ends, starts + longest, "right"), firsts)
    counts = lasts - firsts
    one = np.repeat(forward, counts)
    shift = np.arange(one.size) - np.repeat(np.cumsum(counts) - counts, counts)
    other = backward[np.repeat(firsts, counts) + shift]
    inside = (rows.start[other] >= rows.start[one]) & (rows.sequence[other] == rows.sequence[one])
    one, other = one[inside], other[inside]

    def words(values: Sequence[str], numbers: Any) -> Any:
        return pa.array([values[k] for k in numbers.tolist()], pa.string())

    titles = [pattern.name for pattern in patterns]
    start, end = rows.start[one], rows.end[other]
    return pa.record_batch(
        {
            "forward": words(titles, rows.pattern[one]),
            "reverse": words(titles, rows.pattern[other]),
            "sequence_name": words(names, rows.sequence[one]),
            "start": pa.array(start, pa.int64()),
            "end": pa.array(end, pa.int64()),
            "product_length": pa.array(end - start, pa.int64()),
            "forward_distance": pa.array(rows.distance[one], pa.int64()),
            "reverse_distance": pa.array(rows.distance[other], pa.int64()),
        }
    )


def barcode_table(
    rows: HitRows, patterns: Sequence[Pattern], names: Sequence[str], first: int
) -> pa.RecordBatch:
    """The barcode of each of the reads `names`, from number `first` on: that with fewest errors.

    There is none if another has as few.

    The status is ``assigned``, ``ambiguous`` (then without a barcode) or ``none``.
    """
    import pyarrow as pa

    reads = len(names)
    own = rows.sequence - first
    best = np.full(reads, np.iinfo(np.int64).max)
    np.minimum.at(best, own, rows.distance)
    top = np.flatnonzero(rows.distance == best[own]) if len(rows) else np.zeros(0, np.int64)
    # A barcode that is found on both strands of a read is one.
    pairs = np.unique(own[top] * len(patterns) + rows.pattern[top])
    read, pattern = pairs // len(patterns), pairs % len(patterns)
    count = np.bincount(read, minlength=reads)
    chosen = np.full(reads, -1)
    chosen[read] = pattern
    chosen[count > 1] = -1
    statuses = np.array(["none", "assigned", "ambiguous"])
    titles = np.array([p.name for p in patterns], object)
    return pa.record_batch(
        {
            "read": pa.array(list(names), pa.string()),
            "status": pa.array(statuses[np.minimum(count, 2)].tolist(), pa.string()),
            "barcode": pa.array([titles[k] if k >= 0 else None for k in chosen.tolist()], pa.string()),
            "distance": pa.array(np.where(count > 0, best, 0), pa.int64(), mask=count == 0),
        }
    )


#: What is written: hits; products of pairs of primers; the barcode of each read.
What = Literal["hits", "products", "barcodes"]


@dataclass(frozen=True, slots=True)
class FindSummary:
    """What a search has done: sizes of patterns and texts, PAM sites, rows written, and hits by pattern.

    `repeated` is the first name that several sequences have, or nothing; `strange` are letters of texts that
    are no nucleotides, as far as they were looked at.
    """

    statuses: tuple[str, ...]
    names: tuple[str, ...]
    hits: tuple[int, ...]
    sequences: int
    letters: int
    sites: int
    rows: int
    repeated: str
    strange: str


def _check_asked(settings: FindSettings, what: What, format: str, longest: int) -> None:
    if what == "barcodes" and not settings.anchored:
        raise InvalidInput("barcodes", found="patterns that are not anchored", expected="anchored ones")
    if format in ("bed", "paf", "sam", "bam", "cas-offinder") and settings.report == "ends":
        raise InvalidInput(
            "format", found=format, expected="tsv, parquet or jsonl for ends, which have no start"
        )
    if format in ("paf", "sam", "bam") and settings.overhang:
        expected = "another format: there, no alignment sticks out of its sequence"
        raise InvalidInput("format", found=f"{format} with overhang", expected=expected)
    if what != "hits" and settings.count_only:
        raise InvalidInput("count_only", found=f"{what} to be counted", expected="hits")
    if longest < 1:
        raise InvalidInput("max_product", found=longest, expected="at least 1 letter")


def find_files(
    patterns: Patterns,
    texts: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    settings: FindSettings | None = None,
    *,
    format: str | None = None,
    what: What = "hits",
    longest: int = 3000,
    executor: Executor | None = None,
    resume: bool = False,
    parts: PartSettings | None = None,
) -> FindSummary:
    """Find patterns in files, and write hits, their numbers, products or barcodes.

    `output` None or ``-`` is standard output, a name that ends in a slash a folder of parts; `longest` is the
    most letters of a product. Without `texts`, the one that Cas-OFFinder's input names is read. All hits are
    written into parts by the `executor`, a text or some sequences of a 2bit file each; `resume` takes over
    those that a run which was stopped has finished. Other outputs are made in this process.
    """
    read = read_patterns(patterns)
    how = with_file_settings(read, settings or FindSettings())
    if not texts and read.text:
        texts = [read.text]
    chosen = hit_format(output, format, table=how.count_only or what != "hits")
    _check_asked(how, what, chosen, longest)
    finder = Finder(read, how)
    inputs = [*texts, *([patterns] if isinstance(patterns, os.PathLike) else [])]
    path = file_or_standard_output(output)
    if path is not None:
        check_output(path, inputs)
    parameters = asdict(how) | {"patterns": len(finder.patterns), "texts": [os.fspath(t) for t in texts]}
    provenance = Provenance(
        version=__version__,
        device=finder.target.description,
        schedule="sites" if finder.at_sites else "striped",
        algebra="Bits",
        parameters=parameters,
    )
    executor = executor or LocalExecutor(1)
    each = what == "hits" and not how.count_only and how.report != "best" and how.max_hits is None
    if each and path is not None and path.endswith("/"):
        from plait.mapping.find_parts import write_parts

        given = finder, read, texts, path, executor, provenance
        return _told(finder, write_parts(*given, inputs=inputs, resume=resume, settings=parts))
    asked = {"resume": resume, "executor": executor.elsewhere, "partition": parts and parts.partition}
    for name in (name for name, value in asked.items() if value):
        expected = "a folder of parts, whose name ends in a slash, of all hits, not of the best or of pairs"
        raise InvalidInput(name, found=f"the output {path or '-'!r}", expected=expected)
    return _written(finder, list(texts), output, chosen, (provenance, inputs), what, longest)


def _written(
    finder: Finder,
    texts: list[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None,
    chosen: str,
    facts: tuple[Provenance, Sequence[Any]],
    what: What,
    longest: int,
) -> FindSummary:
    """Search texts, and write what is asked for into one file, or one table, in order."""
    rows = 0
    names: list[str] = []
    if finder.settings.count_only:
        for blocks, _ in found_in(finder, texts):
            names = blocks.names
        table = count_table(finder.patterns, finder.final_statuses(), finder.totals)
        with open_batches(output, table.schema, chosen, *facts) as write:
            write(table)
        rows = table.num_rows
    elif what == "hits":
        with open_hits(output, finder, chosen, *facts) as write_hits:
            for blocks, own in found_in(finder, texts):
                names = blocks.names
                rows += len(own)
                for first in range(0, max(len(own), 1), _ROWS_AT_A_TIME):
                    write_hits(own.taken(slice(first, first + _ROWS_AT_A_TIME)), blocks)
    else:
        rows, names = _tables(finder, texts, output, chosen, facts, what, longest)
    return FindSummary(
        finder.final_statuses(),
        tuple(pattern.name for pattern in finder.patterns),
        tuple(finder.told().tolist()),
        len(names),
        finder.letters,
        finder.sites,
        rows,
        _repeated(names) if what == "hits" else "",
        "".join(sorted(finder.strange)),
    )


def _told(finder: Finder, totals: FindTotals) -> FindSummary:
    """What parts together have found, of which no names of sequences are kept."""
    finder.totals = totals.hits
    return FindSummary(
        finder.final_statuses(),
        tuple(pattern.name for pattern in finder.patterns),
        tuple(finder.told().tolist()),
        totals.sequences,
        totals.letters,
        totals.sites,
        totals.rows,
        "",
        "".join(sorted(totals.strange)),
    )


def _tables(
    finder: Finder,
    texts: Any,
    output: str | os.PathLike[str] | None,
    format: str,
    facts: tuple[Provenance, Sequence[Any]],
    what: What,
    longest: int,
) -> tuple[int, list[str]]:
    """Write products or barcodes; how many rows, and the names of sequences."""

    def table(rows: Any, names: Sequence[str], first: int) -> Any:
        if what == "products":
            return product_table(rows, finder.patterns, names, longest)
        return barcode_table(rows, finder.patterns, names[first : finder.begun], first)

    count = done = 0
    names: list[str] = []
    schema = table(no_hits(), [], 0).schema
    found = found_in(finder, texts, whole=what == "barcodes")
    with open_batches(output, schema, format, *facts) as write:
        for blocks, own in found if what == "barcodes" else in_windows(found, longest):
            batch = table(own, blocks.names, done)
            done, names = finder.begun, blocks.names
            count += batch.num_rows
            if batch.num_rows:
                write(batch)
    return count, names
