"""Lanes on other processors: Numba's settings are followed, and what is compiled for them gives the same.

What this processor can also run is run, in processes of their own; for Arm, code is generated and compiled.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.examples import often

from plait.lang import compile as _jit
from plait.lang import instructions, shuffles
from plait.lang.compile import host_features, types
from plait.lang.instructions import LaneGroup, LaneMask, element_type, vector_type
from plait.lang.lanes import host_lanes, lanes_of


class Processor(NamedTuple):
    """A processor as Numba is told of it, the width of its registers, and how it looks bytes up."""

    name: str
    features: str
    bits: int
    shuffle: str


PROCESSORS = {
    "plain x86-64": Processor("x86-64", "+sse2", 128, ""),
    "ssse3": Processor("x86-64", "+ssse3", 128, "pshufb"),
    "avx2": Processor("haswell", "+avx2", 256, "vpshufb"),
    "avx512": Processor("skylake-avx512", "+avx512bw,+avx512dq,+avx2", 512, "vpshufb"),
    "avx512vbmi": Processor("icelake-client", "+avx512vbmi,+avx512bw,+avx512dq,+avx2", 512, "vpermb"),
}

#: Lane types and widths that are run again: bytes, whose look-ups differ most, in less than a register and in
#: several; and one of each other size.
AGAIN = [
    ("int8", 4),
    ("int8", 16),
    ("int8", 64),
    ("int16", 32),
    ("uint16", 16),
    ("uint32", 8),
    ("float64", 4),
]

PROGRAM = """
import json
import re

import numpy as np

from plait.lang import compile as language
from plait.lang.lanes import host_lanes, lanes_of, load, lookup, store

made, make = [], language._compile
language._compile = lambda *kinds: made.append(make(*kinds)) or made[-1]


def look_up(lanes, table, index, out):
    store(lanes, out, 0, 0, lookup(lanes, table, 0, load(lanes, index, 0, 0)))


compiled = language.kernel(look_up)
index = np.arange(64, dtype=np.uint8).reshape(1, 64) % 32
table = np.arange(32, dtype=np.int8).reshape(1, 32) - 16
out = np.zeros((1, 64), np.int8)
compiled(lanes_of(64), table, index, out)
assert np.array_equal(out[0], table[0, index[0]])
code = made[0].library.get_asm_str()
found = {
    "lanes": host_lanes(8).width,
    "instructions": sorted(set(re.findall(r"v?pshufb|vpermb", code))),
    "registers": sorted(set(re.findall(r"[xyz]mm", code))),
}
print(json.dumps(found))
"""


def settings(name: str, cache: Path) -> dict[str, str]:
    """Environment in which Numba compiles for a processor, if this one can run its code."""
    processor = PROCESSORS[name]
    if not all(host_features().get(feature[1:]) for feature in processor.features.split(",")):
        pytest.skip(reason=f"this processor cannot run code for {name}")
    chosen = {"NUMBA_CPU_NAME": processor.name, "NUMBA_CPU_FEATURES": processor.features}
    return os.environ | chosen | {"PLAIT_CACHE_DIR": str(cache)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain x86-64", "ssse3", "avx2"])
def test_operations_on_other_processors(name: str, tmp_path: Path, repository: Path) -> None:
    test = "tests/unit/test_lanes_compiled.py::test_compiled_operations_are_the_definitions"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [f"{test}[{dtype}-{width}]" for dtype, width in AGAIN]
    environment = settings(name, tmp_path)
    found = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{len(AGAIN)} passed" in found.stdout


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "ssse3" else [pytest.mark.slow]) for n in PROCESSORS],
)
def test_instructions_follow_the_settings(name: str, tmp_path: Path) -> None:
    processor, environment = PROCESSORS[name], settings(name, tmp_path)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["lanes"] == processor.bits // 8
    assert told["instructions"] == [processor.shuffle] * bool(processor.shuffle)
    assert ("ymm" in told["registers"] or "zmm" in told["registers"]) == (processor.bits > 128)


def test_every_processor_has_its_own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path))
    folders = {_jit.compiled_cache.__wrapped__()}
    for processor in PROCESSORS.values():
        monkeypatch.setenv("NUMBA_CPU_NAME", processor.name)
        monkeypatch.setenv("NUMBA_CPU_FEATURES", processor.features)
        folders.add(_jit.compiled_cache.__wrapped__())
    assert len(folders) == 1 + len(PROCESSORS)
    assert {folder.parent for folder in folders} == {tmp_path}


# --- features -------------------------------------------------------------------------------------------


def features_of(monkeypatch: pytest.MonkeyPatch, platform: str, features: str) -> tuple[Any, int]:
    """Features and vector width on a platform with a setting of Numba."""
    monkeypatch.setattr(_jit, "_processor", lambda: (platform, "some", features))
    found = host_features.__wrapped__()
    monkeypatch.setattr(_jit, "host_features", lambda: found)
    return found, _jit.host_vector_bits.__wrapped__()


@pytest.mark.parametrize(
    ("features", "bits"),
    [
        ("", 128),
        ("+ssse3,+sse4.1", 128),
        ("+ssse3, +avx2, -avx512bw", 256),
        ("-avx2,+ssse3", 128),
        ("+avx2,+avx512bw", 256),
        ("+avx2,+avx512bw,+avx512dq", 512),
    ],
)
def test_a_setting_of_features(monkeypatch: pytest.MonkeyPatch, features: str, bits: int) -> None:
    found, width = features_of(monkeypatch, "x86_64-unknown-linux-gnu", features)
    assert width == bits
    assert {name for name, has in found.items() if has} == {
        part.strip()[1:] for part in features.split(",") if "+" in part
    }


@pytest.mark.parametrize("platform", ["aarch64-unknown-linux-gnu", "arm64-apple-darwin23.5.0"])
@pytest.mark.parametrize(("features", "neon"), [("", True), ("+neon", True), ("-neon", False)])
def test_arm_has_neon(monkeypatch: pytest.MonkeyPatch, platform: str, features: str, neon: bool) -> None:
    found, width = features_of(monkeypatch, platform, features)
    assert found["neon"] == neon
    assert width == 128


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_group_fills_a_register(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    for register in (128, 256, 512):
        monkeypatch.setattr("plait.lang.lanes.host_vector_bits", lambda register=register: register)
        assert host_lanes(bits).width * bits == register


# --- Arm ------------------------------------------------------------------------------------------------

ARM_GROUPS = [
    *((dtype, width) for dtype in (types.int8, types.uint8) for width in (8, 16, 32, 64)),
    *((dtype, width) for dtype in (types.int16, types.uint16, types.int32) for width in (4, 16, 64)),
    *((dtype, width) for dtype in (types.uint32, types.int64, types.uint64) for width in (2, 8)),
    *((dtype, width) for dtype in (types.float32, types.float64) for width in (2, 8)),
]


def lanes_type(width: int) -> Any:
    return types.NamedUniTuple(types.int64, 1, type(lanes_of(width)))


def operations(element: Any, width: int) -> list[tuple[str, Any, list[Any]]]:
    """Operations of a lane type, by name, with the types of their operands."""
    group, lanes = LaneGroup(element, width), lanes_type(width)
    rows = types.Array(element, 2, "C")
    place = [lanes, rows, types.int64, types.int64]
    named: dict[str, list[Any]] = {
        "vector_load": place,
        "vector_store": [*place, group],
        "vector_splat": [lanes, element],
        "vector_select": [LaneMask(width), group, group],
        "vector_mask_bits": [LaneMask(width)],
        "vector_largest_lane": [group],
        "vector_last_lane": [group],
        "vector_shift_in": [group, element],
    }
    pairs = "add subtract multiply add_saturating subtract_saturating maximum minimum equal greater"
    if isinstance(element, types.Integer):
        pairs += " and or shift_right"
        named["vector_any_bits"] = [group]
        named["vector_widen"] = [LaneGroup(types.int64, width), group]
        if element.bitwidth < 64:
            named["lane_narrow"] = [group, LaneGroup(types.int64, width)]
    if element == types.int32 and width > 2:
        named["vector_product_even"] = named["vector_product_odd"] = [group, group]
        named["vector_interleaved"] = [LaneGroup(types.int64, width // 2)] * 2 + [group]
    named |= {f"vector_{name}": [group, group] for name in pairs.split()}
    found = [(name, getattr(instructions, name), kinds) for name, kinds in named.items()]
    if element.bitwidth == 8 and width >= 8:
        kinds = [lanes, rows, types.Array(types.int64, 1, "C"), types.int64, rows, types.int64, types.int64]
        found.append(("vector_store_turned", shuffles.vector_store_turned, kinds))
    for index in (types.uint8, types.uint16):
        kinds = [lanes, rows, types.int64, LaneGroup(index, width)]
        found.append((f"vector_lookup_{index}", shuffles.vector_lookup, kinds))
    return found


def llvm_type(context: Any, kind: Any) -> Any:
    if isinstance(kind, LaneGroup):
        return vector_type(kind)
    if isinstance(kind, LaneMask):
        return _jit.ir.VectorType(_jit.ir.IntType(1), kind.width)
    return element_type(kind) if isinstance(kind, types.Number) else context.get_value_type(kind)


def define(module: Any, context: Any, name: str, operation: Any, kinds: list[Any]) -> None:
    """Add a function to a module that reads operands by pointers, and writes the result to the last one."""
    ir = _jit.ir
    signature, generate = operation.__wrapped__(None, *kinds)
    result = None if signature.return_type == types.void else llvm_type(context, signature.return_type)
    given = [llvm_type(context, kind) for kind in kinds]
    pointers = [kind.as_pointer() for kind in [*given, result or ir.IntType(8)]]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), pointers), name)
    builder = ir.IRBuilder(function.append_basic_block())
    arguments = [builder.load(pointer) for pointer in function.args[:-1]]
    value = generate(context, builder, signature, arguments)
    if result is not None:
        builder.store(value, function.args[-1])
    builder.ret_void()


def arm_module(monkeypatch: pytest.MonkeyPatch, element: Any, width: int) -> Any:
    """Operations of a lane type, for a processor with NEON."""
    monkeypatch.setattr(shuffles, "host_features", lambda: {"neon": True})
    context = importlib.import_module("numba.core.registry").cpu_target.target_context
    module = _jit.ir.Module()
    module.triple = "aarch64-unknown-linux-gnu"
    for name, operation, kinds in operations(element, width):
        define(module, context, name, operation, kinds)
    return module


def arm_machine(binding: Any) -> Any:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple("aarch64-unknown-linux-gnu")
    except RuntimeError as error:
        pytest.skip(reason=f"LLVM was built without Arm: {error}")
    return target.create_target_machine(cpu="generic", features="+neon", opt=2)


@pytest.mark.parametrize(("element", "width"), often(1, ARM_GROUPS), ids=str)
def test_arm_code_is_generated(monkeypatch: pytest.MonkeyPatch, element: Any, width: int) -> None:
    binding = importlib.import_module("llvmlite.binding")
    machine = arm_machine(binding)
    module = binding.parse_assembly(str(arm_module(monkeypatch, element, width)))
    module.verify()
    assert machine.emit_object(module)[:4] == b"\x7fELF"
    code = machine.emit_assembly(module)
    if element.bitwidth <= 16:
        assert "\ttbl\t" in code
    if element == types.int8:
        assert {"\tsqadd\t", "\tsqsub\t", "\tsmax\t"} <= {f"\t{word}\t" for word in code.split()}
