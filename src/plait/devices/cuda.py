"""The door to CUDA: the one module that imports numba.cuda, and the decorator of every GPU kernel.

It is imported when something is launched on a GPU, and not before. Kernels stand in other modules of plait,
with `cuda` from here for threads, barriers and shared memory, with `plait.lang.warps` for what lanes of a
warp exchange, and with the algebras and recurrences that serve all targets. numba-cuda compiles them for the
device on which they are launched.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import threading
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import cuda as cuda

from plait.devices.driver import load_driver
from plait.errors import DeviceFailure
from plait.lang import lanes, warps
from plait.lang.compile import closure, prepare, specialise, stem_of
from plait.lang.compiling import compiling
from plait.lang.native import read, write

#: Whether kernels run in the CUDA simulator, as plain Python.
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "").strip() not in ("", "0")

#: Every kernel by its name, for the tests that compile all of them.
KERNELS: dict[str, CudaKernel] = {}

#: Bytes of shared memory that a block has without asking.
_SHARED_UNASKED = 48 << 10

#: Arguments of a kernel: lists of them, one for each combination of types.
Examples = Callable[[], list[tuple[Any, ...]]]


#: One kernel is looked up, or compiled, at a time; on each device, one is loaded at a time.
_LAUNCHING = threading.RLock()
_LOADING: dict[int, threading.Lock] = {}
#: Of cuda.h: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
_MOST_SHARED = 8


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; what goes wrong is told as numba-cuda tells it."""
    status = getattr(load_driver(), name)(*arguments)
    if status:
        told = ctypes.c_char_p()
        load_driver().cuGetErrorName(status, ctypes.byref(told))
        raise RuntimeError(f"{name}: {(told.value or b'CUDA_ERROR_UNKNOWN').decode()}")


class _Code(NamedTuple):
    """Machine code of a kernel, with its name there, and what `format_of` says of its arguments."""

    entry: bytes
    layout: bytes
    cubin: bytes


class _Loaded:
    """A kernel in the memory of a device, for arguments of some types, which one call of the driver starts.

    numba-cuda takes ten times as long to launch one, most of it in the interpreter, where threads of several
    devices wait for each other, and to load one, half a second of imports. `shared` is the bytes of dynamic
    shared memory that a block may have.
    """

    def __init__(self, code: _Code) -> None:
        self.shared = _SHARED_UNASKED
        # What is loaded stays there until the process ends.
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        _call("cuModuleLoadData", ctypes.byref(module), code.cubin)
        _call("cuModuleGetFunction", ctypes.byref(self._function), module, code.entry)
        self._layout = struct.Struct(b"@" + code.layout)

    def allow(self, shared: int) -> None:
        """Let a block have so much shared memory."""
        _call("cuFuncSetAttribute", self._function, _MOST_SHARED, shared)
        self.shared = shared

    def launch(self, blocks: Any, threads: Any, arguments: tuple[Any, ...], stream: Any, shared: int) -> None:
        """Start it on the device, which is the current one."""
        words: list[Any] = []
        put(arguments, words)
        packed = ctypes.create_string_buffer(self._layout.pack(*words), self._layout.size)
        size = ctypes.c_size_t(self._layout.size)
        # A pointer to the arguments, and one to how many bytes they are.
        told = 1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0
        number = int(stream.handle or 0) if stream else 0
        shape = (*_three(blocks), *_three(threads), shared)
        rest = ctypes.c_void_p(number), None, (ctypes.c_void_p * 5)(*told)
        _call("cuLaunchKernel", self._function, *map(ctypes.c_uint, shape), *rest)


def _three(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple) else (shape,)
    return (*map(int, sizes), 1, 1)[:3]


def format_of(kind: Any) -> str:
    """How arguments of a type of Numba lie in memory, in the letters of `struct`."""
    if isinstance(kind, numba.types.BaseTuple):
        return "".join(map(format_of, kind))
    if isinstance(kind, numba.types.Array):
        return "PPnnP" + "n" * 2 * int(kind.ndim)
    if isinstance(kind, numba.types.Integer):
        letters = "bhiq" if kind.signed else "BHIQ"
        return letters[int(kind.bitwidth).bit_length() - 4]
    return {"float32": "f", "float64": "d", "bool": "?"}[str(kind)]


def put(value: Any, words: list[Any]) -> None:
    """Add what a kernel is told of an argument: number, array on a device, or tuple of them."""
    if isinstance(value, tuple):
        for one in value:
            put(one, words)
    elif hasattr(value, "device_ctypes_pointer"):
        place = value.device_ctypes_pointer.value or 0
        words += (0, 0, value.size, value.dtype.itemsize, place, *value.shape, *value.strides)
    else:
        words.append(value)


class CudaKernel:
    """A kernel, compiled by the types of its arguments when it is first launched with them, cached on disk.

    `function` is the body for one thread. `options` are numba-cuda's: ``max_registers``, ``launch_bounds``.
    `examples` may give lists of arguments, from which tests compile it without a device; most are theirs.
    """

    def __init__(
        self, function: Callable[..., Any], examples: Examples | None, options: dict[str, Any]
    ) -> None:
        self.__doc__ = function.__doc__
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.py_func = function
        self.examples = examples
        self.options = options
        #: What was compiled for arguments, and what of it is loaded into devices.
        self._made: dict[Any, _Code] = {}
        self._loaded: dict[Any, _Loaded] = {}
        self._compilers: list[Any] = []

    def launch(self, blocks: Any, threads: Any, *arguments: Any, stream: Any = 0, shared: int = 0) -> None:
        """Start the kernel on the current device; it runs on its own until its stream is waited for.

        `blocks` and `threads` (in each) are ints or tuples; arguments are device arrays and numbers; `shared`
        is bytes of dynamic shared memory per block.
        """
        if SIMULATED:
            # It has one kernel at a time for all threads.
            with _LAUNCHING:
                cuda.jit(self.py_func)[blocks, threads, stream, shared](*arguments)
            return
        place = cuda.get_current_device().id, _kinds(arguments)
        loaded = self._loaded.get(place)
        if loaded is None or shared > loaded.shared:
            code = self._code(arguments)
            with _LOADING.setdefault(place[0], threading.Lock()):
                loaded = self._loaded.get(place) or _Loaded(code)
                if shared > loaded.shared:
                    self._ask_for_shared(loaded, shared, place[0])
                self._loaded[place] = loaded
        loaded.launch(blocks, threads, arguments, stream, shared)

    def prepare(self, *arguments: Any) -> None:
        """Compile it for such arguments, if it is not, while others run."""
        if not SIMULATED:
            self._code(arguments)

    def _code(self, arguments: tuple[Any, ...]) -> _Code:
        """The kernel for these arguments and the current device, from where it is kept, or compiled."""
        place = cuda.get_current_device().compute_capability, _kinds(arguments)
        with _LAUNCHING:
            if place not in self._made:
                sources = closure(self.py_func, arguments, "cuda")
                # What this module says of operations may be said of any kernel.
                sources.add([Path(__file__)])
                made_by = map(metadata.version, ("numba-cuda", "cuda-bindings"))
                file = Path(stem_of(self.name, sources, *made_by, repr((self.options, place))) + ".cubin")
                kept = read(file)
                if kept is None:
                    write(file, kept := b"\n".join(self._compiled(arguments)))
                self._made[place] = _Code(*kept.split(b"\n", 2))
            return self._made[place]

    def _compiled(self, arguments: tuple[Any, ...]) -> _Code:
        with compiling(self.name):
            load_compiler()
            made = cuda.jit(**self.options)(self.py_func)._compile_for_args(*arguments)
            # numba-cuda has loaded it, too; to unload it would wait for all that runs.
            self._compilers.append(made)
            cubin = made._codelibrary.get_cubin().code
        layout = "".join(map(format_of, made.argument_types))
        return _Code(made.entry_name.encode(), layout.encode(), cubin)

    def _ask_for_shared(self, loaded: _Loaded, shared: int, device: int) -> None:
        """Let the kernel have more shared memory than every kernel may."""
        try:
            loaded.allow(shared)
        except RuntimeError as error:
            raise DeviceFailure(
                f"cuda:{device}",
                reason=f"a block of {self.name} cannot have {shared} bytes of shared memory ({error})",
                fix="use device='cpu', and please report it: it is an error of plait",
            ) from error


def _kinds(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What tells the types of arguments apart, found faster than the types."""
    return tuple(
        (type(value), _kinds(value))
        if isinstance(value, tuple)
        else (type(value), value.dtype, value.ndim, value.flags["C_CONTIGUOUS"])
        if getattr(value, "ndim", 0)
        else type(value)
        for value in values
    )


def capability_of_code() -> tuple[int, ...]:
    """The compute capability that is compiled for, asked while an instruction is generated.

    What stands for a device where there is none has it under this function's name, to learn that it matters.
    """
    from numba.cuda import dispatcher

    device = dispatcher.get_current_device()
    return tuple(getattr(device, capability_of_code.__name__, device.compute_capability))


def cuda_kernel(
    examples: Examples | None = None, **options: Any
) -> Callable[[Callable[..., Any]], CudaKernel]:
    """Make a function a kernel; see `CudaKernel` for the parameters."""

    def decorate(function: Callable[..., Any]) -> CudaKernel:
        made = CudaKernel(function, examples, options)
        KERNELS[made.name] = made
        return made

    return decorate


@functools.cache
def load_compiler() -> None:
    """Have numba-cuda load what it compiles with, which takes longer than all that a launch needs."""
    prepare()
    from numba.cuda.descriptor import cuda_target

    cuda_target.typing_context.refresh()


# Numbers of 32 and 64 bits do not come near their limits on a GPU: the host chooses the width from a bound of
# every value, and PTX lacks the instructions that LLVM has for saturation. Sums keep the type of `a`, since
# those of Numba would have 64 bits.
_SUMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "int32": (lambda a, b: np.int32(a + b), lambda a, b: np.int32(a - b)),
    "int64": (lambda a, b: np.int64(a + b), lambda a, b: np.int64(a - b)),
    "float32": (lambda a, b: np.float32(a + b), lambda a, b: np.float32(a - b)),
    "float64": (lambda a, b: np.float64(a + b), lambda a, b: np.float64(a - b)),
}


def _sum_of(a: Any, b: Any) -> Callable[..., Any] | None:
    return _SUMS[str(a)][0] if str(a) in _SUMS else None


def _difference_of(a: Any, b: Any) -> Callable[..., Any] | None:
    return _SUMS[str(a)][1] if str(a) in _SUMS else None


def _product_of(a: Any, b: Any) -> Callable[..., Any] | None:
    # Others are fused with what is added to them.
    from numba.cuda import libdevice

    return (lambda a, b: libdevice.dmul_rn(a, b)) if str(a) == str(b) == "float64" else None


def _lane_index():  # type: ignore[no-untyped-def]
    return cuda.laneid


def _warp_size():  # type: ignore[no-untyped-def]
    return np.int32(cuda.warpsize)


def _synchronize_warp():  # type: ignore[no-untyped-def]
    cuda.syncwarp()


def _lowest_of_word(word):  # type: ignore[no-untyped-def]
    return np.int32(cuda.ffs(np.int32(word)) - 1)


def _load_one(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    # No place is negative, so none is counted from the end.
    return rows[np.uint32(row), np.uint32(lane)]


def _store_one(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    rows[np.uint32(row), np.uint32(lane)] = value


_IN_WORD: dict[str, Callable[..., Any]] = {
    "uint32": lambda word, distance: np.uint32(distance & 31),
    "int64": lambda word, distance: np.int64(distance & 63),
}


def _ballot(flag):  # type: ignore[no-untyped-def]
    return np.int64(np.uint32(cuda.ballot_sync(-1, flag)))


def _add_to(values, place, amount):  # type: ignore[no-untyped-def]
    cuda.atomic.add(values, place, amount)


def _shuffle(value, lane):  # type: ignore[no-untyped-def]
    return cuda.shfl_sync(-1, value, lane)


def _shuffle_word(value, lane):  # type: ignore[no-untyped-def]
    return np.uint32(cuda.shfl_sync(-1, np.int32(value), lane))


def _shuffle_up(value, distance):  # type: ignore[no-untyped-def]
    return cuda.shfl_up_sync(-1, value, distance)


def _shuffle_down(value, distance):  # type: ignore[no-untyped-def]
    return cuda.shfl_down_sync(-1, value, distance)


def _shuffle_xor(value, mask):  # type: ignore[no-untyped-def]
    return cuda.shfl_xor_sync(-1, value, mask)


#: What makes an operation of the lanes on a GPU, by the types of its arguments.
_OPERATIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    lanes.add_saturating: _sum_of,
    lanes.subtract_saturating: _difference_of,
    lanes.product: _product_of,
    lanes.load: lambda group, *place: _load_one,
    lanes.store: lambda group, *place: _store_one,
    lanes.lowest_bit: lambda word: _lowest_of_word if str(word) == "uint32" else None,
    warps.lane_index: lambda: _lane_index,
    warps.warp_size: lambda: _warp_size,
    warps.synchronize_warp: lambda: _synchronize_warp,
    warps.in_word: lambda word, distance: _IN_WORD.get(str(word)),
    warps.ballot: lambda flag: _ballot,
    warps.add_to: lambda values, place, amount: _add_to,
    warps.shuffle: lambda value, lane: _shuffle_word if str(value) == "uint32" else _shuffle,
    warps.shuffle_up: lambda value, distance: _shuffle_up,
    warps.shuffle_down: lambda value, distance: _shuffle_down,
    warps.shuffle_xor: lambda value, mask: _shuffle_xor,
}

if not SIMULATED:
    for operation, made in _OPERATIONS.items():
        specialise(operation, made, target="cuda")
