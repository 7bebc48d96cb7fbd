"""Machine code of kernels for devices that need not be here, and what the assembler says of it.

PTX is assembled by nvJitLink, which comes with the extra ``cuda13``
and needs no driver. Registers and spills are what decides how many warps a multiprocessor holds, so tests and
benchmarks tell them for every kernel.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numba

from plait.devices.cuda import CudaKernel, cuda, load_compiler

typeof = numba.typeof


class Assembled(NamedTuple):
    """A kernel as machine code (`cubin`), and what it takes.

    `registers` are those of a thread, `stack` its bytes of local memory: arrays that are not held in
    registers; `spills` the bytes stored there because registers were short; `shared` bytes of static shared
    memory of a block.
    """

    cubin: bytes
    registers: int
    stack: int
    spills: int
    shared: int


def build(kernel: CudaKernel, arguments: tuple[Any, ...], capability: tuple[int, int]) -> Assembled:
    """Machine code of a kernel for arguments of these types and a compute capability, such as (9, 0).

    Arguments are NumPy values, of which only the types matter.
    """
    return assemble(ptx_of(kernel, arguments, capability), capability, kernel.options.get("max_registers"))


def ptx_of(kernel: CudaKernel, arguments: tuple[Any, ...], capability: tuple[int, int]) -> str:
    """The kernel for arguments of these types as PTX for a compute capability; needs no device."""
    return ptx_of_each(kernel, arguments, (capability,))[0]


def ptx_of_each(
    kernel: CudaKernel, arguments: tuple[Any, ...], capabilities: Sequence[tuple[int, int]]
) -> list[str]:
    """The same for several capabilities; types are inferred once where the code is the same for all."""
    load_compiler()
    kinds = tuple(map(typeof, arguments))
    # The number of registers is for the assembler.
    options = {name: value for name, value in kernel.options.items() if name != "max_registers"}
    found: dict[tuple[int, int], str] = {}
    for capability in capabilities:
        if capability in found:
            continue
        if _NoDevice.kept:
            _forget()
        with _capability(capability) as asked, _libraries() as made:
            text, _ = cuda.compile_ptx(kernel.py_func, kinds, cc=capability, **options)
        found[capability] = str(text)
        if not asked.capability_matters:
            for other in capabilities:
                found.setdefault(other, made[-1].get_asm_str(cc=other))
    return [found[capability] for capability in capabilities]


class _NoDevice:
    """What the compiler asks a device for, where there is none to ask."""

    #: Whether Numba keeps functions whose code depends on a capability.
    kept = False

    def __init__(self, capability: tuple[int, int]) -> None:
        self.compute_capability = capability
        #: Whether the generated code depends on it.
        self.capability_matters = False

    @property
    def capability_of_code(self) -> tuple[int, int]:
        """The capability, where an instruction depends on it; see the function of this name."""
        self.capability_matters = _NoDevice.kept = True
        return self.compute_capability


@contextlib.contextmanager
def _capability(capability: tuple[int, int]) -> Iterator[_NoDevice]:
    """Let functions that a kernel calls compile for this capability where there is no device to ask."""
    from numba.cuda import dispatcher

    before, asked = dispatcher.get_current_device, _NoDevice(capability)
    dispatcher.get_current_device = lambda: asked
    try:
        yield asked
    finally:
        dispatcher.get_current_device = before


def _forget() -> None:
    """Compile the functions that kernels call anew: Numba keeps them, whatever capability they are for."""
    from numba.core.typing.templates import builtin_registry

    for template in builtin_registry.functions:
        if getattr(getattr(template, "_overload_func", None), "__module__", "") == "plait.lang.compile":
            template._impl_cache.clear()
    _NoDevice.kept = False


@contextlib.contextmanager
def _libraries() -> Iterator[list[Any]]:
    """What is compiled meanwhile: the libraries of code from which PTX is taken, the last one last."""
    from numba.cuda.codegen import CUDACodeLibrary

    before, made = CUDACodeLibrary.get_asm_strs, []

    def take(self: Any, cc: tuple[int, int] | None = None) -> Any:
        made.append(self)
        return before(self, cc=cc)

    CUDACodeLibrary.get_asm_strs = take
    try:
        yield made
    finally:
        CUDACodeLibrary.get_asm_strs = before


def assemble(ptx: str, capability: tuple[int, int], max_registers: int | None = None) -> Assembled:
    """Machine code of PTX for a compute capability; `max_registers` is per thread."""
    from cuda.bindings import nvjitlink

    options = [f"-arch=sm_{capability[0]}{capability[1]}", "-verbose"]
    if max_registers is not None:
        options.append(f"-maxrregcount={max_registers}")
    handle = nvjitlink.create(len(options), options)
    try:
        text = ptx.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "kernel")
        nvjitlink.complete(handle)
        cubin = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, cubin)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    finally:
        nvjitlink.destroy(handle)
    told = log.decode(errors="replace")
    return Assembled(
        bytes(cubin),
        _most(r"Used (\d+) registers", told),
        _most(r"(\d+) bytes stack frame", told),
        _most(r"(\d+) bytes spill stores", told),
        _most(r"Used .*?(\d+) bytes smem", told),
    )


def _most(pattern: str, text: str) -> int:
    return max(map(int, re.findall(pattern, text)), default=0)
