"""Every CUDA kernel compiles, to PTX and on to machine code, for three generations of GPUs; no device needed.

The kernels are those of the modules ``plait.*.gpu*`` and ``plait.devices.cuda*``, each for the types of
its examples in `support.cuda_examples`, or its own. ``tools/cuda_kernels.py`` shows the registers and spills
that the assembler reports.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import struct
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import plait.devices
import plait.dp.bands
import plait.dp.bitparallel
import plait.dp.chain
import plait.dp.intervals
import plait.dp.pairs
import plait.hyperspectral
import plait.ldpc
import plait.mapping
import plait.qgrams
import plait.random
import plait.states

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip(
        "numba-cuda is not installed: pip install 'plait[cuda13]', which is not for macOS",
        allow_module_level=True,
    )

from support import cuda_build, cuda_examples
from support.cuda_build import assemble, ptx_of_each, typeof
from support.cuda_examples import examples_of

from plait.devices import cuda
from plait.devices.cuda import KERNELS, SIMULATED, format_of
from plait.lang.compile import closure

if SIMULATED:
    pytest.skip("nothing is compiled in the CUDA simulator", allow_module_level=True)

#: A100, H100 and H200, B200.
CAPABILITIES = ((8, 0), (9, 0), (10, 0))
for room in (
    plait.devices,
    plait.dp.bands,
    plait.dp.bitparallel,
    plait.dp.chain,
    plait.dp.intervals,
    plait.dp.pairs,
    plait.hyperspectral,
    plait.ldpc,
    plait.mapping,
    plait.qgrams,
    plait.random,
    plait.states,
):
    for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        if found.name.rpartition(".")[2].startswith(("cuda", "gpu")):
            importlib.import_module(found.name)
# Tests have kernels of their own.
EXAMPLES = [
    (name, number)
    for name, kernel in sorted(KERNELS.items())
    if name.startswith("plait.")
    for number in range(len(examples_of(kernel)))
]


#: What compiles and assembles.
VERSIONS = [f"{name} {metadata.version(name)}" for name in ("numba", "numba-cuda", "nvidia-nvjitlink")]


def digest(name: str, number: int) -> str:
    """Of all that the machine code of a kernel, and this test of it, are made of."""
    kernel = KERNELS[name]
    sources = closure(kernel.py_func, examples_of(kernel)[number], "cuda")
    # What the modules of this target say of operations may be said of any kernel.
    tools = (Path(module.__file__ or "") for module in (cuda_build, cuda_examples))
    sources.add([*Path(cuda.__file__).parent.glob("cuda*.py"), *tools, Path(__file__)])
    return sources.digest(repr(kernel.options), *VERSIONS)


def test_every_kernel_has_examples() -> None:
    names = {name for name in KERNELS if name.startswith("plait.")}
    assert names and {name for name, _ in EXAMPLES} == names


def test_launches_need_nothing_that_compiles() -> None:
    program = (
        "import sys, plait.dp.pairs.gpu_search as gpu_search; from plait.devices.cuda import load_compiler;"
        "compiler = {'numba.cuda.np.arraymath', 'numba.cuda.fp16', 'numba.cuda.libdeviceimpl'};"
        "before = compiler & {*sys.modules}; load_compiler(); print(before, compiler - {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "set() set()\n"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(
            *of, id=f"{of[0].removeprefix('plait.')}-{of[1]}", marks=pytest.mark.made_of(digest(*of))
        )
        for of in EXAMPLES
    ],
)
def test_it_compiles(name: str, number: int) -> None:
    kernel = KERNELS[name]
    most = kernel.options.get("max_registers")
    texts = ptx_of_each(kernel, examples_of(kernel)[number], CAPABILITIES)
    for (major, minor), ptx in zip(CAPABILITIES, texts, strict=True):
        assert f".target sm_{major}{minor}" in ptx
        assert ".entry" in ptx
        # What a launch says of the arguments is what the compiled kernel reads.
        entry = ptx[ptx.index(".entry") :].partition(")")[0]
        declared = [int(bits) // 8 for bits in re.findall(r"\.param \.[a-z](\d+)", entry)]
        told = "".join(format_of(typeof(value)) for value in examples_of(kernel)[number])
        assert declared == [struct.calcsize(letter) for letter in told]
        made = assemble(ptx, (major, minor), most)
        assert made.cubin.startswith(b"\x7fELF")
        assert 0 < made.registers <= (most or 255)
