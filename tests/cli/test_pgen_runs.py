"""``plait vdj pgen``, ``scenarios`` and ``generate``: stopped and resumed, here and on workers, by a pipe."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.recombination import small_model

from plait.vdj.model import ModelGene, pgen, write_model

#: Draws of a block in these tests.
DRAWS = 64
#: Makes blocks small, in this process or as statements for another.
SMALL = {
    "plait.vdj.model.pgen._BLOCK_ROWS": 16,
    "plait.vdj.model.pgen._FEWEST_ROWS": 16,
    "plait.vdj.model.scenarios._MOST_ROWS": 16,
    "plait.vdj.model.sampling._BLOCK_DRAWS": DRAWS,
}
COMMANDS = {
    "pgen": ("--of", "nt,aa", "--log10"),
    "scenarios": ("--best", 3),
    "posteriors": ("--posteriors",),
    "generate": ("-n", 300, "--keep", "all"),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SMALL.items():
        monkeypatch.setattr(name, value)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and a table of junctions, as text and as Parquet."""
    folder = tmp_path_factory.mktemp("base")
    model = small_model(1, zeros=False, most=4)
    v = (ModelGene("TRBV1*01", "TGTGCA", 0, "F"), ModelGene("TRBV2*01", "TGTAGC", 0, "F"))
    j = (ModelGene("TRBJ1*01", "GCTTTC", 3, "F"), ModelGene("TRBJ2*01", "CATTTT", 3, "F"))
    write_model(replace(model, name="small", v=v, j=j), folder / "model.json")
    junctions = [f"TGTGCA{'ACGT'[k % 4]}{'GATC'[k % 3]}{'T' * (k % 5)}GCTTTC" for k in range(90)]
    columns = {"junction": [*junctions, "TGTAA", "AAAAAAAAA"], "subject_id": [f"s{k}" for k in range(92)]}
    pq.write_table(pa.table(columns), folder / "in.parquet", row_group_size=25)
    lines = ["\t".join(columns), *map("\t".join, zip(*columns.values(), strict=True))]
    (folder / "in.tsv").write_text("\n".join(lines) + "\n")
    return folder


def words(base: Path, command: str, out: Path, given: str = "in.tsv") -> tuple[object, ...]:
    name = "scenarios" if command == "posteriors" else command
    tables = () if command == "generate" else (base / given,)
    return ("vdj", name, *tables, "--model", base / "model.json", *COMMANDS[command], "-o", out)


def contents(out: Path) -> dict[str, bytes]:
    """The table and what stands beside it."""
    return {path.name: path.read_bytes() for path in out.parent.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("command", often(2, ["pgen", "generate", "scenarios", "posteriors"]))
def test_a_stopped_run_is_resumed_to_the_byte(
    plait: Any, start_plait: Any, stopping: Any, base: Path, tmp_path: Path, command: str
) -> None:
    whole, out = tmp_path / "whole" / "out.tsv", tmp_path / "stopped" / "out.tsv"
    whole.parent.mkdir()
    out.parent.mkdir()
    assert plait(*words(base, command, whole), "--threads", 3).status == 0
    smaller = "import importlib; "
    for name, value in SMALL.items():
        module, _, attribute = name.rpartition(".")
        smaller += f"importlib.import_module({module!r}).{attribute} = {value}; "
    number = signal.SIGKILL if command == "pgen" else signal.SIGTERM
    process = start_plait(*words(base, command, out), "--threads", 1, before=smaller + stopping(number))
    _, err = process.communicate(timeout=300)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), err
    if number == signal.SIGTERM:
        assert err.splitlines()[-1].endswith("the same command with --resume continues where it stopped")
    assert Path(f"{out}.checkpoint").is_dir() and not out.exists()
    if command == "generate":
        found = plait(*words(base, command, out), "--seed", 3, "--resume")
        assert found.status == 2 and "resume: found a checkpoint of another run" in found.err
    found = plait(*words(base, command, out), "--resume")
    assert found.status == 0 and "blocks were taken over from the stopped run" in found.out
    assert contents(out) == contents(whole)


@pytest.mark.slow
@pytest.mark.parametrize("given", ["in.tsv", "in.parquet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_workers_make_the_same_bytes(
    plait: Any, base: Path, tmp_path: Path, dask_address: str, command: str, given: str
) -> None:
    if (command, given) == ("generate", "in.parquet"):
        given = "in.tsv"
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    assert plait(*words(base, command, here, given)).status == 0
    cluster = ("--executor", "dask", "--scheduler", dask_address)
    assert plait(*words(base, command, there, given), *cluster).status == 0
    assert here.read_bytes() == there.read_bytes()
    summaries = [Path(f"{path}.summary.json") for path in (here, there)]
    assert command == "generate" or summaries[0].read_bytes() == summaries[1].read_bytes()


class _Pipe(io.StringIO):
    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("command", often(1, [name for name in COMMANDS if name != "generate"]))
def test_standard_input(
    plait: Any, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    by_file, by_pipe = tmp_path / "file.tsv", tmp_path / "pipe.tsv"
    assert plait(*words(base, command, by_file)).status == 0
    monkeypatch.setattr("sys.stdin", _Pipe((base / "in.tsv").read_bytes()))
    piped = ["-" if word == base / "in.tsv" else word for word in words(base, command, by_pipe)]
    assert plait(*piped).status == 0
    assert by_file.read_bytes() == by_pipe.read_bytes()


def test_two_tables_are_one(plait: Any, base: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    command = words(base, "scenarios", out)
    assert plait(*command[:2], base / "in.parquet", *command[2:]).status == 0
    lines = out.read_text().splitlines()
    records = {int(line.split("\t")[0]) for line in lines[1:]}
    assert records == set(range(184))


def test_what_an_input_holds_stops_it(plait: Any, base: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text((base / "in.tsv").read_text() + "one cell\n")
    for command in ("pgen", "scenarios", "posteriors"):
        line = [bad if word == base / "in.tsv" else word for word in words(base, command, tmp_path / "o.tsv")]
        found = plait(*line)
        assert found.status == 2 and "bad.tsv, line 94: found 1 column" in found.err
        assert not (tmp_path / "o.tsv").exists()


@pytest.mark.slow
def test_blocks_of_a_gpu_that_is_named_are_the_same_wherever_they_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another machine computes has the row groups, and so the bytes, of what this one does."""
    monkeypatch.setattr(pgen, "_BLOCK_ROWS", 16)
    rows = {
        (device, elsewhere): pgen._block_rows(device, cast(Any, SimpleNamespace(elsewhere=elsewhere)))
        for device in ("cpu", "cuda", "cuda:all")
        for elsewhere in (False, True)
    }
    assert {rows["cpu", here] for here in (False, True)} == {16}
    assert {rows[device, here] for device in ("cuda", "cuda:all") for here in (False, True)} == {1 << 16}
