"""What compiled code runs for look-ups in tables, and for squares of lanes that are turned: shuffles."""

from __future__ import annotations

from typing import Any

from plait.lang import lanes as groups
from plait.lang.compile import host_features, intrinsic, ir, types
from plait.lang.instructions import (
    INDEX,
    LaneGroup,
    address_of,
    alignment,
    by_width,
    call,
    in_rows,
    indices,
    lane_count,
    undefined,
    vector_type,
)

_I8 = ir.IntType(8)
_I16 = ir.IntType(16)
_I64 = ir.IntType(64)


def _halves(builder: Any, table: Any, width: int) -> Any:
    """The 32 entries as two tables of 16, repeated to `width`."""
    nothing = undefined(table.type)
    low = builder.shuffle_vector(table, nothing, indices(k % 16 for k in range(width)))
    high = builder.shuffle_vector(table, nothing, indices(16 + k % 16 for k in range(width)))
    return low, high


def _shuffle_of_halves(builder: Any, name: str, table: Any, index: Any, width: int) -> Any:
    low, high = _halves(builder, table, width)
    # Of an index with its highest bit set the shuffles make 0.
    below = ir.Constant(index.type, [112] * width), ir.Constant(index.type, [16] * width)
    first = call(builder, f"llvm.uadd.sat.v{width}i8", index.type, index, below[0])
    parts = (low, first), (high, builder.sub(index, below[1]))
    return builder.or_(*(call(builder, name, index.type, *part) for part in parts))


def _pieces(builder: Any, index: Any, width: int, piece: int) -> Any:
    """`index` as groups of `piece` lanes; a narrower one is filled up."""
    nothing = undefined(index.type)
    for start in range(0, max(width, piece), piece):
        yield builder.shuffle_vector(index, nothing, indices(min(start + k, width - 1) for k in range(piece)))


def _joined(builder: Any, parts: list[Any], width: int) -> Any:
    while len(parts) > 1:
        size = parts[0].type.count
        parts = [
            builder.shuffle_vector(parts[k], parts[k + 1], indices(range(2 * size)))
            for k in range(0, len(parts), 2)
        ]
    if parts[0].type.count == width:
        return parts[0]
    return builder.shuffle_vector(parts[0], undefined(parts[0].type), indices(range(width)))


def _byte_lookup(builder: Any, table: Any, index: Any, width: int) -> Any:
    """Look `index` up in 32 bytes, with the widest shuffle of this processor; None when it has none."""
    features = host_features()
    if features.get("avx512vbmi"):
        both = builder.shuffle_vector(table, undefined(table.type), indices(k % 32 for k in range(64)))
        name, piece = "llvm.x86.avx512.permvar.qi.512", 64

        def one(part: Any) -> Any:
            return call(builder, name, part.type, both, part)

    elif features.get("avx2") and width > 16:
        name, piece = "llvm.x86.avx2.pshuf.b", 32

        def one(part: Any) -> Any:
            return _shuffle_of_halves(builder, name, table, part, piece)

    elif features.get("ssse3"):
        name, piece = "llvm.x86.ssse3.pshuf.b.128", 16

        def one(part: Any) -> Any:
            return _shuffle_of_halves(builder, name, table, part, piece)

    elif features.get("neon"):
        name, piece = "llvm.aarch64.neon.tbl2.v16i8", 16
        low, high = _halves(builder, table, 16)

        def one(part: Any) -> Any:
            return call(builder, name, part.type, low, high, part)

    else:
        return None
    return _joined(builder, [one(part) for part in _pieces(builder, index, width, piece)], width)


def _lookup_one_by_one(builder: Any, entries: Any, index: Any, vector: Any, align: int) -> Any:
    found = undefined(vector)
    for lane in range(vector.count):
        code = builder.extract_element(index, ir.Constant(INDEX, lane))
        # As the shuffles do: no index reads past the table.
        at = builder.zext(builder.and_(code, ir.Constant(code.type, 31)), _I64)
        entry = builder.load(builder.gep(entries, [at]))
        entry.align = align
        found = builder.insert_element(found, entry, ir.Constant(INDEX, lane))
    return found


def _word_lookup(builder: Any, table: Any, index: Any, width: int) -> Any:
    """Look 16-bit numbers up in 32 words; None when this processor has no shuffle."""
    words = ir.VectorType(_I16, width)
    if host_features().get("avx512bw"):
        name, piece = "llvm.x86.avx512.permvar.hi.512", 32
        parts = [call(builder, name, table.type, table, p) for p in _pieces(builder, index, width, piece)]
        return _joined(builder, parts, width)
    octets = builder.bitcast(table, ir.VectorType(_I8, 64))
    narrow = builder.trunc(index, ir.VectorType(_I8, width))
    halves = [
        builder.shuffle_vector(octets, undefined(octets.type), indices(range(first, 64, 2)))
        for first in (0, 1)
    ]
    low, high = (_byte_lookup(builder, half, narrow, width) for half in halves)
    if low is None:
        return None
    upper = builder.shl(builder.zext(high, words), ir.Constant(words, [8] * width))
    return builder.or_(builder.zext(low, words), upper)


def _whole_row(builder: Any, entries: Any, kind: Any, table: Any) -> Any:
    row = builder.load(builder.bitcast(entries, ir.VectorType(kind, 32).as_pointer()))
    row.align = alignment(table)
    if not table.mutable:
        # What is written in a loop cannot be the table, which is loaded before it then.
        row.set_metadata("invariant.load", builder.module.add_metadata([]))
    return row


def _resized(builder: Any, index: Any, kind: Any) -> Any:
    """`index` in lanes of another width."""
    have = index.type.element.width
    wanted = ir.VectorType(kind, index.type.count)
    if have == kind.width:
        return index
    return builder.zext(index, wanted) if have < kind.width else builder.trunc(index, wanted)


@intrinsic
def vector_lookup(typing_context: Any, lanes: Any, table: Any, row: Any, index: Any) -> Any:
    """``table[row, index]``, lane by lane, in a table of 32 columns."""
    if not in_rows(table) or index.element not in (types.uint8, types.uint16):
        return None
    kind = LaneGroup(table.dtype, index.width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[1])(context, builder, args[1])
        entries = builder.gep(view.data, [builder.mul(args[2], ir.Constant(_I64, 32))])
        found = None
        if table.dtype.bitwidth == 8:
            octets = _whole_row(builder, entries, _I8, table)
            found = _byte_lookup(builder, octets, _resized(builder, args[3], _I8), index.width)
        elif table.dtype.bitwidth == 16:
            words = _whole_row(builder, entries, _I16, table)
            found = _word_lookup(builder, words, _resized(builder, args[3], _I16), index.width)
        if found is None:
            found = _lookup_one_by_one(builder, entries, args[3], vector_type(kind), alignment(table))
        return found

    return kind(lanes, table, types.int64, index), generate


#: Lanes that shuffles move among themselves in one instruction.
_BLOCK = 16


def _blocks(width: int) -> list[tuple[int, int]]:
    """Stretches of lanes that one instruction moves among themselves."""
    return [(start, min(start + _BLOCK, width)) for start in range(0, width, _BLOCK)]


def _shuffled(builder: Any, a: Any, b: Any, half: int) -> Any:
    """Lanes of one half of every block of two groups, in turn."""
    order = []
    for start, end in _blocks(a.type.count):
        first = start + half * (end - start) // 2
        order += [first + k // 2 + k % 2 * a.type.count for k in range(end - start)]
    return builder.shuffle_vector(a, b, indices(order))


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of as many rows as they have lanes."""
    width, sets = len(rows), []
    for start, end in _blocks(width):
        own, middle = rows[start:end], (end - start) // 2
        for _ in range((end - start).bit_length() - 1):
            own = [_shuffled(builder, own[k // 2], own[k // 2 + middle], k % 2) for k in range(2 * middle)]
        sets.append(own)
    found = []
    for start, end in _blocks(width):
        for same in zip(*sets, strict=True):
            parts = [builder.shuffle_vector(one, one, indices(range(start, end))) for one in same]
            found.append(_joined(builder, parts, width))
    return found


@intrinsic
def vector_store_turned(
    typing_context: Any, lanes: Any, rows: Any, picked: Any, lane: Any, found: Any, row: Any, place: Any
) -> Any:
    """Write a square of lanes, turned."""
    if (
        not in_rows(rows)
        or not in_rows(found)
        or not found.mutable
        or rows.dtype != found.dtype
        or picked.dtype != types.int64
    ):
        return None
    width = lane_count(lanes)
    vector = vector_type(LaneGroup(rows.dtype, width))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        picks = context.make_array(signature.args[2])(context, builder, args[2]).data
        whole = []
        for k in range(width):
            at = builder.load(builder.gep(picks, [ir.Constant(_I64, k)]))
            value = builder.load(
                address_of(context, builder, signature.args[1], (args[1], at, args[3]), vector)
            )
            value.align = alignment(rows)
            whole.append(value)
        for k, value in enumerate(_turned(builder, whole)):
            at = builder.add(args[5], ir.Constant(_I64, k))
            where = address_of(context, builder, signature.args[4], (args[4], at, args[6]), vector)
            builder.store(value, where).align = alignment(found)
        return context.get_dummy_value()

    return types.void(lanes, rows, picked, types.int64, found, types.int64, types.int64), generate


def _lookup_group(lanes, table, row, index):  # type: ignore[no-untyped-def]
    return vector_lookup(lanes, table, row, index)


def _lookup_one(lanes, table, row, index):  # type: ignore[no-untyped-def]
    return table[row, index]


def _store_turned_group(lanes, rows, picked, lane, found, row, place):  # type: ignore[no-untyped-def]
    vector_store_turned(lanes, rows, picked, lane, found, row, place)


def _store_turned_one(lanes, rows, picked, lane, found, row, place):  # type: ignore[no-untyped-def]
    found[row, place] = rows[picked[0], lane]


by_width(groups.lookup, _lookup_one, _lookup_group)
by_width(groups.store_turned, _store_turned_one, _store_turned_group)
