"""Build packed databases of any size in bounded memory.

The input is read once. Codes and names go to temporary files beside the output, lengths stay in memory. Then
the places are known, and the packed columns are written from front to back. Where the codes are more than the
memory limit, they are first dealt out, in one more pass, to temporary files of that size, each with the
sequences of consecutive blocks: no step reads from all over a large file.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.align.database import (
    BLOCK_BYTES,
    DIGESTS,
    HEADER_BYTES,
    SECTIONS,
    DatabaseFile,
    Section,
    digest_blocks,
    header_bytes,
    open_database,
    round_up,
)
from plait.align.residues import ALPHABETS, Kind, common_kind, count_sample, encode_residues
from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, check_not_input, output_errors
from plait.formats.duplicate_names import NameRegister
from plait.formats.fasta import Sequences, read_fasta
from plait.targets.lane_blocks import BLOCK_LANES, Layout, arrange, lane_lengths, packed_columns

__all__ = ["build_database"]

_LEAST_MEMORY: Final = 1 << 24
# The working arrays of reading and packing are together about eight times their unit.
_UNITS: Final = 8
_MOST_FILES: Final = 100
_BUFFER_BYTES: Final = 1 << 16


def build_database(
    fasta_paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    kind: Literal["auto"] | Kind = "auto",
    memory_limit: int = 1 << 28,
    allow_duplicate_names: bool = False,
) -> DatabaseFile:
    """Build a packed database from FASTA files.

    Parameters
    ----------
    fasta_paths
        The files, at least one; their records are numbered through.
    out
        The database to write. It appears under its name when it is complete.
    kind
        What the sequences are; ``"auto"`` looks at the first letters of each.
    memory_limit
        Bytes of residues held in memory at a time, from 16 MiB; besides, a sequence takes about 50 bytes.
    allow_duplicate_names
        Whether several records may have one name.

    Returns
    -------
    DatabaseFile
        The database, opened.

    Raises
    ------
    InvalidInput
        If there is no input, the output is one of the inputs or cannot be named so, the memory limit is too
        low, or letters do not say what the sequences are.
    FormatError
        If a file is no FASTA file, a letter none of the kind's, a name not unique, or the disk full.
    Unsupported
        If a sequence has 2^31 residues or more.
    """
    _check_arguments(fasta_paths, out, kind, memory_limit)
    unit = memory_limit // _UNITS
    with AtomicFile(out) as file, output_errors(out), ExitStack() as stack:
        spool = _Spool(stack, file.path)
        chosen = kind
        if chosen == "auto":
            chosen = common_kind({os.fspath(path): count_sample(path) for path in fasta_paths})
        names = None if allow_duplicate_names else NameRegister()
        for path in fasta_paths:
            for sequences in read_fasta(path, block_residues=unit):
                for duplicate in names.add(path, sequences) if names else ():
                    raise duplicate.error()
                spool.add(sequences, encode_residues(path, sequences, chosen))
        del names
        lengths = np.concatenate(spool.lengths)
        layout = arrange(lengths)
        _check_room(file.path, layout)
        writer = _SectionWriter(file.stream)
        writer.write("packed", _packed(stack, file.path, spool.codes, lengths, layout, memory_limit))
        writer.write("first_columns", [layout.first_columns.astype("<i8", copy=False).data])
        writer.write("lengths", [layout.lengths.astype("<i4", copy=False).data])
        writer.write("order", [layout.order.astype("<i8", copy=False).data])
        for name in SECTIONS[4:]:
            writer.write(name, _content(spool.texts[name]))
        digests = bytes(writer.digests)
        writer.write(DIGESTS, [digests])
        facts = {
            "sequences": lengths.size,
            "residues": int(lengths.sum(dtype=np.int64)),
            "longest": int(lengths.max()),
        }
        file.stream.seek(0)
        file.stream.write(header_bytes(chosen, facts, writer.sections, digests))
    return open_database(out)


def _check_arguments(
    fasta_paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    kind: str,
    memory_limit: int,
) -> None:
    if not fasta_paths:
        raise InvalidInput("fasta_paths", found="no file", expected="at least one FASTA file")
    if kind not in ("auto", *ALPHABETS):
        raise InvalidInput("kind", found=repr(kind), expected=f"'auto' or one of {', '.join(ALPHABETS)}")
    if memory_limit < _LEAST_MEMORY:
        raise InvalidInput(
            "memory_limit", found=f"{memory_limit:,} bytes", expected=f"at least {_LEAST_MEMORY:,}"
        )
    check_not_input(out, fasta_paths)


def _check_room(out: Path, layout: Layout) -> None:
    free = shutil.disk_usage(os.path.dirname(os.path.realpath(out))).free
    if layout.packed_bytes > free:
        longest = int(layout.lengths[0, 0])
        raise FormatError(
            out,
            found=f"{free:,} bytes free on the device",
            expected=f"room for {layout.packed_bytes:,}",
            hint=f"{BLOCK_LANES * longest:,} of them are for the longest sequence and its block",
        )


def _temporary(stack: ExitStack, out: Path) -> IO[bytes]:
    """An unnamed file beside the output, gone when it is closed."""
    folder = os.path.dirname(os.path.realpath(out))
    return stack.enter_context(tempfile.TemporaryFile(dir=folder, buffering=_BUFFER_BYTES))


class _Spool:
    """What is known of the input before the places are: lengths in memory, all else in files."""

    def __init__(self, stack: ExitStack, out: Path) -> None:
        self.lengths: list[NDArray[np.int32]] = []
        self.codes = _temporary(stack, out)
        self.texts = {name: _temporary(stack, out) for name in SECTIONS[4:]}
        self._ends = {"name": 0, "description": 0}
        for name in self._ends:
            self.texts[f"{name}_offsets"].write(bytes(8))

    def add(self, sequences: Sequences, codes: bytes) -> None:
        self.codes.write(codes)
        self.lengths.append(lane_lengths(sequences.lengths))
        self._add_texts("name", sequences.names)
        self._add_texts("description", sequences.descriptions)

    def _add_texts(self, name: str, texts: list[str]) -> None:
        encoded = [text.encode("utf-8") for text in texts]
        offsets = np.fromiter(map(len, encoded), np.int64, len(encoded))
        offsets[0] += self._ends[name]
        np.cumsum(offsets, out=offsets)
        self._ends[name] = int(offsets[-1])
        self.texts[f"{name}_offsets"].write(offsets.astype("<i8", copy=False).data)
        self.texts[f"{name}s"].write(b"".join(encoded))


def _content(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while data := file.read(_BUFFER_BYTES):
        yield data


class _SectionWriter:
    """Writes sections one behind the other; remembers where they are, and the digests of their blocks."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.sections: dict[str, Section] = {}
        self.digests = bytearray()
        self._stream = stream
        self._end = 0

    def write(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        offset = round_up(max(self._end, HEADER_BYTES))
        self._stream.write(bytes(offset - self._end))
        self._end = offset
        held = bytearray()
        for part in parts:
            self._end += self._stream.write(part)
            held += part
            whole = len(held) // BLOCK_BYTES * BLOCK_BYTES
            self.digests += digest_blocks(held[:whole])
            del held[:whole]
        self.digests += digest_blocks(held)
        self.sections[name] = Section(offset, self._end - offset)


def _packed(
    stack: ExitStack,
    out: Path,
    codes: IO[bytes],
    lengths: NDArray[np.int32],
    layout: Layout,
    memory_limit: int,
) -> Iterator[bytes]:
    """The packed columns, from codes in order of input."""
    residues = layout.lengths.sum(axis=1, dtype=np.int64)
    total = int(residues.sum())
    # Consecutive blocks that share a file.
    share = (np.cumsum(residues) - residues) // max(memory_limit, total // _MOST_FILES, 1)
    firsts = np.flatnonzero(np.diff(share, prepend=-1))
    files = [codes] if firsts.size == 1 else [_temporary(stack, out) for _ in firsts]
    if len(files) > 1:
        _deal(codes, files, lengths, layout, firsts, memory_limit // _UNITS)
    for file, first, last in zip(files, firsts, [*firsts[1:], len(residues)], strict=True):
        records = layout.order[first * BLOCK_LANES : last * BLOCK_LANES]
        records = records[records >= 0]
        # In the file they are in order of input.
        by_input = np.argsort(records)
        ends = np.cumsum(lengths[records[by_input]], dtype=np.int64)
        starts = np.empty(records.size, np.int64)
        starts[by_input] = ends - lengths[records[by_input]]
        file.flush()
        if not ends[-1]:
            continue
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            most = memory_limit // _UNITS // BLOCK_LANES
            for columns in packed_columns(mapped, starts, layout, range(first, last), most):
                yield columns.tobytes()
        file.close()


def _deal(
    codes: IO[bytes],
    files: list[IO[bytes]],
    lengths: NDArray[np.int32],
    layout: Layout,
    firsts: NDArray[np.int64],
    size: int,
) -> None:
    """Copy the codes of each sequence, in order of input, to the file of its block."""
    slots = np.empty(lengths.size, np.int64)
    slots[layout.order[: lengths.size]] = np.arange(lengths.size)
    file_of = (np.searchsorted(firsts * BLOCK_LANES, slots, side="right") - 1).astype(np.uint8)
    del slots
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
    codes.seek(0)
    first = 0
    while first < lengths.size:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + size, side="right")) - 1)
        text = codes.read(int(starts[last] - starts[first]))
        for number in np.unique(file_of[first:last]).tolist():
            records = first + np.flatnonzero(file_of[first:last] == number)
            places = starts[records] - starts[first]
            spans = zip(places.tolist(), (places + lengths[records]).tolist(), strict=True)
            files[number].write(b"".join([text[a:b] for a, b in spans]))
        first = last
