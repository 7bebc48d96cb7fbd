"""Mutations of files: of bytes, of lines and fields, of JSON trees, and of several files in one case."""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pyarrow as pa

Mutate = Callable[[Random, Sequence[bytes]], bytes]

_EDGES = (
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b",",
    b";",
    b'"',
    b"'",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x1a",
)
_WORDS = (
    *(b"0", b"-1", b"1", b"00", b"1e999", b"-0", b"nan", b"inf", b"NULL", b"null", b"None", b"True", b"="),
    *(b"2147483648", b"9223372036854775808", b"18446744073709551616", b"9" * 400, b"1_000", "٣".encode()),
    *(
        b"\xed\xa0\x80",
        "\u2028".encode(),
        "é".encode(),
        "\U0001f9ec".encode(),
        b"A" * 300,
        b"../../x",
        b"%s{}",
    ),
)
_INTEGERS = tuple(
    value & mask
    for mask in (0xFF, 0xFFFF, 0xFFFFFFFF)
    for value in (0, 1, -1, mask >> 1, (mask >> 1) + 1, 255)
)
_LONGEST = 1 << 16
_MARK = b"\x00\x01file "


def _bits(rng: Random, data: bytearray) -> None:
    place = rng.randrange(len(data))
    data[place] ^= 1 << rng.randrange(8)


def _byte(rng: Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def _integer(rng: Random, data: bytearray) -> None:
    place, size = rng.randrange(len(data)), rng.choice((1, 2, 4, 8))
    value = rng.choice(_INTEGERS) & ((1 << 8 * size) - 1)
    data[place : place + size] = value.to_bytes(size, rng.choice(("little", "big")))


def _cut(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _remove(rng: Random, data: bytearray) -> None:
    place = rng.randrange(len(data))
    del data[place : place + 1 + rng.randrange(1 << rng.randrange(8))]


def _repeat(rng: Random, data: bytearray) -> None:
    place = rng.randrange(len(data))
    part = data[place : place + 1 + rng.randrange(1 << rng.randrange(8))]
    data[place:place] = part * (1 if rng.random() < 0.9 else rng.randrange(2, 200))


def _insert(rng: Random, data: bytearray) -> None:
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.choice(_EDGES)


_BYTE_STEPS = (_bits, _byte, _byte, _integer, _cut, _remove, _repeat, _insert)


def mutated_bytes(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Some flipped bits, set integers, pieces removed, repeated or cut off, or two cases joined."""
    found = bytearray(data)
    for _ in range(1 + int(rng.expovariate(0.9))):
        if not found:
            found += rng.choice(_EDGES)
        if rng.random() < 0.04:
            other = rng.choice(corpus)
            found[rng.randrange(len(found)) :] = other[rng.randrange(len(other) + 1) :]
        else:
            rng.choice(_BYTE_STEPS)(rng, found)
    return bytes(found[:_LONGEST])


def _changed_fields(rng: Random, line: bytes, marks: bytes, words: Sequence[bytes]) -> bytes:
    mark = marks[rng.randrange(len(marks))].to_bytes(1, "big")
    cells = line.split(mark)
    place, step = rng.randrange(len(cells)), rng.randrange(6)
    if step == 0:
        del cells[place]
    elif step == 1:
        cells.insert(place, cells[rng.randrange(len(cells))])
    elif step == 2:
        other = rng.randrange(len(cells))
        cells[place], cells[other] = cells[other], cells[place]
    elif step == 3:
        cells[place] += rng.choice(words)
    else:
        cells[place] = rng.choice(words) if rng.random() < 0.9 else b""
    return mark.join(cells)


def _change_line(
    rng: Random, parts: list[bytes], corpus: Sequence[bytes], marks: bytes, words: Sequence[bytes]
) -> None:
    place, step = rng.randrange(len(parts)), rng.randrange(12)
    if step == 0:
        del parts[place]
    elif step == 1:
        parts.insert(place, parts[rng.randrange(len(parts))])
    elif step == 2:
        other = rng.randrange(len(parts))
        parts[place], parts[other] = parts[other], parts[place]
    elif step == 3:
        parts[place] += rng.choice(_EDGES)
    elif step == 4:
        parts.insert(place, rng.choice((b"", b" ", b"\r", rng.choice(words))))
    elif step == 5:
        parts[place:] = rng.choice(corpus).split(b"\n")[place:]
    elif step == 6:
        parts[place] = parts[place] * rng.randrange(2, 40)
    else:
        parts[place] = _changed_fields(rng, parts[place], marks, words)


def text_mutation(tokens: Sequence[bytes], field_marks: bytes = b"\t", *, raw: float = 0.3) -> Mutate:
    """Mutations of lines of fields; a share of `raw` is of bytes alone."""
    words = (*tokens, *tokens, *_WORDS)

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = rng.choice(corpus)
        share = rng.random()
        if share < raw:
            return mutated_bytes(rng, data, corpus)
        parts = data.split(b"\n")
        for _ in range(1 + int(rng.expovariate(1.0))):
            _change_line(rng, parts, corpus, field_marks, words)
            parts = parts or [b""]
        found = b"\n".join(parts)[:_LONGEST]
        return mutated_bytes(rng, found, corpus) if share > 0.95 else found

    return mutate


def raw_mutation(rng: Random, corpus: Sequence[bytes]) -> bytes:
    """Mutations of bytes alone."""
    return mutated_bytes(rng, rng.choice(corpus), corpus)


_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 1 << 31, 1 << 63, 1 << 64, -(1 << 70), 10**400, 0.5, -0.0, 1e308),
    *(
        float("nan"),
        float("inf"),
        "",
        " ",
        "A",
        "é\u2028",
        "\ud800",
        "\0",
        "x" * 300,
        "1",
        [],
        {},
        [[]],
        [None],
    ),
    *([1, "a"], {"a": {}}, [[[[1]]]], "IGHV1-1*01", "ACGT", "acgtn-.", {"": 1}),
)


def _places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    if isinstance(tree, dict):
        items: Any = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    else:
        return found
    for key, value in items:
        found.append((tree, key))
        _places(value, found)
    return found


def _change(rng: Random, tree: Any, values: Sequence[Any], keys: Sequence[str]) -> None:
    places = _places(tree, [])
    if not places:
        return
    holder, key = rng.choice(places)
    step = rng.randrange(8)
    if step == 0:
        del holder[key]
    elif step == 1:
        other, source = rng.choice(places)
        if source in other if isinstance(other, dict) else source < len(other):
            holder[key] = copy.deepcopy(other[source])
    elif step == 2 and isinstance(holder, dict):
        holder[rng.choice(keys)] = holder.pop(key)
    elif step == 3 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif step == 4 and isinstance(holder[key], str) and holder[key]:
        holder[key] = mutated_bytes(rng, holder[key].encode("utf-8", "replace"), [b"ACGT"]).decode(
            "utf-8", "replace"
        )
    elif step == 5 and isinstance(holder[key], int | float):
        holder[key] = holder[key] + (rng.choice((1, -1, 0.5, 1 << 40)) if abs(holder[key]) < 1e300 else 1)
    else:
        holder[key] = copy.deepcopy(rng.choice(values))


def json_mutation(keys: Sequence[str] = (), values: Sequence[Any] = ()) -> Mutate:
    """Mutations of the tree of a JSON text, of its words and of its bytes; deep nesting and long numbers."""
    words = (
        b'"a":1,',
        b"1" * 5000,
        b"1e400",
        b"NaN",
        b"-Infinity",
        b"[" * 3000,
        b'{"a":' * 1500,
        b'"\\ud800"',
    )
    text = text_mutation(tuple(str(key).encode() for key in keys) + words, b",:", raw=0.5)
    known = (*values, *_VALUES)

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        if rng.random() < 0.25:
            return text(rng, corpus)
        tree = json.loads(rng.choice(corpus))
        for _ in range(1 + int(rng.expovariate(1.2))):
            _change(rng, tree, known, keys or ("a",))
        found = json.dumps(tree, ensure_ascii=rng.random() < 0.7)
        return found.encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")

    return mutate


def compressed_mutation(inner: Mutate) -> Mutate:
    """Mutations within and without gzip and zstd, of several members, and of what stands between them."""

    def pack(rng: Random, data: bytes) -> bytes:
        if rng.random() < 0.5:
            return gzip.compress(data, rng.choice((0, 1, 6)), mtime=0)
        return bytes(pa.Codec("zstd").compress(data, asbytes=True))

    def unpacked(data: bytes) -> bytes:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        return bytes(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read())

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = rng.choice(corpus)
        step = rng.randrange(10)
        if step < 5:
            return mutated_bytes(rng, data, corpus)
        if step == 5:
            return data + rng.choice((rng.choice(corpus), bytes(rng.randrange(9)), b"tail", data[:9]))
        plain = unpacked(data)
        if step == 6:
            cut = rng.randrange(len(plain) + 1)
            return pack(rng, plain[:cut]) + pack(rng, plain[cut:])
        if step == 7:
            return gzip.compress(gzip.compress(plain, 1, mtime=0), 1, mtime=0)
        if step == 8:
            return data[:10] + zlib.compress(bytes(rng.randrange(1, 200000)), 9)
        return pack(rng, inner(rng, [plain]))

    return mutate


def bundle(files: dict[str, bytes]) -> bytes:
    """Several files as one case."""
    return b"".join(_MARK + name.encode() + b"\n" + data for name, data in files.items())


def unbundle(data: bytes) -> dict[str, bytes]:
    """The files of a case; names are those that `bundle` was given."""
    parts = (part.partition(b"\n") for part in data.split(_MARK)[1:])
    return {name.decode("ascii", "replace"): content for name, _, content in parts}


def bundle_mutation(ways: dict[str, Mutate], rest: Mutate = raw_mutation) -> Mutate:
    """One file of a case is mutated in its own way, or is missing, or is that of another case."""

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        files = unbundle(rng.choice(corpus))
        name = rng.choice(sorted(files))
        step = rng.random()
        if step < 0.02:
            del files[name]
        elif step < 0.08:
            files[name] = unbundle(rng.choice(corpus)).get(name, b"")
        else:
            way = next((way for end, way in ways.items() if name.endswith(end)), rest)
            files[name] = way(rng, [files[name]])
        return bundle(files)

    return mutate
