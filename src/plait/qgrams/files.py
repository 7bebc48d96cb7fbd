"""Texts in files, and similar pairs of them as tables: ``plait similar``."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import array_file, bad_output
from plait.formats.compression import ByteSource
from plait.formats.fasta import read_fasta, sequence_file_kind
from plait.formats.layouts import is_text
from plait.formats.rearrangements import open_columns
from plait.formats.tables import table_or_lines
from plait.qgrams.similarity import Similar, similar, similarities, smiles_letters

_EXPECTED: Final = "FASTA, one text a line, or a table with --column"
_PIECE: Final = 1 << 20
SCHEMA: Final = pa.schema(
    [("query", pa.string()), ("target", pa.string()), ("shared", pa.int64()), ("similarity", pa.float32())]
)


class Texts(NamedTuple):
    """Texts and their names."""

    names: list[str]
    texts: list[bytes]


def read_texts(path: str | os.PathLike[str], *, column: str | None = None, smiles: bool = False) -> Texts:
    """Sequences of a FASTA file, a column of a table, or the first words of lines, named by the second ones.

    What has no name has the number of its row, from 1 on. `smiles`: in the letters of LINGO. FormatError if
    the file is missing, damaged or something else; InvalidInput if there is no such column.
    """
    names, texts = _column(path, column) if column is not None else _lines_or_fasta(path)
    return Texts(names, [smiles_letters(text) for text in texts] if smiles else texts)


def _column(path: str | os.PathLike[str], column: str) -> Texts:
    file = open_columns(path, archives=True)
    if column not in file.schema.names:
        known = ", ".join(file.schema.names)
        raise InvalidInput("column", found=repr(column), expected=f"a column of {os.fspath(path)}: {known}")
    if not is_text(file.schema.field(column).type):
        found = f"a column of {file.schema.field(column).type}"
        raise FormatError(path, found=found, expected="text", column=column)
    texts: list[bytes] = []
    for batch in file.batches(_PIECE):
        texts += [(cell or "").encode() for cell in batch[column].to_pylist()]
    return Texts(list(map(str, range(1, len(texts) + 1))), texts)


def _lines_or_fasta(path: str | os.PathLike[str]) -> Texts:
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        pieces = [source.read(_PIECE)]
        fasta = pieces[0].lstrip().startswith(b">")
        pieces += [] if fasta else iter(partial(source.read, _PIECE), b"")
    if fasta:
        names, texts = [], []
        for block in read_fasta(path):
            names += block.names
            texts += [block.sequence(k) for k in range(len(block))]
        return Texts(names, texts)
    texts, names = [], []
    for number, line in enumerate(b"".join(pieces).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if b"\0" in line:
            raise FormatError(path, found="binary data", expected=_EXPECTED, line=number)
        if words := line.split(None, 1):
            texts.append(words[0])
            name = words[1].strip() if len(words) > 1 else b""
            names.append(name.decode(errors="backslashreplace") or str(len(texts)))
    if not texts:
        raise FormatError(path, found="blank lines alone", expected=_EXPECTED)
    return Texts(names, texts)


def similar_file(
    queries: Path, targets: Path | None, output: Path | str | None, **asked: Any
) -> tuple[int, int, int]:
    """Write similar pairs as a table, or all similarities as a .npy file; texts of both sets, and pairs.

    `asked` are parameters of `read_texts` and `similar`; without `at_least` and `nearest` a .npy file is a
    matrix. Errors are those of `read_texts`, `similar` and of writing.
    """
    inputs = [queries] if targets is None else [queries, targets]
    how = {name: asked.pop(name) for name in ("column", "smiles")}
    left = read_texts(queries, **how)
    right = left if targets is None else read_texts(targets, **how)
    other = None if targets is None else right.texts
    sizes = len(left.texts), len(right.texts)
    if output is not None and os.fspath(output).lower().endswith(".npy"):
        if asked.pop("at_least") is not None or asked.pop("nearest") is not None:
            raise bad_output(output, " for pairs", "a table, such as .tsv or .parquet")
        with array_file(output, "float32", sizes, inputs) as write:
            found = similarities(left.texts, other, **asked)
            write(found)
        return *sizes, found.size
    with table_or_lines(output, SCHEMA, metadata={"q": str(asked["q"])}, inputs=inputs) as table:
        pairs = similar(left.texts, other, **asked)
        table.write(_rows(pairs, left.names, right.names))
    return *sizes, pairs.queries.size


def _rows(pairs: Similar, queries: list[str], targets: list[str]) -> pa.RecordBatch:
    names = [
        pa.array(names, pa.string()).take(pa.array(places))
        for names, places in ((queries, pairs.queries), (targets, pairs.targets))
    ]
    return pa.record_batch([*names, pa.array(pairs.shared), pa.array(pairs.similarity)], schema=SCHEMA)
