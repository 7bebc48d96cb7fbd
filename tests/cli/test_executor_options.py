"""``--executor`` and what belongs to it: wrong requests, what is not installed, and stopping."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest

BASE = ("--germline", "mouse_trb", "--device", "reference")
PATIENCE = 300


@pytest.fixture
def table(write_tsv: Any, mouse_rows: Any) -> Path:
    path: Path = write_tsv(mouse_rows(40))
    return path


@pytest.mark.slow
def test_a_scheduler_that_runs(plait: Any, table: Path, tmp_path: Path, dask_address: str) -> None:
    outputs = []
    for name, words in (("here", ()), ("there", ("--executor", "dask", "--scheduler", dask_address))):
        out = tmp_path / f"{name}.parquet"
        assert plait("vdj", "count", table, *BASE, "-o", out, *words).status == 0
        outputs.append(out.read_bytes())
    assert outputs[0] == outputs[1]


@pytest.mark.slow
def test_a_scheduler_file(plait: Any, table: Path, tmp_path: Path, dask_address: str) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": dask_address}))
    words = ("--executor", "dask", "--scheduler-file", file)
    assert plait("vdj", "sharing", table, "-o", tmp_path / "out.tsv", *words).status == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", "2"), "workers: found '2', expected the executor dask with it"),
        (("--scheduler", "tcp://a:1"), "scheduler: found 'tcp://a:1', expected the executor dask with it"),
        (
            ("--executor", "dask", "--workers", "0"),
            "workers: found 0, expected a whole number from 1 to 4096",
        ),
        (
            ("--executor", "dask", "--scheduler", "tcp://a:1", "--scheduler-file", "b"),
            "scheduler: found an address and a scheduler_file, expected one or the other",
        ),
        (
            ("--executor", "dask", "--scheduler", "tcp://a:1", "--worker-memory", "1GiB"),
            "worker_memory: found '1GiB', expected nothing: the workers of a scheduler that runs",
        ),
        (("--executor", "dask", "--worker-memory", "much"), "worker_memory: found 'much', expected bytes"),
        (("--executor", "dask", "--scheduler-file", "missing.json"), "scheduler_file: found 'missing.json'"),
    ],
)
def test_wrong_requests(plait: Any, table: Path, tmp_path: Path, words: Any, message: str) -> None:
    found = plait("vdj", "count", table, *BASE, "-o", tmp_path / "out.parquet", *words)
    assert found.status == 2 and message in found.err
    assert list(tmp_path.iterdir()) == [table]


def test_no_scheduler_answers(plait: Any, table: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        # Bound, but nobody listens.
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            words = ("--executor", "dask", "--scheduler", address)
            found = plait("vdj", "count", table, *BASE, "-o", tmp_path / "out.parquet", *words)
    assert found.status == 2
    assert f"no scheduler answers at {address}" in found.err and "check the address" in found.err


def test_dask_is_not_installed(plait: Any, table: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    found = plait("vdj", "count", table, *BASE, "-o", tmp_path / "out.parquet", "--executor", "dask")
    assert found.status == 2 and "pip install 'plait[cluster]'" in found.err


@pytest.mark.slow
def test_local_runs_load_no_dask() -> None:
    # No other module may import them; see the import contracts.
    modules = "plait.cli.options, plait.run.executor, plait.run.dask"
    program = f"import sys, {modules}; print(*{{'dask', 'distributed'}} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def _marked(mark: str) -> list[psutil.Process]:
    """Processes that have inherited a variable of the environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PLAIT_TEST_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue
    return found


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_that_were_started(
    start_plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("PLAIT_TEST_MARK", str(tmp_path))
    # Ctrl-C reaches all processes of a terminal at once, those of the workers too.
    before = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "import os, plait.vdj.count_files as m; m._MOST_ROWS = m._FEWEST_ROWS = 16;"
        "from plait.formats.checkpoints import Checkpoint as c; put = c.put;"
        "c.put = lambda self, index, *rest: (put(self, index, *rest),"
        " os.killpg(0, signal.SIGINT) if index == 2 else None)[0]"
    )
    out = tmp_path / "out.parquet"
    process = start_plait(
        *("vdj", "count", write_tsv(mouse_rows(200)), *BASE, "-o", out, "--executor", "dask", "--workers", 2),
        before=before,
        start_new_session=True,
    )
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in err
    assert err.splitlines()[-1].endswith("the same command with --resume continues where it stopped")
    assert not out.exists() and Path(f"{out}.checkpoint").is_dir()
    left = [found for found in _marked(str(tmp_path)) if found.pid != os.getpid()]
    psutil.wait_procs(left, timeout=PATIENCE)
    assert not [found for found in left if found.is_running()]
