"""Machine code of kernels for devices that need not be here, and what the assembler says of it.

PTX from `plait.devices.cuda.CudaKernel.ptx` is assembled by nvJitLink, which comes with the extra ``cuda13``
and needs no driver. Registers and spills are what decides how many warps a multiprocessor holds, so tests and
benchmarks tell them for every kernel.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from plait.devices.cuda import CudaKernel


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
    return assemble(kernel.ptx(arguments, capability), capability, kernel.options.get("max_registers"))


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
