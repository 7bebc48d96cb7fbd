"""Texts in files, and similar pairs of them as tables: ``plait similar``."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from plait.errors import FormatError
from plait.formats.atomic import array_file, bad_output
from plait.formats.fasta import read_fasta, sequence_file_kind
from plait.formats.files import ByteSource
from plait.formats.layouts import is_text
from plait.formats.rearrangements import read_columns
from plait.formats.tables import table_or_lines
from plait.qgrams.similarity import similar, similarities, smiles_letters

_EXPECTED: Final = "FASTA, one text a line, or a table with --column"
_PIECE: Final = 1 << 20
SCHEMA: Final = pa.schema(
    [("query", pa.string()), ("target", pa.string()), ("shared", pa.int64()), ("similarity", pa.float32())]
)


def read_texts(
    path: str | os.PathLike[str], *, column: str | None = None, smiles: bool = False
) -> tuple[list[str], list[bytes]]:
    """Names and texts: sequences of FASTA, a column of a table, or first words of lines, named by the second.

    What has no name has the number of its row, from 1 on. `smiles`: in the letters of LINGO. FormatError if
    the file is missing, damaged or something else, or there is no such column.
    """
    names, texts = _lines_or_fasta(path) if column is None else ([], _column(path, column))
    names += map(str, range(len(names) + 1, len(texts) + 1))
    return names, [smiles_letters(text) for text in texts] if smiles else texts


def _column(path: str | os.PathLike[str], column: str) -> list[bytes]:
    found = read_columns(path, [column], archives=True)[column]
    if not is_text(found.type):
        raise FormatError(path, found=f"a column of {found.type}", expected="text", column=column)
    return [(cell or "").encode() for chunk in found.chunks for cell in chunk.to_pylist()]


def _lines_or_fasta(path: str | os.PathLike[str]) -> tuple[list[str], list[bytes]]:
    names: list[str] = []
    texts: list[bytes] = []
    with ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        content = source.read(_PIECE)
        fasta = content.lstrip().startswith(b">")
        content += b"" if fasta else b"".join(iter(partial(source.read, _PIECE), b""))
    for block in read_fasta(path) if fasta else ():
        names += block.names
        texts += map(block.sequence, range(len(block)))
    lines = [] if fasta else content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        if b"\0" in line:
            raise FormatError(path, found="binary data", expected=_EXPECTED, line=number)
        if words := line.split(None, 1):
            texts.append(words[0])
            names.append((words[1:] or [b""])[0].strip().decode(errors="backslashreplace") or str(len(texts)))
    if not texts:
        raise FormatError(path, found="blank lines alone", expected=_EXPECTED)
    return names, texts


def similar_file(
    queries: Path, targets: Path | None, output: Path | str | None, **asked: Any
) -> tuple[int, int, int]:
    """Write similar pairs as a table, or all similarities as a .npy file; texts of both sets, and pairs.

    `asked` are parameters of `read_texts` and `similar`; without `at_least` and `nearest` a .npy file is a
    matrix. Errors are those of `read_texts`, `similar` and of writing.
    """
    inputs = [queries] if targets is None else [queries, targets]
    how = {name: asked.pop(name) for name in ("column", "smiles")}
    names, texts = read_texts(queries, **how)
    others, right = (names, None) if targets is None else read_texts(targets, **how)
    sizes = len(names), len(others)
    if output is not None and os.fspath(output).lower().endswith(".npy"):
        if asked.pop("at_least") is not None or asked.pop("nearest") is not None:
            raise bad_output(output, " for pairs", "a table, such as .tsv or .parquet")
        with array_file(output, "float32", sizes, inputs) as write:
            found = similarities(texts, right, **asked)
            write(found)
        return *sizes, found.size
    with table_or_lines(output, SCHEMA, metadata={"q": str(asked["q"])}, inputs=inputs) as table:
        pairs = similar(texts, right, **asked)
        queried = pa.array(names, pa.string()).take(pa.array(pairs.queries))
        near = pa.array(others, pa.string()).take(pa.array(pairs.targets))
        columns = [queried, near, pa.array(pairs.shared), pa.array(pairs.similarity)]
        table.write(pa.record_batch(columns, schema=SCHEMA))
    return *sizes, pairs.queries.size
