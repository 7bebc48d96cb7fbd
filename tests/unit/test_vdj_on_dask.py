"""Counting, annotating and sharing on worker processes: the same bytes, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow.parquet as pq
import pytest
from support.read_library import Library, simulate_reads, write_fastq
from support.read_simulation import Sequencing

from plait.errors import FormatError, TargetUnavailable, TaskFailed
from plait.run.dask import DaskExecutor
from plait.run.executor import Progress
from plait.run.rows import FinishedRun
from plait.vdj import PathCounter
from plait.vdj.count_files import CountSummary, count_files
from plait.vdj.germline import load_germline
from plait.vdj.reads.annotate_files import FurtherSettings, annotate_files
from plait.vdj.repertoires.sharing import share_files

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

BLOCK = 16

pytestmark = pytest.mark.slow
#: Seconds after which a test fails that waits for another process.
PATIENCE = 300


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.count_files._MOST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.count_files._FEWEST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.repertoires.sharing._BLOCK_ROWS", BLOCK)


def count(inputs: list[Path], counter: PathCounter, name: str, **options: Any) -> FinishedRun[CountSummary]:
    return count_files(inputs, inputs[0].with_name(name), counter, **options)


def same_files(one: Path, other: Path, *ends: str) -> bool:
    return all(Path(f"{one}{end}").read_bytes() == Path(f"{other}{end}").read_bytes() for end in ("", *ends))


@pytest.mark.parametrize("kind", ["parquet", "tsv"])
@pytest.mark.parametrize("long", [False, True])
def test_counts_are_the_same(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor, kind: str, long: bool
) -> None:
    paths = inputs(kind)
    here = count(paths, counter, "here.parquet", long=long, threads=2)
    seen: list[Progress] = []
    there = count(paths, counter, "there.parquet", long=long, executor=dask_cluster, progress=seen.append)
    assert same_files(here.output, there.output, ".summary.json")
    assert [state.rows for state in seen] == [16, 32, 48, 64, 80, 96, 100]
    assert not Path(f"{there.output}.checkpoint").exists()


def test_a_worker_is_killed_in_the_middle_of_a_run(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor
) -> None:
    paths = inputs("tsv")
    here = count(paths, counter, "here.parquet")
    processes = dict.fromkeys(dask_cluster.map(lambda _: os.getpid(), range(8)))

    def kill(state: Progress) -> None:
        if state.rows == 2 * BLOCK:
            os.kill(next(iter(processes)), signal.SIGKILL)

    there = count(paths, counter, "there.parquet", executor=dask_cluster, progress=kill)
    assert same_files(here.output, there.output, ".summary.json")


@pytest.mark.parametrize("first", ["here", "there"])
def test_a_run_goes_on_elsewhere(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor, first: str
) -> None:
    paths = inputs("tsv" if first == "here" else "parquet")
    whole = count(paths, counter, "whole.parquet")

    def stop(state: Progress) -> None:
        if state.rows == 3 * BLOCK:
            raise KeyboardInterrupt

    executors = {"here": None, "there": dask_cluster}
    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out.parquet", executor=executors.pop(first), progress=stop)
    assert not paths[0].with_name("out.parquet").exists()
    (other,) = executors.values()
    found = count(paths, counter, "out.parquet", executor=other, resume=True)
    assert found.resumed_blocks >= 3
    assert same_files(whole.output, found.output, ".summary.json")


def test_a_damaged_block_is_counted_again(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor
) -> None:
    paths = inputs("parquet")
    whole = count(paths, counter, "whole.parquet")

    def stop(state: Progress) -> None:
        if state.rows == 3 * BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out.parquet", progress=stop)
    block = paths[0].with_name("out.parquet.checkpoint") / "block-00000001.arrows"
    block.write_bytes(block.read_bytes()[:-7])
    found = count(paths, counter, "out.parquet", executor=dask_cluster, resume=True)
    assert same_files(whole.output, found.output, ".summary.json")


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("parquet", "records 48 to 60 of '.*a.parquet' and records 0 to 2 of '.*b.parquet'"),
        ("tsv", "records 48 to 60 of '.*a.tsv' and records 0 to 2 of '.*b.tsv'"),
    ],
)
def test_rows_that_fail_are_named(
    inputs: Any,
    counter: PathCounter,
    dask_cluster: DaskExecutor,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    rows: str,
) -> None:
    paths = inputs(kind)
    failing = (
        pq.read_table(paths[1])["junction"][0].as_py()
        if kind == "parquet"
        else (paths[1].read_text().splitlines()[1].split("\t")[0])
    )

    class Failing:
        """Counts all rows but one."""

        def __init__(self, counter: Any) -> None:
            self._counter = counter

        def __call__(self, given: Any) -> Any:
            if failing in given["junction"].to_pylist():
                raise ArithmeticError("not this one")
            return self._counter(given)

    import plait.run.rows as resumable

    kept = resumable._IfNew
    monkeypatch.setattr(resumable, "_IfNew", lambda work, digest: kept(Failing(work), digest))
    with pytest.raises(TaskFailed, match=rows) as caught:
        count(paths, counter, "out.parquet", executor=dask_cluster)
    assert "ArithmeticError: not this one" in caught.value.reason
    names = {path.name for path in paths[0].parent.iterdir()} - {path.name for path in paths}
    assert names == {"out.parquet.checkpoint"}


def test_a_file_that_is_damaged_is_named(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor
) -> None:
    paths = inputs("parquet")
    content = bytearray(paths[1].read_bytes())
    content[20:60] = bytes(40)
    paths[1].write_bytes(content)
    with pytest.raises(FormatError, match="damaged or unreadable Parquet") as caught:
        count(paths, counter, "out.parquet", executor=dask_cluster)
    assert caught.value.path == str(paths[1])
    assert not paths[0].with_name("out.parquet").exists()


class Cluster:
    """A scheduler and a worker, started as a batch system would: all they share is a file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        place = ["--scheduler-file", str(self.file)]
        quiet = ["--no-dashboard", "--host", "127.0.0.1"]
        self._processes = [self._started("dask_scheduler", *place, *quiet, "--port", "0")]
        self._wait()
        self._processes.append(self._started("dask_worker", *place, *quiet, "--no-nanny", "--nthreads", "1"))

    def end_scheduler(self) -> None:
        self._processes[0].kill()
        self._processes[0].communicate(timeout=PATIENCE)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate(timeout=PATIENCE)

    def _started(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )

    def _wait(self) -> None:
        """Until the scheduler has written its address."""
        pause = threading.Event()
        for _ in range(10 * PATIENCE):
            if self.file.exists() and self.file.read_text().rstrip().endswith("}"):
                return
            pause.wait(0.1)
        raise TimeoutError(self.file)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    yield found
    found.close()


@pytest.mark.filterwarnings("ignore:the cluster has no worker yet:UserWarning")
def test_the_scheduler_goes_away(inputs: Any, counter: PathCounter, cluster: Cluster) -> None:
    paths = inputs("parquet")
    whole = count(paths, counter, "whole.parquet")

    def end(state: Progress) -> None:
        if state.rows == 2 * BLOCK:
            cluster.end_scheduler()

    with (
        pytest.raises(TargetUnavailable, match=r"the scheduler .* does not answer any more") as caught,
        DaskExecutor(scheduler_file=cluster.file) as executor,
    ):
        # One thread: four blocks at most have been sent by then.
        assert executor.slots == 1
        count(paths, counter, "out.parquet", executor=executor, progress=end)
    assert str(cluster.file) in caught.value.reason or "tcp://" in caught.value.reason
    assert "--resume" in caught.value.fix
    assert not paths[0].with_name("out.parquet").exists()
    found = count(paths, counter, "out.parquet", resume=True)
    assert found.resumed_blocks >= 2
    assert same_files(whole.output, found.output, ".summary.json")


@pytest.mark.parametrize("kind", ["parquet", "tsv"])
def test_sharing_is_the_same(inputs: Any, tmp_path: Path, dask_cluster: DaskExecutor, kind: str) -> None:
    out, by_subject = tmp_path / "out.parquet", tmp_path / "by.tsv"
    found = []
    for executor in (None, dask_cluster):
        share_files(inputs(kind), out, by_subject=by_subject, executor=executor)
        found.append([out.read_bytes(), by_subject.read_bytes()])
    assert found[0] == found[1]


def test_annotation_is_the_same(tmp_path: Path, dask_cluster: DaskExecutor, monkeypatch: Any) -> None:
    monkeypatch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", 40)
    germlines = [load_germline("mouse_trb")]
    paths = [tmp_path / "a.fastq.gz", tmp_path / "b.fastq"]
    for seed, path in enumerate(paths):
        poor = Sequencing(substitutions=0.002)
        library = Library(reads=90, clones=20, noise=0.1, sequencing=poor)
        write_fastq(simulate_reads(germlines, library, seed=seed), path)
    out = tmp_path / "out.tsv"
    ends = ("", ".json", ".summary.json", ".summary.tsv", ".clonotypes.tsv")
    further = FurtherSettings(clonotypes=Path(f"{out}.clonotypes.tsv"))

    def stop(state: Progress) -> None:
        if state.rows >= 80:
            raise KeyboardInterrupt

    def run(**options: Any) -> int:
        return annotate_files(paths, out, germlines, further=further, **options).resumed_blocks

    def written() -> list[bytes]:
        return [Path(f"{out}{end}").read_bytes() for end in ends]

    run(threads=1)
    here = written()
    assert json.loads(here[2])["clonotypes"]["joined"] > 10
    with pytest.raises(KeyboardInterrupt):
        run(executor=dask_cluster, progress=stop)
    assert run(executor=dask_cluster, resume=True) >= 2
    assert written() == here
