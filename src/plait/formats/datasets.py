"""Tables as folders of Parquet files, the parts, with ``_manifest.json``, which says what belongs to one.

Parts are numbered: ``part-00000000.parquet``. In a dataset that is partitioned by a column they stand in
folders ``COLUMN=VALUE/``, as Hive has them, and do not have the column. The rows of all files, in the order
of their paths, are the table. Whoever reads Parquet reads it; plait checks besides that no part is missing,
damaged or too many.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import FormatError, InvalidInput, PlaitError, whole
from plait.formats.atomic import (
    AtomicFolder,
    WholeOrNot,
    bad_output,
    check_not_input,
    output_errors,
    sync_folder,
)
from plait.formats.files import (
    absolute,
    address_of,
    open_bytes,
    parse_json,
    status_of,
    store_errors,
    store_of,
)
from plait.formats.layouts import is_text
from plait.formats.parquet import PARTITION
from plait.formats.tables import ParquetRows, PartSettings, TableWriter, structured

MANIFEST: Final = "_manifest.json"
#: Files that are looked at where none is a table: what is named may be the root of a system.
_MOST_OTHERS: Final = 50_000
#: What a run tells of itself.
SUMMARY: Final = "_summary.json"
#: Stands in a store while a dataset is written there: folders cannot be renamed in it.
_UNFINISHED: Final = "_unfinished.json"
_KIND: Final = "plait dataset"
_SUFFIX: Final = ".parquet"
#: Folder of rows without a value, for all that read Hive's partitions.
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
#: Rows of a part, unless another number is asked for.
PART_ROWS: Final = 1 << 18
#: Values of the column of a partition in one part: each is a file.
_MOST_VALUES: Final = 4096
_LONGEST_VALUE: Final = 200


class Folder(ABC):
    """A folder that files are put into whole. Instances can be pickled."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in messages."""

    @abstractmethod
    def put(self, name: str, content: Any) -> None:
        """Write a file, which is seen when it is complete; FormatError if that cannot be."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """What a file holds; None if it is not there."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Bytes of all files in it and below, in the order of their names; none if it is not there."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def path(self, name: str) -> str:
        """The path or address of a file."""


class _LocalFolder(Folder):
    """A folder of this machine, or of a file system that it shares with others."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).absolute()

    @property
    def name(self) -> str:
        return str(self._path)

    def put(self, name: str, content: Any) -> None:
        """Write a file: two processes that write the same one do not meet, and the last one has it."""
        target = self._path / name
        hidden = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
        with output_errors(target):
            # Not the folder itself: where it has gone, its run is over.
            if target.parent != self._path:
                target.parent.mkdir(exist_ok=True)
            try:
                with open(hidden, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(hidden, target)
            except BaseException:
                with suppress(OSError):
                    hidden.unlink()
                raise
            sync_folder(target.parent)

    def read(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            found = error.strerror or str(error)
            raise FormatError(self.path(name), found=found, expected="a file that can be read") from error

    def sizes(self) -> dict[str, int]:
        found, tables = {}, False
        for path in self._path.rglob("*"):
            # One that another process is about to rename may be gone, and a link lead nowhere.
            with suppress(OSError):
                if not path.is_dir():
                    found[path.relative_to(self._path).as_posix()] = path.stat().st_size
                    tables = tables or path.suffix == _SUFFIX
            # Folders are not counted: those of a partition come before the files in them.
            if len(found) > _MOST_OTHERS and not tables:
                shown = f"more than {_MOST_OTHERS:,} files, of the first of which none is Parquet"
                raise FormatError(self._path, found=shown, expected="a file, or a folder of Parquet files")
        return dict(sorted(found.items()))

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def path(self, name: str) -> str:
        return str(self._path / name)


class _RemoteFolder(Folder):
    """What begins with an address in a store."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")

    @property
    def name(self) -> str:
        return self._address

    def put(self, name: str, content: Any) -> None:
        """Write a file at once: stores show it when it has been sent."""
        address = self.path(name)
        with output_errors(address), store_errors(address):
            system, inner = store_of(address)
            # Stores of objects know no folders, and would get an object for each.
            if not address.startswith(("s3:", "gs:")):
                system.create_dir(inner.rpartition("/")[0], recursive=True)
            with system.open_output_stream(inner) as stream:
                stream.write(content)

    def read(self, name: str) -> bytes | None:
        try:
            with open_bytes(self.path(name)) as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None

    def sizes(self) -> dict[str, int]:
        from pyarrow.fs import FileSelector, FileType

        with store_errors(self._address):
            system, inner = store_of(self._address)
            found = system.get_file_info(FileSelector(inner, allow_not_found=True, recursive=True))
        start = len(inner.rstrip("/")) + 1
        return dict(sorted((one.path[start:], int(one.size)) for one in found if one.type == FileType.File))

    def remove(self, name: str) -> None:
        with store_errors(self._address), suppress(FileNotFoundError):
            system, inner = store_of(self.path(name))
            system.delete_file(inner)

    def path(self, name: str) -> str:
        return f"{self._address}/{name}"


def folder_at(path: str | os.PathLike[str]) -> Folder:
    """The folder of a path or address."""
    address = address_of(path)
    return _LocalFolder(path) if address is None else _RemoteFolder(address)


def _digest(content: Any) -> str:
    """BLAKE2b of what a file holds, 16 bytes as hexadecimal text."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def rows_of_part(settings: PartSettings) -> int:
    """Rows of a part; InvalidInput if there are to be none."""
    return PART_ROWS if settings.part_rows is None else whole("part_rows", settings.part_rows, 1)


class PartFile(NamedTuple):
    """A file of a dataset: its path in the folder, its rows and bytes, and the digest of its bytes."""

    path: str
    rows: int
    bytes: int
    digest: str


class Parts(NamedTuple):
    """What all parts of a dataset have in common; can be pickled.

    `metadata` is as of `plait.formats.tables.open_table`, `partition` a column of `schema` or None.
    """

    schema: pa.Schema
    metadata: Mapping[str, str]
    partition: str | None = None

    def check(self) -> Parts:
        """Itself; InvalidInput if there is no such column, or it is no text."""
        if self.partition is None:
            return self
        names = self.schema.names
        if self.partition not in names:
            raise InvalidInput(
                "partition",
                found=repr(self.partition),
                expected=f"a column of the output: {', '.join(names)}",
            )
        kind = self.schema.field(self.partition).type
        if not is_text(kind) or len(names) == 1:
            found = f"{self.partition!r}, " + (f"a column of {kind}" if len(names) > 1 else "the only column")
            raise InvalidInput("partition", found=found, expected="a column of text among others")
        if _hidden(self.partition):
            expected = "a name that does not begin with '_' or '.': readers pass over such folders"
            raise InvalidInput("partition", found=repr(self.partition), expected=expected)
        return self


class PartWriter:
    """Encodes the rows of part `number`; its files are in memory until `finish` puts them in a folder."""

    def __init__(self, number: int, parts: Parts) -> None:
        self._number = number
        self._parts = parts
        self._open: dict[str | None, tuple[pa.BufferOutputStream, ParquetRows]] = {}
        self._rows: dict[str | None, int] = {}
        self.rows = 0

    @classmethod
    def empty(cls, parts: Parts, folder: Folder) -> tuple[PartFile, ...]:
        """The only part of a dataset without rows, which tells its columns."""
        writer = cls(0, parts)
        writer._add(None, None)
        return writer.finish(folder)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; each batch is a row group of each of its files.

        InvalidInput if the column of the partition has too many values, or one that names no folder.
        """
        self.rows += batch.num_rows
        name = self._parts.partition
        if name is None:
            self._add(None, batch)
            return
        values = batch[name].cast(pa.string()).dictionary_encode(null_encoding="encode")
        rest = batch.drop_columns([name])
        for k, value in enumerate(values.dictionary.to_pylist()):
            self._add(value, rest.filter(pc.equal(values.indices, k)) if len(values.dictionary) > 1 else rest)

    def finish(self, folder: Folder) -> tuple[PartFile, ...]:
        """Put the files into a folder, in the order of their paths.

        FormatError if they cannot be written.
        """
        found = []
        for value, (sink, rows) in self._open.items():
            rows.close()
            content = sink.getvalue()
            name = f"{self._folder(value)}part-{self._number:08d}{_SUFFIX}"
            folder.put(name, content)
            found.append(PartFile(name, self._rows[value], content.size, _digest(content)))
        self._open.clear()
        return tuple(sorted(found))

    def _add(self, value: str | None, batch: pa.RecordBatch | None) -> None:
        if value not in self._open:
            if len(self._open) == _MOST_VALUES:
                raise InvalidInput(
                    "partition",
                    found=f"{self._parts.partition!r}, which has more than {_MOST_VALUES:,} values in a part",
                    expected="one with few values, as subject_id",
                    hint="each value is a file of its own",
                )
            sink = pa.BufferOutputStream()
            self._open[value] = sink, ParquetRows(sink, self._schema(value), checksums=True)
        if batch is not None and batch.num_rows:
            self._open[value][1].write(batch)
            self._rows[value] = self._rows.get(value, 0) + batch.num_rows
        self._rows.setdefault(value, 0)

    def _schema(self, value: str | None) -> pa.Schema:
        schema, metadata, name = self._parts
        told = dict(metadata)
        if name is not None:
            place = schema.get_field_index(name)
            told[PARTITION.decode()] = json.dumps({"name": name, "value": value, "place": place})
            schema = schema.remove(place)
        return schema.with_metadata(told)

    def _folder(self, value: str | None) -> str:
        name = self._parts.partition
        if name is None:
            return ""
        text = _NULL if value is None else quote(value, safe=" ")
        if len(text) > _LONGEST_VALUE or value == _NULL:
            raise InvalidInput(
                "partition",
                found=f"the value {value!r:.60} of {name!r}",
                expected=f"values that name folders, of at most {_LONGEST_VALUE} bytes",
                hint="that is the folder of rows without a value" if value == _NULL else None,
            )
        return f"{quote(name, safe=' ')}={text}/"


class DatasetOutput(WholeOrNot):
    """A dataset being written: parts go into `folder`; closing it, after `finish`, makes it appear.

    On this machine it appears as a whole, in the place of an older one. In a store, whose folders cannot be
    renamed, parts are seen one by one; `plait` reads none before the manifest, which comes last, and an older
    dataset is not replaced. With `resume` the parts of a run that was stopped are still there. `keep` says
    after an error whether they are to stay.

    InvalidInput if the folder holds something else, belongs to an input, is in a folder that does not exist,
    or another run is writing it; FormatError if it cannot be written.
    """

    def __init__(
        self,
        output: str | os.PathLike[str],
        *,
        inputs: Iterable[str | os.PathLike[str]] = (),
        resume: bool = False,
        keep: Callable[[], bool] = lambda: False,
    ) -> None:
        self.path = os.fspath(output).rstrip("/")
        if Path(self.path).name in ("", ".."):
            raise bad_output(output, "", "the name of a folder")
        _check_not_of(self.path, inputs)
        self._keep = keep
        self._finished: Sequence[PartFile] | None = None
        self._mark = _json({"kind": _KIND, "run": uuid.uuid4().hex})
        self._local: AtomicFolder | None = None
        if address_of(self.path) is None:
            self._local = AtomicFolder(
                self.path, replaceable=_is_ours, left=_is_left, resume=resume, keep=keep
            )
            self.folder: Folder = folder_at(self._local.prepared)
        else:
            self.folder = folder_at(self.path)
            self._claim(resume)

    def _claim(self, resume: bool) -> None:
        known = self.folder.sizes()
        hint = None
        if MANIFEST in known:
            why, hint = ", which holds a dataset", "remove it, or choose another folder"
        elif _UNFINISHED in known and not resume:
            why = ", which another run is writing, or has left unfinished"
            hint = "if it was stopped, --resume goes on with it; else wait, or choose another folder"
        elif known and _UNFINISHED not in known:
            why, hint = ", which holds something else", "it is left as it is; choose another folder"
        if hint is not None:
            raise bad_output(self.path, why, "a new or empty folder", hint)
        self.folder.put(_UNFINISHED, self._mark)

    def _check_claimed(self) -> None:
        """FormatError if another run has claimed the folder since: parts are not to be mixed."""
        if self._local is None and self.folder.read(_UNFINISHED) != self._mark:
            raise FormatError(
                self.path,
                found="another run that writes there, too",
                expected="one run at a time",
                hint="wait for it, or choose another folder",
            )

    def whole(self, part: PartFile) -> bool:
        """Whether a part is there as it was written."""
        content = self.folder.read(part.path)
        return content is not None and _digest(content) == part.digest

    def finish(self, files: Iterable[PartFile], parts: Parts, summary: Mapping[str, Any] | None) -> None:
        """Say which files belong to it; others are removed. `summary` is put beside them."""
        self._check_claimed()
        self._finished = sorted(files)
        kept = {part.path for part in self._finished}
        for name in self.folder.sizes():
            if name not in kept and name != _UNFINISHED:
                self.folder.remove(name)
        if summary is not None:
            self.folder.put(SUMMARY, _json(summary))
        self.folder.put(MANIFEST, _json(manifest(self._finished, parts)))

    def close(self) -> None:
        """Make it appear."""
        assert self._finished is not None
        if self._local is not None:
            self._local.close()
        else:
            self.folder.remove(_UNFINISHED)

    def discard(self) -> None:
        """Remove what is unfinished, unless it is kept."""
        if self._local is not None:
            self._local.discard()
        elif not self._keep():
            # What went wrong first is what the user has to know.
            with suppress(PlaitError):
                self._check_claimed()
                for name in self.folder.sizes():
                    self.folder.remove(name)


def _check_not_of(path: str, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """InvalidInput if an output is an input, the folder of one, or in a folder that is one."""
    own = absolute(path)
    for given in inputs:
        if absolute(given) == own or absolute(given).startswith(f"{own}/"):
            check_not_input(path, [given])
            raise bad_output(path, ", which holds an input", "another folder", "it would be overwritten")
        if own.startswith(f"{absolute(given)}/"):
            hint = "the input would no more be the parts of one run"
            raise bad_output(path, ", which is in an input", "another folder", hint)


def _is_ours(folder: Path) -> bool:
    try:
        told = parse_json((folder / MANIFEST).read_bytes(), folder / MANIFEST, "a manifest")
        return bool(told["kind"] == _KIND) and _is_left(folder)
    except (OSError, KeyError, TypeError, FormatError):
        return False


#: What a dataset may hold, if it is to be removed.
_OWN: Final = re.compile(rf"([^/]*=[^/]*/)?(part-\d+{_SUFFIX}|{MANIFEST}|{SUMMARY})|(.*/)?\.[^/]*\.partial")


def _is_left(folder: Path) -> bool:
    return all(map(_OWN.fullmatch, folder_at(folder).sizes()))


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def manifest(files: Sequence[PartFile], parts: Parts) -> dict[str, Any]:
    """What the manifest of a dataset says."""
    return {
        "kind": _KIND,
        "version": 1,
        "columns": [{"name": field.name, "type": str(field.type)} for field in parts.schema],
        "metadata": {key: structured(value) for key, value in parts.metadata.items()},
        "partition": parts.partition,
        "rows": sum(file.rows for file in files),
        "parts": [file._asdict() for file in files],
    }


class DatasetTable(TableWriter):
    """A dataset that one process writes; made by `plait.formats.tables.open_table`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        *,
        metadata: Mapping[str, str],
        inputs: Iterable[str | os.PathLike[str]],
        settings: PartSettings,
    ) -> None:
        super().__init__(os.fspath(path).rstrip("/"), schema)
        self._parts = Parts(schema, metadata, settings.partition).check()
        self._most = rows_of_part(settings)
        self._output = DatasetOutput(path, inputs=inputs)
        self._files: list[PartFile] = []
        self._numbers = 0
        self._part: PartWriter | None = None

    def _write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            self._part = self._part or PartWriter(self._numbers, self._parts)
            room = self._most - self._part.rows
            self._part.write(batch.slice(0, room))
            batch = batch.slice(room)
            if self._part.rows == self._most:
                self._end()

    def _end(self) -> None:
        if self._part is not None:
            self._files += self._part.finish(self._output.folder)
            self._numbers, self._part = self._numbers + 1, None

    def close(self) -> None:
        """Write what is left, and make the dataset appear."""
        self._end()
        if not self._files:
            self._files += PartWriter.empty(self._parts, self._output.folder)
        self._output.finish(self._files, self._parts, None)
        self._output.close()

    def discard(self) -> None:
        """Remove what is unfinished."""
        self._output.discard()


def parts_of(path: str | os.PathLike[str]) -> list[tuple[str, dict[str, str]]] | None:
    """Files of a dataset, in order, each with what its folder says of its rows; None of what is none.

    A folder with other Parquet files is taken as one table too: whatever is in it, in the order of the paths,
    with the columns that folders ``NAME=VALUE`` tell. FormatError if a part is missing, cut off or not in the
    manifest, or the dataset is not finished.
    """
    if address_of(path) is None:
        if not os.path.isdir(path):
            return None
    else:
        try:
            status_of(path)
            return None
        except IsADirectoryError:
            pass
        except FileNotFoundError:
            return None
    folder = folder_at(os.path.abspath(path) if address_of(path) is None else path)
    known, content = folder.sizes(), folder.read(MANIFEST)
    tables = [name for name in known if name.endswith(_SUFFIX) and not _hidden(name)]
    if content is not None:
        _check_parts(folder, content, known, tables)
        return [(folder.path(name), {}) for name in tables]
    if _UNFINISHED in known:
        raise FormatError(
            folder.name,
            found="a dataset that is not finished",
            expected=f"a folder with {MANIFEST}",
            hint="wait for the run that writes it, or repeat its command with --resume",
        )
    return [(folder.path(name), _told_by(name)) for name in tables] or None


def _hidden(name: str) -> bool:
    return any(step.startswith((".", "_")) for step in name.split("/"))


def _told_by(name: str) -> dict[str, str]:
    pairs = (step.partition("=") for step in name.split("/")[:-1])
    return {unquote(key): unquote(value) for key, equal, value in pairs if equal and value != _NULL}


def _check_parts(folder: Folder, content: bytes, known: Mapping[str, int], tables: Sequence[str]) -> None:
    path = folder.path(MANIFEST)
    told = parse_json(content, path, "the manifest of a dataset")
    try:
        if told["kind"] != _KIND or told["version"] != 1:
            raise KeyError("kind")
        sizes = {str(part["path"]): int(part["bytes"]) for part in told["parts"]}
        rows = sum(part["rows"] for part in told["parts"])
        if (len(sizes), rows) != (len(told["parts"]), told["rows"]):
            raise ValueError(f"{len(sizes)} different parts of {rows:,} rows are not all")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(
            path,
            found=f"no such manifest ({type(error).__name__}: {error})",
            expected="one that this version of plait has written",
            hint="without it the folder is read as any folder of Parquet files",
        ) from error
    again = "copy it again, or repeat the command that wrote the dataset"
    for name, size in sizes.items():
        if known.get(name) != size:
            found = f"{known[name]:,} bytes" if name in known else "no such file"
            expected = f"the part of {size:,} bytes that {MANIFEST} lists"
            raise FormatError(folder.path(name), found=found, expected=expected, hint=again)
    for name in tables:
        if name not in sizes:
            raise FormatError(
                folder.path(name),
                found=f"a file that {MANIFEST} does not list",
                expected="the parts of one run in a dataset",
                hint="move it away",
            )
