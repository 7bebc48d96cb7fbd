"""The table look-up in compiled code: the one operation for which LLVM must be told the instruction.

Tables of bytes are looked up with the widest byte shuffle that the processor has: ``vpermb`` (AVX-512 VBMI),
``pshufb`` (AVX2, SSSE3) or ``tbl`` (Arm). Tables of 16-bit numbers: with ``vpermw`` (AVX-512 BW), or
as two tables of bytes. Other tables, and other processors, take one lane at a time.
"""

from __future__ import annotations

from typing import Any

from plait._jit import host_features, intrinsic, ir, types
from plait.lanes.registers import INDEX, LaneGroup, alignment, call, in_rows, indices, undefined, vector_type

__all__ = ["vector_lookup"]

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
    fifteen = ir.Constant(index.type, [15] * width)
    within = builder.and_(index, fifteen)
    first = call(builder, name, index.type, low, within)
    second = call(builder, name, index.type, high, within)
    return builder.select(builder.icmp_unsigned(">", index, fifteen), second, first)


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

    elif features.get("avx2"):
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


def _whole_row(builder: Any, entries: Any, kind: Any, align: int) -> Any:
    row = builder.load(builder.bitcast(entries, ir.VectorType(kind, 32).as_pointer()))
    row.align = align
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
            octets = _whole_row(builder, entries, _I8, 1)
            found = _byte_lookup(builder, octets, _resized(builder, args[3], _I8), index.width)
        elif table.dtype.bitwidth == 16:
            words = _whole_row(builder, entries, _I16, alignment(table))
            found = _word_lookup(builder, words, _resized(builder, args[3], _I16), index.width)
        if found is None:
            found = _lookup_one_by_one(builder, entries, args[3], vector_type(kind), alignment(table))
        return found

    return kind(lanes, table, types.int64, index), generate
