"""The door to CUDA: the one module that imports numba.cuda, and the decorator of every GPU kernel.

It is imported when something is launched on a GPU, and not before. Kernels stand in other modules of plait,
with `cuda` from here for threads, barriers and shared memory, with `plait.lang.warps` for what lanes of a
warp exchange, and with the algebras and recurrences that serve all targets. numba-cuda compiles them for the
device on which they are launched.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import cuda as cuda

from plait.devices.driver import load_driver
from plait.errors import DeviceFailure
from plait.lang import lanes, warps
from plait.lang.closure import classes_of
from plait.lang.compile import closure, in_compiled_cache, prepare, specialise, stem_of
from plait.lang.compiling import compiling

#: Whether kernels run in the CUDA simulator, as plain Python.
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "").strip() not in ("", "0")

# Small batches have small grids; nobody who counts them can do anything about it.
numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

#: Every kernel by its name, for the tests that compile all of them.
KERNELS: dict[str, CudaKernel] = {}

#: Bytes of shared memory that a block has without asking.
_SHARED_UNASKED = 48 << 10

#: Arguments of a kernel: lists of them, one for each combination of types.
Examples = Callable[[], list[tuple[Any, ...]]]


#: One first launch at a time; on each device, one kernel is loaded at a time.
_LAUNCHING = threading.RLock()
_LOADING: dict[int, threading.Lock] = {}


class _Loaded:
    """A kernel in the memory of a device, for arguments of some types, which one call of the driver starts.

    numba-cuda's own launch takes ten times as long, most of it in the interpreter, where threads of several
    devices wait for each other. `shared` is the bytes of dynamic shared memory that a block may have.
    """

    def __init__(self, kernel: Any, shared: int) -> None:
        self.shared = shared
        # The code stays where it is as long as this is there.
        self._function = kernel._codelibrary.get_cufunc()
        self._handle = int(self._function.handle)
        self._layout = struct.Struct("@" + "".join(map(format_of, kernel.argument_types)))

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
        status = load_driver().cuLaunchKernel(
            ctypes.c_void_p(self._handle),
            *map(ctypes.c_uint, shape),
            *(ctypes.c_void_p(number), None, (ctypes.c_void_p * 5)(*told)),
        )
        if status:
            from cuda.bindings import driver

            raise RuntimeError(f"cuLaunchKernel: {driver.CUresult(status).name}")


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


def _on_host(value: Any) -> bool:
    """Whether an argument has arrays that numba-cuda would have to bring to the device, and back."""
    if isinstance(value, tuple):
        return any(map(_on_host, value))
    return isinstance(value, np.ndarray) and not hasattr(value, "device_ctypes_pointer")


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
        self._lock = threading.Lock()
        self._dispatchers: dict[Any, Any] = {}
        #: What was compiled for arguments, and what of it is loaded into devices.
        self._made: dict[Any, Any] = {}
        self._loaded: dict[Any, _Loaded] = {}

    def _dispatcher(self, arguments: tuple[Any, ...]) -> Any:
        """numba-cuda's kernel; one for all arguments that the same sources serve."""
        classes = tuple(classes_of(arguments))
        with self._lock:
            if classes not in self._dispatchers:
                if SIMULATED:
                    self._dispatchers[classes] = cuda.jit(self.py_func)
                else:
                    with in_compiled_cache(self._folder(arguments)):
                        made = cuda.jit(cache=True, **self.options)(self.py_func)
                    made.compile = self._announced(made)
                    self._dispatchers[classes] = made
        return self._dispatchers[classes]

    def _announced(self, dispatcher: Any) -> Callable[[Any], Any]:
        """What compiles, which it does not tell, and loads what is kept."""
        compiles = dispatcher.compile

        def compile_or_load(kinds: Any) -> Any:
            if dispatcher._cache.load_overload(kinds, dispatcher.targetctx) is not None:
                return compiles(kinds)
            with compiling(self.name):
                return compiles(kinds)

        return compile_or_load

    def _folder(self, arguments: tuple[Any, ...]) -> Path:
        """Where numba-cuda keeps the kernel for these arguments, and for others of the same classes."""
        sources = closure(self.py_func, arguments, "cuda")
        # What this module says of operations may be said of any kernel.
        sources.add([Path(__file__)])
        folder = Path(stem_of(self.name, sources, metadata.version("numba-cuda"), repr(self.options)))
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def launch(self, blocks: Any, threads: Any, *arguments: Any, stream: Any = 0, shared: int = 0) -> None:
        """Start the kernel on the current device; it runs on its own until its stream is waited for.

        `blocks` and `threads` (in each) are ints or tuples; arguments are device arrays and numbers; `shared`
        is bytes of dynamic shared memory per block.
        """
        place = None if SIMULATED else (cuda.get_current_device().id, _kinds(arguments))
        loaded = self._loaded.get(place)
        if loaded is not None and shared <= loaded.shared:
            loaded.launch(blocks, threads, arguments, stream, shared)
            return
        made = self._made.get(place[1]) if place else None
        if made is None or place is None:
            # numba-cuda compiles a kernel, and loads it into a device, twice at once where two threads meet;
            # the simulator has one configuration of a kernel for all of them.
            with _LAUNCHING:
                made = self._made.get(place[1]) if place else None
                if made is None or place is None:
                    self._launch_first(blocks, threads, arguments, stream, shared, place)
                    return
        with _LOADING.setdefault(place[0], threading.Lock()):
            loaded = self._loaded.get(place)
            if loaded is None or shared > loaded.shared:
                if shared > _SHARED_UNASKED:
                    self._ask_for_shared(made, shared)
                loaded = self._loaded[place] = _Loaded(made, max(shared, _SHARED_UNASKED))
        loaded.launch(blocks, threads, arguments, stream, shared)

    def prepare(self, *arguments: Any) -> None:
        """Compile and load it for such arguments on the current device, if it is not, while others run."""
        with _LAUNCHING:
            if not SIMULATED and _kinds(arguments) not in self._made:
                self._made[_kinds(arguments)] = self._dispatcher(arguments)._compile_for_args(*arguments)

    def _launch_first(
        self, blocks: Any, threads: Any, arguments: tuple[Any, ...], stream: Any, shared: int, place: Any
    ) -> None:
        """Compile the kernel, or load it from where it is kept, and have numba-cuda start it."""
        dispatcher = self._dispatcher(arguments)
        configured = dispatcher[blocks, threads, stream, shared]
        if shared > _SHARED_UNASKED and not SIMULATED:
            self._ask_for_shared(dispatcher._compile_for_args(*arguments), shared)
        configured(*arguments)
        if place is not None and not _on_host(arguments):
            kinds = tuple(map(dispatcher.typeof_pyval, arguments))
            self._made[place[1]] = dispatcher.overloads[kinds]

    def _ask_for_shared(self, kernel: Any, shared: int) -> None:
        """Let the kernel have more shared memory than every kernel may."""
        from cuda.bindings import driver

        function = kernel._codelibrary.get_cufunc()
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (status,) = driver.cuKernelSetAttribute(attribute, shared, function.handle, function.device.id)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise DeviceFailure(
                f"cuda:{function.device.id}",
                reason=f"a block of {self.name} cannot have {shared} bytes of shared memory ({status.name})",
                fix="use device='cpu', and please report it: it is an error of plait",
            )


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


def _teach() -> None:
    """Teach numba-cuda the operations of the lanes, those of a warp among them, and load what it needs."""
    if SIMULATED:
        return
    from numba.cuda.core import config

    # A few targets, or one long pair, cannot fill a device; a warning of every such launch helps nobody.
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    prepare()
    _keep_libraries()
    # With the first kernel numba-cuda would load these modules, in half a second; now a device may start
    # meanwhile.
    from numba.cuda.descriptor import cuda_target

    cuda_target.typing_context.refresh()
    for operation, made in _OPERATIONS.items():
        specialise(operation, made, target="cuda")


def _keep_libraries() -> None:
    """Leave loaded code where it is when the process ends.

    Devices of one generation share what the driver has loaded, but numba-cuda gives it back once for each of
    them: the second time damages the memory of the process.
    """
    from numba.cuda.cudadrv import driver

    driver._module_finalizer = lambda context, code: None


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

_teach()
