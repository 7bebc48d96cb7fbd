"""The script that builds the bundled sets, and that its result is what lies in the package."""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from plait.vdj.germline import bundled_germlines, load_germline

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "tools" / "build_germline_data.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_germline_data", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", bundled_germlines())
def test_building_again_from_the_content_gives_the_file(script: ModuleType, name: str) -> None:
    germline = load_germline(name)
    species, _, locus = script.SETS[name]
    groups = {
        (species, f"{locus.lower()}{segment.lower()}"): {
            a.name: a.sequence for a in germline.alleles(segment)
        }
        for segment in ("V", "J")
    }
    built = script.build(name, groups)
    assert built == germline
    packed = (REPOSITORY / f"src/plait/vdj/germline/data/{name}_germline.json.gz").read_bytes()
    assert script.text_of(built) == gzip.decompress(packed).decode()


@pytest.mark.skipif(
    importlib.util.find_spec("pyimmunarch") is None,
    reason="pyimmunarch, the source of the data, is not installed",
)
def test_the_files_are_those_of_the_source() -> None:
    run = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "up to date\n")


def test_another_source_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    table.write_bytes(b"PAR1")
    command = [sys.executable, SCRIPT, "--parquet", table, "--output", tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "expected 7bfdecb0" in run.stderr
    assert not (tmp_path / "out").exists()


def test_functionality_is_derived_from_defects_alone(script: ModuleType) -> None:
    germline = load_germline("mouse_trb")
    v, j, d = germline.v[0], germline.j[0], germline.d[0]
    derived = script.derived_functionality
    assert [derived(a) for a in (v, j, d)] == [None, None, None]
    assert derived(replace(v, sequence="TAA" + v.sequence[3:])) == "P"
    assert derived(replace(v, sequence="TAA" + v.sequence[3:], anchor=None)) == "P"
    assert derived(replace(v, anchor=None)) == "ORF"
    assert derived(replace(j, anchor=None)) == "ORF"
    assert derived(replace(j, sequence=j.sequence[:-4] + "TGAC")) == "P"


def test_natural_order(script: ModuleType) -> None:
    names = ["TRBV12-1*01", "TRBV2*01", "TRBV12-1*02", "TRBV1*01", "TRBV12*01", "TRBV2-10*01", "TRBV2-9*01"]
    assert sorted(names, key=script.natural_key) == [
        "TRBV1*01", "TRBV2*01", "TRBV2-9*01", "TRBV2-10*01", "TRBV12*01", "TRBV12-1*01", "TRBV12-1*02",
    ]  # fmt: skip
