"""Finished blocks of a run kept on disk, so that a run that was killed can go on.

A checkpoint is a folder with ``run.json``, which says what run it belongs to, and one file for every finished
block: an Arrow IPC stream compressed with lz4, or Parquet where a block is that already, a digest of what it
was made from, and the CRC-32 of both.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.ipc as arrow_ipc
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, PlaitError
from plait.formats.atomic import AtomicFile, folder_or_nothing, output_errors, write_json
from plait.formats.files import read_json
from plait.formats.row_groups import MAGIC, EncodedRows

_MARKER: Final = "run.json"
_KIND: Final = "plait checkpoint"
_VERSION: Final = 2
_BLOCK_NAME: Final = re.compile(r"block-(\d{8,})\.arrows")
_CHECK_BYTES = 4
_DIGEST_BYTES = 16
#: Differences to another run that a message names.
_MOST_SHOWN: Final = 4


class Checkpoint:
    """Finished blocks of one run, in a folder that is made if it is not there.

    `key` is everything that determines the blocks (versions, parameters, inputs), expressible in JSON. With
    `resume` the run goes on with what is there; otherwise an older checkpoint is removed. InvalidInput if the
    folder holds something else or, with `resume`, a run with another key; FormatError if it cannot be
    written.
    """

    def __init__(self, directory: str | os.PathLike[str], *, key: Mapping[str, object], resume: bool) -> None:
        self.directory = Path(directory)
        # As it will be read back: tuples become lists, keys become text.
        now: dict[str, Any] = json.loads(json.dumps(key))
        stored = self._stored_key()
        if stored is not None and resume:
            _check_same(self.directory, stored, now)
        else:
            if stored is not None:
                self.remove()
            with folder_or_nothing(self.directory):
                write_json(self._marker, {"kind": _KIND, "version": _VERSION, "key": now})

    def blocks(self) -> list[int]:
        """Numbers of the stored blocks in order; `get` may still find one damaged."""
        matches = (_BLOCK_NAME.fullmatch(entry.name) for entry in self.directory.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def get(
        self,
        index: int,
        made_from: bytes | None = None,
        name: str = "",
        schema: pa.Schema | None = None,
    ) -> pa.RecordBatch | None:
        """A block as it was put; None if it is absent, cut off or damaged.

        Of a block of encoded rows, the columns of `schema`. `made_from` is `digest_of` what it would be made
        from now, called `name` in an error: InvalidInput if it was made from something else. None takes
        whatever it was made from.
        """
        try:
            stored = self.path_of(index).read_bytes()
        except FileNotFoundError:
            return None
        content, check = stored[:-_CHECK_BYTES], stored[-_CHECK_BYTES:]
        if not content or _checksum(content) != check:
            return None
        if made_from not in (None, content[-_DIGEST_BYTES:]):
            raise InvalidInput(
                "resume",
                found=f"another content of {name or f'block {index}'} than the stopped run has worked on",
                expected="the same inputs",
                hint="the input has changed since; start anew without resuming",
            )
        try:
            if schema is not None and content.startswith(MAGIC):
                return _of_parquet(content[:-_DIGEST_BYTES], schema)
            with arrow_ipc.open_stream(content[:-_DIGEST_BYTES]) as reader:
                return reader.read_next_batch()
        except (pa.ArrowException, OSError, StopIteration):
            return None

    def put(
        self,
        index: int,
        block: pa.RecordBatch | EncodedRows,
        made_from: bytes = bytes(_DIGEST_BYTES),
    ) -> None:
        """Store block `index`, from 0; `made_from` is `digest_of` what it was made from.

        FormatError if it cannot be written, for example on a full disk.
        """
        content = block.file if isinstance(block, EncodedRows) else _as_stream(block)
        path = self.path_of(index)
        with AtomicFile(path, durable=False) as file, output_errors(path):
            file.stream.write(content)
            file.stream.write(made_from)
            file.stream.write(_checksum(made_from, zlib.crc32(content)))

    def drop(self, index: int) -> None:
        """Remove a block, if it is there."""
        self.path_of(index).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the checkpoint, folder included.

        InvalidInput if the folder holds files that are not of a checkpoint; they are left there.
        """
        if not self.directory.exists():
            return
        blocks: list[Path] = []
        markers: list[Path] = []
        foreign: list[Path] = []
        for entry in self.directory.iterdir():
            name = entry.name.removeprefix(".").removesuffix(".partial")
            kind = blocks if _BLOCK_NAME.fullmatch(name) else markers if name == _MARKER else foreign
            kind.append(entry)
        if foreign:
            names = sorted(entry.name for entry in foreign)
            raise InvalidInput(
                "checkpoint",
                found=f"other files in {str(self.directory)!r}: {', '.join(names[:5])}",
                expected="a folder of the checkpoint's own",
                hint="move them away",
            )
        # The marker goes last: what an interrupted removal leaves is still known for ours.
        for entry in blocks + markers:
            entry.unlink(missing_ok=True)
        # Two runs may remove what a third one has left.
        with suppress(FileNotFoundError):
            self.directory.rmdir()

    @classmethod
    def remove_left_over(cls, directory: str | os.PathLike[str]) -> None:
        """Remove the checkpoint of a run that was killed after all it had to do; nothing else."""
        left = cls.__new__(cls)
        left.directory = Path(directory)
        with suppress(InvalidInput, FileNotFoundError):
            if left._stored_key() is not None:
                left.remove()

    def path_of(self, index: int) -> Path:
        """The file of a block, there or not."""
        return self.directory / f"block-{index:08d}.arrows"

    @property
    def _marker(self) -> Path:
        return self.directory / _MARKER

    def _stored_key(self) -> dict[str, Any] | None:
        """Key in the folder, None if there is nothing yet; an error if the folder is not a checkpoint."""
        if not self.directory.exists():
            return None
        if self.directory.is_dir() and not self.directory.is_symlink():
            if not any(entry.name != f".{_MARKER}.partial" for entry in self.directory.iterdir()):
                return None
            try:
                found = read_json(self._marker, expected="the description of a run")
                if found["kind"] == _KIND and isinstance(found["key"], dict):
                    return {**found["key"], "checkpoint version": found["version"]}
            except (FormatError, KeyError, TypeError):
                pass
        raise InvalidInput(
            "checkpoint",
            found=f"{str(self.directory)!r}, which is not a checkpoint of plait",
            expected="a new or empty folder, or one that an earlier run made",
            hint="it is left as it is; choose another folder",
        )


class KeptSteps:
    """What the steps of a computation give, one after the other, each kept in a checkpoint of its `key`.

    When the same steps are asked for again, in a later run, those that are kept are not made again.
    """

    def __init__(self, directory: str | os.PathLike[str], key: Mapping[str, object]) -> None:
        self._checkpoint = Checkpoint(directory, key=key, resume=True)
        self._step = 0

    def arrays(self, make: Callable[[], Sequence[NDArray[Any]]], *made_from: Any) -> Sequence[NDArray[Any]]:
        """The arrays of the next step, made anew where it was made from something else."""
        step, self._step = self._step, self._step + 1
        digest, block = digest_of(*made_from), None
        with suppress(InvalidInput):
            block = self._checkpoint.get(step, digest)
        if block is not None:
            with np.load(io.BytesIO(block["arrays"][0].as_py()), allow_pickle=False) as stored:
                return [stored[name] for name in stored.files]
        found, content = make(), io.BytesIO()
        np.savez(content, *found)
        arrays = pa.array([content.getvalue()], pa.large_binary())
        self._checkpoint.put(step, pa.record_batch({"arrays": arrays}), digest)
        return found

    def facts(self, make: Callable[[], Any], whole: Callable[[Any], bool] = lambda told: True) -> Any:
        """What the next step tells, as it comes out of JSON; made anew unless what it has left is `whole`."""
        (text,) = self.arrays(lambda: [np.frombuffer(json.dumps(make()).encode(), np.uint8)])
        told = json.loads(text.tobytes())
        if whole(told):
            return told
        self._step -= 1
        self._checkpoint.drop(self._step)
        return self.facts(make)


class TextBytes(NamedTuple):
    """A column of texts as bytes, not to be changed; `starts`, int64 (n + 1,), are offsets into `data`."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]


def letters_of(column: pa.Array) -> TextBytes:
    """A column of texts or bytes, large or not, as bytes; a null is an empty text."""
    texts = column.cast(pa.large_binary()).fill_null(b"")
    if len(texts) == 0:
        return TextBytes(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
    letters = np.frombuffer(data or b"", np.uint8)
    return TextBytes(letters[starts[0] : starts[-1]], starts - starts[0])


def digest_of(*parts: Any) -> bytes:
    """Digest of rows, or of anything with bytes, that tells whether they are the same; 16 bytes.

    Equal batches have equal digests wherever their rows lie in memory.
    """
    # Processors have instructions for it; what has changed by itself is found, not what somebody has made up.
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        for piece in _pieces(part) if isinstance(part, pa.RecordBatch) else (part,):
            content = memoryview(piece).cast("B")
            digest.update(content.nbytes.to_bytes(8, "little"))
            digest.update(content)
    return digest.digest()[:_DIGEST_BYTES]


def _pieces(batch: pa.RecordBatch) -> Iterator[Any]:
    """Bytes of rows that do not depend on what these were cut from."""
    for column in batch.columns:
        kind, rows = column.type, len(column)
        numbers = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not rows or not (numbers or texts or pa.types.is_boolean(kind)):
            yield repr(column.to_pylist()).encode()
            continue
        yield np.packbits(np.asarray(column.is_valid())) if column.null_count else b""
        if pa.types.is_boolean(kind):
            yield np.packbits(np.asarray(column.fill_null(False)))
            continue
        if numbers:
            yield np.ascontiguousarray(column.fill_null(0).to_numpy(zero_copy_only=False))
            continue
        letters, starts = letters_of(column)
        yield from (starts, letters)


@contextmanager
def kept_if_useful(checkpoint: Checkpoint, inputs: Iterable[str | os.PathLike[str]] = ()) -> Iterator[None]:
    """Remove the checkpoint of a run that fails inside before its first block, or for what an input holds.

    `inputs` are files that would have to be changed first, so that such a run cannot be resumed.
    """
    try:
        yield
    except BaseException as error:
        with suppress(OSError, PlaitError):
            damaged = isinstance(error, FormatError) and error.path in [str(path) for path in inputs]
            if damaged or not checkpoint.blocks():
                checkpoint.remove()
        raise


def _check_same(directory: Path, stored: dict[str, Any], now: dict[str, Any]) -> None:
    before, after = _flat(stored), _flat({**now, "checkpoint version": _VERSION})
    differing = [
        f"{name} (stored {_shown(before, name)}, now {_shown(after, name)})"
        for name in sorted(before.keys() | after.keys())
        if _shown(before, name) != _shown(after, name)
    ]
    if differing:
        more = f" and {len(differing) - _MOST_SHOWN} more" if len(differing) > _MOST_SHOWN else ""
        shown = "; ".join(differing[:_MOST_SHOWN]) + more
        raise InvalidInput(
            "resume",
            found=f"a checkpoint of another run in {str(directory)!r}: {shown}",
            expected="the same parameters, inputs and version",
            hint="repeat the former command, or start anew without resuming",
        )


def _flat(value: object, name: str = "") -> dict[str, object]:
    """Nested mappings and lists as one mapping with dotted names."""
    if isinstance(value, dict) and value:
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        items = [(str(place), item) for place, item in enumerate(value)]
    else:
        return {name: value}
    flat: dict[str, object] = {}
    for key, item in items:
        flat.update(_flat(item, f"{name}.{key}" if name else key))
    return flat


def _shown(flat: dict[str, object], name: str) -> str:
    return json.dumps(flat[name]) if name in flat else "nothing"


def _as_stream(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = arrow_ipc.IpcWriteOptions(compression="lz4")
    with arrow_ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _of_parquet(content: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """Some columns of a block that is a file of one row group."""
    import pyarrow.parquet as arrow_parquet

    found = arrow_parquet.read_table(pa.BufferReader(content), columns=schema.names, use_threads=False)
    # Of a table without rows there are no batches.
    columns = found.select(schema.names).cast(schema).columns
    return pa.record_batch([column.combine_chunks() for column in columns], schema=schema)


def _checksum(content: bytes, before: int = 0) -> bytes:
    """CRC-32 of some bytes behind others, of which it is given."""
    return zlib.crc32(content, before).to_bytes(_CHECK_BYTES, "little")
