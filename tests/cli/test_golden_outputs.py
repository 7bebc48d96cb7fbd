"""Command lines write and print what they did when their outputs were last said to be right."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from support.examples import often
from support.used_kernels import as_listed, used_kernels

from plait.lang import ahead

#: Parts of command lines that compile kernels which no other one has; they run in `make test-all`.
SELDOM = ("--model dp1", "--model exhaustive", "--best 3", "--best 2", "--hits-per-target")
SCRIPT = Path(__file__).resolve().parents[1] / "golden" / "make_command_outputs.py"


@pytest.mark.parametrize("every", often(1, [False, True]))
def test_command_lines_write_what_they_did(tmp_path: Path, every: bool) -> None:
    golden = runpy.run_path(str(SCRIPT))
    expected = json.loads(golden["OUTPUTS"].read_text(encoding="utf-8"))
    assert list(golden["COMMANDS"]) == list(expected)
    if not every:
        for part in SELDOM:
            kept = {command: files for command, files in expected.items() if part not in command}
            assert len(kept) < len(expected), part
            expected = kept
    with used_kernels() as used:
        found = golden["run_all"](tmp_path / "run", expected)
    assert list(found) == list(expected)
    wrong = [
        f"plait {command}: {name}"
        for command, files in expected.items()
        for name in sorted(files.keys() | found[command].keys())
        if files.get(name) != found[command].get(name)
    ]
    assert not wrong, "\n".join(wrong)
    slow = {kernel.name for kernel, types in used if kernel._loaded.get(types) is None}
    assert not slow, f"only Numba, whose import takes a second, can call {', '.join(sorted(slow))}"
    listed = set(map(ahead.text_of, ahead.listed()))
    new = {as_listed(*call) for call in used} - listed
    assert not new, "\n".join(["python tools/build_wheel.py --list makes a list with these:", *sorted(new)])


def test_masks_leave_what_is_golden(tmp_path: Path) -> None:
    masked = runpy.run_path(str(SCRIPT))["masked"]
    text = f'{tmp_path}/a 12 rows in 0.3 s, 1,234 rows/s 0.12345678901 3.00000000049e-12 "created": "x"'
    assert masked(text, tmp_path) == '<folder>/a 12 rows in <amount> 0.123456789 3e-12 "created": <>'
    assert masked("TRBV1*01 120 0.25 TGTGCC", tmp_path) == "TRBV1*01 120 0.25 TGTGCC"
