"""Machine code of kernels, kept on disk and called without Numba.

Importing Numba takes longer than many a run. A kernel that was compiled before is an object file, with a
checksum of all that it holds: `load` links it, without LLVM where it can. Numba's calling convention has
pointers to the result and to an exception, then every number, and of an array its owner (none), size,
address, shape and strides. A call with some hundred arguments takes longer than many a kernel, so that an
entry of three is kept beside: it reads the others from memory, where `NativeCode` lays them out.

A module of its own: it alone links, and what has been compiled needs nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import mmap
import os
import stat
import struct
import sys
import tempfile
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

#: The format of `struct` for an argument of each letter, in 8 bytes.
_WORDS = {"q": "q", "i": "i4x", "h": "h6x", "b": "b7x", "Q": "Q", "I": "I4x", "H": "H6x", "B": "B7x"}
_WORDS |= {"?": "?7x", "d": "d", "f": "f4x", "P": "Q"}
_WORD_BYTES = 8
#: An entry: result, exception and arguments.
_ENTRY = "plait_entry"
_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
#: LLVM's type of each argument; pointers are all alike.
_LLVM = {"q": "i64", "i": "i32", "h": "i16", "b": "i8", "Q": "i64", "I": "i32", "H": "i16", "B": "i8"}
_LLVM |= {"?": "i8", "d": "double", "f": "float", "P": "P"}
#: Letters by NumPy's names of numbers.
_LETTERS = {"b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
_LETTERS |= {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "f4": "f", "f8": "d"}
#: Flags of arrays: contiguous in C's order and aligned; writeable.
_PLAIN, _WRITEABLE = 0x1 | 0x100, 0x400
_RESULT_BYTES = 256
#: Functions of the C library that machine code may call; LLVM calls some where the source has loops.
_C_LIBRARY = (
    *("memcpy", "memmove", "memset", "memcmp"),
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "fmod", "ldexp"),
    *("ceil", "floor", "rint", "round", "trunc", "sqrt", "fma", "fmax", "fmin"),
)
_LOADING = Lock()
#: Whether `save` keeps anything here: it knows the objects of ELF.
KEPT = sys.platform not in ("darwin", "win32")
_SUM_BYTES = 16
#: Kinds of ELF sections.
_CONTENT, _SYMBOL_TABLE, _RELOCATIONS, _UNWINDING = 1, 2, 4, 0x70000001
#: Flags of ELF sections: what is written to at run time, what is in memory then.
_WRITTEN, _LOADED = 0x1, 0x2
#: ELF's number of x86-64, and of its relocation by an address.
_X86_64, _ABSOLUTE = b"\x3e\0", 1


#: Bytes of an array before the address of what it holds, as programs in C know NumPy's arrays: asking for
#: `__array_interface__` takes as long as all the rest of an argument.
_HEAD: Final = object.__basicsize__


class Signature:
    """Arguments of one call: their types as text, and their values one after the other.

    `types` is the same for two calls if and only if they run the same code; `codes` has a letter of `struct`
    for each of `values`, or P for an address.
    """

    __slots__ = ("_types", "codes", "values")

    def __init__(self) -> None:
        self._types: list[str] = []
        self.codes: list[str] = []
        self.values: list[Any] = []

    @property
    def types(self) -> str:
        """The types of the arguments."""
        return " ".join(self._types)

    def add(self, value: Any) -> bool:
        """Append an argument; False if it is none that can be passed."""
        kind: Any = type(value)
        if kind is np.ndarray:
            return self._array(value)
        if isinstance(value, tuple):
            self._types.append(_opening(kind, len(value)))
            for item in value:
                if not self.add(item):
                    return False
            self._types.append(")")
            return True
        code = _letter(kind)
        if code is None or (kind is int and not -(2**63) <= value < 2**63):
            return False
        self._types.append(code)
        self.codes.append(code)
        self.values.append(value.item() if isinstance(value, np.generic) else value)
        return True

    def _array(self, value: np.ndarray[Any, Any]) -> bool:
        told = _array_type(value.dtype, value.ndim, value.flags.num)
        if told is None:
            return False
        self._types.append(told[0])
        self.codes += told[1]
        address = ctypes.c_size_t.from_address(id(value) + _HEAD).value
        self.values += (0, 0, value.size, value.itemsize, address, *value.shape, *value.strides)
        return True


@functools.cache
def _opening(kind: type, count: int) -> str:
    return f"{kind.__module__}.{kind.__qualname__}{count}("


@functools.cache
def _letter(kind: type) -> str | None:
    """The letter of `struct` for numbers of a type; None if they cannot be passed."""
    if kind in (bool, int, float):
        return {bool: "?", int: "q", float: "d"}[kind]
    if not issubclass(kind, np.bool_ | np.integer | np.floating):
        return None
    # Names of C's types differ between platforms; sizes do not.
    return _LETTERS.get(np.dtype(kind).str[1:])


@functools.cache
def _array_type(dtype: np.dtype[Any], ndim: int, flags: int) -> tuple[str, tuple[str, ...]] | None:
    """The type of arrays as text and the letters of what is passed of one; None if they cannot be."""
    if not (dtype.isnative and dtype.kind in "iufb" and flags & _PLAIN == _PLAIN):
        return None
    return f"{dtype.str}{ndim}{'w' if flags & _WRITEABLE else 'r'}", tuple("PPqqP" + "q" * (2 * ndim))


def signature(arguments: tuple[Any, ...]) -> Signature | None:
    """Lay arguments out for a call; None if one is of a kind that only Numba can pass."""
    found = Signature()
    return found if all(map(found.add, arguments)) else None


class NativeCode:
    """A loaded kernel with its entry at `address`; `owner` keeps the code in memory.

    `codes` are the types of its arguments, `result` those of its result, as `save` wrote them.
    """

    def __init__(self, address: int, codes: list[str], result: str, owner: object) -> None:
        self._call = _CALL(address)
        self._words = struct.Struct("=" + "".join(map(_WORDS.__getitem__, codes)))
        self._tuple = result.startswith("(")
        self._result = struct.Struct("=" + result.strip("()"))
        self._owner = owner

    def lay_out(self, found: Signature) -> bytes:
        """Arguments as the entry reads them; what arrays hold is not in it."""
        return self._words.pack(*found.values)

    def __call__(self, arguments: bytes) -> tuple[bool, Any]:
        """Whether it ran to its end, and what it returned. Other threads run meanwhile."""
        room = ctypes.create_string_buffer(_RESULT_BYTES)
        raised = ctypes.c_void_p()
        status = self._call(ctypes.addressof(room), ctypes.addressof(raised), arguments)
        # Numba returns None with a status of its own.
        if status not in (0, -2):
            return False, None
        values = self._result.unpack_from(room)
        return True, values if self._tuple else values[0] if values else None


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM_BYTES).digest()


def only_ours(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and nobody else may write to it."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read(file: Path, *, installed: bool = False) -> bytes | None:
    """What `write` has written; None if it is not there, not whole, or somebody else may have written it.

    What is `installed` beside the sources is trusted as they are, whoever it belongs to.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    # Installers may make links.
    flags |= 0 if installed else getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(file, flags), "rb") as stream:
            status = os.fstat(stream.fileno())
            ours = stat.S_ISREG(status.st_mode) and (installed or only_ours(status))
            whole = stream.read() if ours else b""
    except OSError:
        return None
    content = whole[_SUM_BYTES:]
    return content if whole[:_SUM_BYTES] == _sum(content) else None


def write(file: Path, content: bytes) -> None:
    """Keep bytes with their checksum: all of them or none."""
    temporary = None
    try:
        # Nobody else may read or write what this makes.
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(_sum(content) + content)
            stream.flush()
            os.fsync(handle)
        os.replace(temporary, file)
    except OSError:
        # A cache that cannot be written costs time, nothing else.
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _sections(code: bytes) -> list[tuple[int, ...]]:
    """Headers of the sections of an ELF object of 64 bits (System V ABI, chapter 4); none of others."""
    if code[:6] != b"\x7fELF\x02\x01":
        return []
    (start,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    return [struct.unpack_from("<IIQQQQIIQQ", code, start + size * k) for k in range(count)]


def _symbols(code: bytes, sections: list[tuple[int, ...]]) -> list[tuple[str, int, int]]:
    """Name, section and value of the symbols of an ELF object."""
    found = []
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        for at in range(offset, offset + length, entry) if kind == _SYMBOL_TABLE else ():
            name, _, _, section, value = struct.unpack_from("<IBBHQ", code, at)
            begin = sections[link][4] + name
            found.append((code[begin : code.index(b"\0", begin)].decode(), section, value))
    return found


def _linked(*objects: bytes) -> tuple[int, object] | None:
    """Address of the entry of objects, and what keeps them in memory; None for what LLVM has to link.

    Loading LLVM takes longer than many a run. What Numba makes for x86-64 names places by absolute addresses
    alone and writes to none, so that a copy of the file serves.
    """
    if not KEPT or any(code[18:20] != _X86_64 for code in objects):
        return None
    process, known, start = ctypes.CDLL(None), dict[str, int](), 0
    sizes = [-(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE for code in objects]
    memory = mmap.mmap(-1, sum(sizes), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for code, size in zip(objects, sizes, strict=True):
        sections = _sections(code)
        symbols = _symbols(code, sections)
        memory[start : start + len(code)] = code
        places = [base + start + section[4] for section in sections]
        known |= {name: places[at] + value for name, at, value in symbols if 0 < at < len(places)}
        for _, kind, flags, _, offset, length, _, within, align, entry in sections:
            loaded = flags & _LOADED and kind != _UNWINDING
            placed = align <= mmap.PAGESIZE and offset % max(align, 1) == 0
            if loaded and (flags & _WRITTEN or kind != _CONTENT or not placed):
                return None
            changed = sections[within] if kind == _RELOCATIONS else (0,) * 10
            for at in range(offset, offset + length, entry) if changed[1] == _CONTENT else ():
                place, how, more = struct.unpack_from("<QQq", code, at)
                name, section, value = symbols[how >> 32]
                if how & 0xFFFFFFFF != _ABSOLUTE or section >= len(places):
                    return None
                if section:
                    address = places[section] + value
                else:
                    # As with LLVM: what is not there is not called.
                    outside = getattr(process, name, None) or process.abort
                    address = known.get(name) or ctypes.cast(outside, ctypes.c_void_p).value or 0
                struct.pack_into("<Q", memory, start + changed[4] + place, address + more)
        start += size
    if process.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(start), mmap.PROT_READ | mmap.PROT_EXEC):
        return None
    return (known[_ENTRY], memory) if _ENTRY in known else None


@functools.cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


def _linked_by_llvm(*objects: bytes) -> tuple[int, object] | None:
    """The same by LLVM; None on a system that does not tell where its C library is."""
    import llvmlite.binding as llvm

    # Threads may need kernels at the same time, and LLVM is not made for that.
    with _LOADING:
        try:
            target, process = _target(), ctypes.CDLL(None)
            for name in _C_LIBRARY:
                # LLVM's linker does not look into the process, and links nothing with a name unknown.
                if llvm.address_of_symbol(name) is None:
                    function = getattr(process, name, None) or process.abort
                    llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
        except (AttributeError, OSError, TypeError):
            return None
        # An engine owns its machine: one that another engine uses, too, would be gone with the first of them.
        machine = target.create_target_machine(jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        for code in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return engine.get_function_address(_ENTRY), engine


def load(file: Path, found: Signature, *, installed: bool = False) -> NativeCode | None:
    """A kernel from the cache, or `installed`, for the arguments of a call; None if it is not there."""
    content = read(file, installed=installed)
    if content is None:
        return None
    facts, _, code = content.partition(b"\n")
    told = json.loads(facts)
    if told["types"] != found.types:
        return None
    objects = code[: told["bytes"]], code[told["bytes"] :]
    linked = None
    with contextlib.suppress(AttributeError, OSError, TypeError):
        # A system may refuse memory or know no such functions.
        linked = _linked(*objects)
    linked = linked or _linked_by_llvm(*objects)
    return NativeCode(linked[0], found.codes, told["result"], linked[1]) if linked and linked[0] else None


def save(file: Path, found: Signature, compiled: Any) -> bool:
    """Keep what Numba has compiled for the arguments of a call; False if only Numba can call it."""
    described = compiled.fndesc
    convention = compiled.target_context.call_conv
    kind = convention.get_function_type(described.restype, described.argtypes)
    wanted = [_LLVM[code] for code in found.codes]
    result = _result_types(described.restype)
    passed = ["P" if str(argument).endswith("*") else str(argument) for argument in kind.args[2:]]
    if result is None or passed != wanted:
        return False
    try:
        _, _, (code, _) = compiled.library.serialize_using_object_code()
        outside = _undefined(code)
    except Exception:
        # Numba keeps no code of what it has itself been given.
        return False
    if outside is None or not outside <= set(_C_LIBRARY):
        return False
    facts = {"types": found.types, "result": result, "bytes": len(code)}
    write(file, json.dumps(facts).encode() + b"\n" + code + _entry(described.llvm_func_name, kind))
    return True


def _entry(symbol: str, kind: Any) -> bytes:
    """Machine code that calls a function of a type, in LLVM's sense, with arguments from memory."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    module, byte, number = ir.Module(), ir.IntType(8).as_pointer(), ir.IntType(64)
    module.triple = llvm.get_process_triple()
    own = ir.Function(module, ir.FunctionType(ir.IntType(32), [byte] * 3), _ENTRY)
    build = ir.IRBuilder(own.append_basic_block())
    places = (build.gep(own.args[2], [number(_WORD_BYTES * k)]) for k in range(len(kind.args) - 2))
    words = [
        build.load(build.bitcast(place, item.as_pointer()))
        for place, item in zip(places, kind.args[2:], strict=True)
    ]
    first = [build.bitcast(own.args[k], kind.args[k]) for k in (0, 1)]
    build.ret(build.call(ir.Function(module, kind, symbol), [*first, *words]))
    # Nothing in it is worth the time of optimising.
    machine = _target().create_target_machine(jit=True, opt=0)
    return bytes(machine.emit_object(llvm.parse_assembly(str(module))))


def _undefined(code: bytes) -> set[str] | None:
    """Names that an ELF object of 64 bits leaves to be linked; None for objects of other systems."""
    sections = _sections(code)
    return {name for name, at, _ in _symbols(code, sections) if name and not at} if sections else None


def _result_types(kind: Any) -> str | None:
    """Letters of `struct` for Numba's type of a result; in brackets if it is a tuple."""
    letters = {"none": "", "int64": "q", "float64": "d"}
    if str(kind) in letters:
        return letters[str(kind)]
    items = [letters.get(str(item)) for item in getattr(kind, "types", ())]
    if not items or not all(items) or type(kind).__name__.startswith("Named"):
        return None
    return f"({''.join(str(item) for item in items)})"
