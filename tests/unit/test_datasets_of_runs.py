"""Runs whose output is a folder of parts: the rows of one file, the same bytes wherever they are made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.read_library import Library, simulate_reads, write_fastq
from support.read_simulation import Sequencing

from plait.errors import FormatError, InvalidInput, TargetUnavailable
from plait.formats.reads import BarcodePlace
from plait.formats.rearrangements import RowRange
from plait.formats.tables import PartSettings
from plait.run.dask import DaskExecutor
from plait.run.datasets import RowPart, restored_state, state_of
from plait.run.executor import Progress
from plait.run.rows import FinishedRun
from plait.vdj import PathCounter
from plait.vdj.calls import BlamedCalls
from plait.vdj.count_files import CountSummary, count_files
from plait.vdj.germline import load_germline
from plait.vdj.model import load_model
from plait.vdj.model.pgen import PgenSummary, PgenTotals, pgen_files, posterior_files
from plait.vdj.model.sampling import generate_file
from plait.vdj.model.scenarios import scenario_files
from plait.vdj.reads.annotate_files import FurtherSettings, Umis, annotate_files

PARTS = PartSettings(None, 16)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Blocks of one file as long as parts: what a summary looks at more closely is the same then.
    monkeypatch.setattr("plait.vdj.count_files._MOST_ROWS", 16)
    monkeypatch.setattr("plait.vdj.count_files._FEWEST_ROWS", 16)


def count(inputs: list[Path], counter: PathCounter, name: str, **options: Any) -> FinishedRun[CountSummary]:
    more = {"parts": PARTS} if name.endswith("/") else {}
    return count_files(inputs, f"{inputs[0].parent}/{name}", counter, **more, **options)


def table(path: object) -> pa.Table:
    return pq.read_table(str(path)).replace_schema_metadata()


def files_in(folder: object) -> dict[str, bytes]:
    root = Path(str(folder))
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", often(1, ["parquet", "tsv"]))
@pytest.mark.parametrize("long", often(1, [False, True]))
def test_counts_are_those_of_one_file(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor, kind: str, long: bool
) -> None:
    paths = inputs(kind)
    whole = count(paths, counter, "whole.parquet", long=long)
    seen: list[Progress] = []
    here = count(paths, counter, "here/", long=long, threads=2, progress=seen.append)
    there = count(paths, counter, "there/", long=long, executor=dask_cluster)
    assert table(here.output).equals(table(whole.output))
    assert files_in(here.output) == files_in(there.output)
    assert len(files_in(here.output)) == 9
    assert json.loads(Path(here.summary_path).read_text()) == json.loads(Path(whole.summary_path).read_text())
    assert (here.rows, here.summary.rows) == (100, 100)
    assert [state.rows for state in seen] == [16, 32, 48, 64, 80, 96, 100]
    assert seen[-1].bytes_read == seen[-1].total_bytes
    names = {path.name for path in paths[0].parent.iterdir()} - {path.name for path in paths}
    assert names == {"whole.parquet", "whole.parquet.summary.json", "here", "there"}


@pytest.mark.slow
def test_parts_are_read_as_one_table_again(inputs: Any, counter: PathCounter) -> None:
    paths = inputs("tsv")
    parts = PartSettings("subject", 16)
    first = count_files(paths, f"{paths[0].parent}/first/", counter, parts=parts)
    assert len(list(Path(str(first.output)).glob("subject_id=s*"))) == 4
    again = count_files([str(first.output)], paths[0].with_name("again.parquet"), counter)
    rows = table(again.output)
    given = pa.concat_tables(table(file) for file in [count(paths, counter, "whole.parquet").output])
    order = ["subject_id", "junction", "v_call", "j_call"]
    assert (
        rows.select([*order, "path_count"])
        .sort_by([(name, "ascending") for name in order])
        .equals(given.select([*order, "path_count"]).sort_by([(name, "ascending") for name in order]))
    )
    assert rows["subject_id"].to_pylist() == sorted(rows["subject_id"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("command", often(1, ["pgen", "posteriors", "scenarios"]))
def test_models_write_parts(inputs: Any, dask_cluster: DaskExecutor, command: str) -> None:
    paths = inputs("parquet")
    folder, model = paths[0].parent, load_model("human_TRB")
    work: Any = {"pgen": pgen_files, "posteriors": posterior_files, "scenarios": scenario_files}[command]
    more = {"best": 3} if command == "scenarios" else {}
    whole = work(paths, folder / "whole.parquet", model, **more)
    here = work(paths, f"{folder}/here/", model, parts=PARTS, threads=2, **more)
    there = work(paths, f"{folder}/there/", model, parts=PARTS, executor=dask_cluster, **more)
    assert table(here.output).equals(table(whole.output))
    assert files_in(here.output) == files_in(there.output)
    assert here.rows == 100


@pytest.mark.slow
def test_draws_in_parts(tmp_path: Path, dask_cluster: DaskExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.model.sampling._BLOCK_DRAWS", 64)
    model = load_model("human_TRB")
    whole = generate_file(model, tmp_path / "whole.parquet", 100)
    here = generate_file(model, f"{tmp_path}/here/", 100, threads=2, parts=PartSettings(None, 128))
    there = generate_file(
        model, f"{tmp_path}/there/", 100, executor=dask_cluster, parts=PartSettings(None, 128)
    )
    assert table(here.output).equals(table(whole.output))
    assert files_in(here.output) == files_in(there.output)
    assert (here.rows, here.drawn) == (whole.rows, whole.drawn)
    none = generate_file(model, f"{tmp_path}/none/", 0)
    assert table(none.output).num_rows == 0 and none.drawn == 0
    assert {path.name for path in tmp_path.iterdir()} == {"whole.parquet", "here", "there", "none"}


@pytest.mark.slow
@pytest.mark.parametrize("how", often(1, ["clonotypes", "reads", "molecules"]))
def test_annotated_reads_in_parts(
    tmp_path: Path, dask_cluster: DaskExecutor, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", 20)
    germlines = [load_germline("mouse_trb")]
    paths = [tmp_path / "a.fastq", tmp_path / "b.fastq"]
    for seed, path in enumerate(paths):
        library = Library(reads=60, clones=20, noise=0.1, sequencing=Sequencing(substitutions=0.002))
        write_fastq(simulate_reads(germlines, library, seed=seed), path)
    more: dict[str, Any] = {}
    if how == "molecules":
        more["umis"] = Umis(place=BarcodePlace.parse("read1:0-4"))
    if how == "clonotypes":
        more["further"] = FurtherSettings(clonotypes=tmp_path / "clonotypes.tsv")
    parts = PartSettings(None, 40)
    whole = annotate_files(paths, tmp_path / "whole.parquet", germlines, **more)
    here = annotate_files(paths, f"{tmp_path}/here/", germlines, parts=parts, threads=2, **more)
    seen: list[Progress] = []

    def stop(state: Progress) -> None:
        seen.append(state)
        if how == "reads" and state.rows == 80:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"parts": parts, "executor": dask_cluster, **more}
    if how == "reads":
        with pytest.raises(KeyboardInterrupt):
            annotate_files(paths, f"{tmp_path}/there/", germlines, progress=stop, **options)
    there = annotate_files(paths, f"{tmp_path}/there/", germlines, resume=how == "reads", **options)
    assert table(here.output).equals(table(whole.output))
    assert files_in(here.output) == files_in(there.output)
    told = [Path(one.summary_path).read_text() for one in (whole, here, there)]
    assert told[0] == told[1] == told[2]
    assert there.resumed_blocks == (2 if how == "reads" else 0)
    assert how != "reads" or len(files_in(here.output)) == 4
    names = {path.name.split(".")[0] for path in tmp_path.iterdir()}
    assert names <= {"a", "b", "whole", "here", "there", "clonotypes"}
    assert not list(tmp_path.glob("*.unfinished")) and not list(tmp_path.glob("*.checkpoint"))


Run = Callable[..., Any]


@pytest.fixture
def runs(
    inputs: Any, counter: PathCounter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Run]:
    """Every command that writes parts where workers are: runs of it, into a folder, with its options."""
    monkeypatch.setattr("plait.vdj.model.sampling._BLOCK_DRAWS", 64)
    monkeypatch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", 20)
    model, germlines = load_model("human_TRB"), [load_germline("mouse_trb")]

    library = Library(reads=120, clones=20, noise=0.1, sequencing=Sequencing(substitutions=0.002))
    write_fastq(simulate_reads(germlines, library, seed=1), tmp_path / "reads.fastq")
    reads, table = [tmp_path / "reads.fastq"], inputs("parquet")
    cut: dict[str, Any] = {"parts": PARTS}
    return {
        "count": lambda out, **more: count_files(table, out, counter, **cut, **more),
        "pgen": lambda out, **more: pgen_files(table, out, model, **cut, **more),
        "scenarios": lambda out, **more: scenario_files(table, out, model, best=3, **cut, **more),
        "generate": lambda out, **more: generate_file(model, out, 100, parts=PartSettings(None, 64), **more),
        "annotate": lambda out, **more: annotate_files(
            reads, out, germlines, parts=PartSettings(None, 20), **more
        ),
    }


COMMANDS = ["count", "pgen", "scenarios", "generate", "annotate"]


def striking(monkeypatch: pytest.MonkeyPatch, strikes: dict[int, Callable[[DaskExecutor], None]]) -> None:
    """Do something when so many parts of a run are done."""
    plain = DaskExecutor.map

    def map(self: DaskExecutor, *arguments: Any, **more: Any) -> Iterator[Any]:
        for number, found in enumerate(plain(self, *arguments, **more)):
            if number in strikes:
                strikes.pop(number)(self)
            yield found

    monkeypatch.setattr(DaskExecutor, "map", map)


@pytest.mark.slow
@pytest.mark.parametrize("command", often(1, COMMANDS))
def test_a_worker_is_killed_and_another_one_added(
    runs: dict[str, Run],
    tmp_path: Path,
    dask_cluster: DaskExecutor,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    here = runs[command](f"{tmp_path}/here/")
    process = next(iter(dask_cluster.map(lambda _: os.getpid(), range(1))))
    strikes: dict[int, Callable[[DaskExecutor], None]] = {
        0: lambda executor: os.kill(process, signal.SIGKILL),
        1: lambda executor: executor._client.cluster.scale(3),
    }
    striking(monkeypatch, strikes)
    there = runs[command](f"{tmp_path}/there/", executor=dask_cluster)
    assert not strikes
    assert files_in(here.output) == files_in(there.output)


def stopped(rows: int) -> Callable[[Progress], None]:
    def stop(state: Progress) -> None:
        if state.rows == rows:
            raise KeyboardInterrupt

    return stop


@pytest.mark.slow
@pytest.mark.parametrize("kind", often(1, ["parquet", "tsv"]))
@pytest.mark.parametrize("first", often(1, ["here", "there"]))
def test_a_run_goes_on_elsewhere(
    inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor, kind: str, first: str
) -> None:
    paths = inputs(kind)
    whole = count(paths, counter, "whole/")
    executors = {"here": None, "there": dask_cluster}
    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out/", executor=executors.pop(first), progress=stopped(48))
    folder = paths[0].parent
    assert not (folder / "out").exists()
    made = folder / "out.unfinished" / "part-00000001.parquet"
    before = made.stat().st_ino
    damaged = folder / "out.unfinished" / "part-00000002.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    (other,) = executors.values()
    found = count(paths, counter, "out/", executor=other, resume=True)
    assert found.resumed_blocks >= 3
    assert files_in(whole.output) == files_in(found.output)
    assert (folder / "out" / made.name).stat().st_ino == before
    assert not (folder / "out.unfinished").exists() and not (folder / "out.checkpoint").exists()


def test_an_input_that_changed_is_noticed(inputs: Any, counter: PathCounter) -> None:
    paths = inputs("tsv")
    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out/", progress=stopped(48))
    status = paths[0].stat()
    head, *lines = paths[0].read_text().splitlines(keepends=True)
    paths[0].write_text("".join([head, *reversed(lines)]))
    os.utime(paths[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InvalidInput, match="another content of records 0 to 15"):
        count(paths, counter, "out/", resume=True)


@pytest.mark.parametrize("where", often(1, ["here", "there"]))
def test_what_nobody_has_touched_is_not_read_again(
    inputs: Any,
    counter: PathCounter,
    dask_cluster: DaskExecutor,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = inputs("parquet")
    executor = dask_cluster if where == "there" else None
    whole = count(paths, counter, "whole/")
    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out/", executor=executor, progress=stopped(48))
    made = paths[0].parent / "out.unfinished"
    # One that has been damaged behind a clock's back, and one that has gone.
    for number, damage in ((1, Path.unlink), (2, _damaged)):
        damage(made / f"part-{number:08d}.parquet")
    read: list[RowRange] = []
    usual = RowRange.read
    monkeypatch.setattr(RowRange, "read", lambda self: read.append(self) or usual(self))
    found = count(paths, counter, "out/", resume=True)
    assert files_in(whole.output) == files_in(found.output) and found.summary == whole.summary
    assert found.resumed_blocks >= 3
    assert len(read) == -(-found.rows // 16) - found.resumed_blocks + 2


def _damaged(path: Path) -> None:
    status, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_an_input_whose_times_were_set_back_is_noticed(inputs: Any, counter: PathCounter) -> None:
    paths = inputs("parquet")
    rows = pq.read_table(paths[0])
    pq.write_table(rows, paths[0], compression="none", use_dictionary=False)
    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out/", progress=stopped(48))
    status = paths[0].stat()
    pq.write_table(
        rows.take(list(range(len(rows)))[::-1]), paths[0], compression="none", use_dictionary=False
    )
    os.utime(paths[0], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert paths[0].stat().st_size == status.st_size
    with pytest.raises(InvalidInput, match="another content of records 0 to 15"):
        count(paths, counter, "out/", resume=True)


def test_another_cut_is_another_run(inputs: Any, counter: PathCounter) -> None:
    paths = inputs("tsv")
    with pytest.raises(KeyboardInterrupt):
        count(paths, counter, "out/", progress=stopped(48))
    for parts in (PartSettings(None, 32), PartSettings("v_call", 16)):
        with pytest.raises(InvalidInput, match="a checkpoint of another run"):
            count_files(paths, f"{paths[0].parent}/out/", counter, parts=parts, resume=True)
    found = count(paths, counter, "out/", resume=True)
    assert found.resumed_blocks >= 3


def test_a_worker_that_has_another_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    size = path.stat().st_size
    rows = RowRange(((str(path), 0, 2),), pa.schema([("n", pa.int64())]))
    assert RowPart(0, 0, rows, ([size],)).read().rows[0].num_rows == 2
    with pytest.raises(FormatError, match=f"{size:,} bytes where a worker reads it") as caught:
        RowPart(0, 0, rows, ([size + 1],)).read()
    assert caught.value.path == str(path)


class Scheduler:
    """A scheduler and a worker, as a batch system starts them."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        place = ["--scheduler-file", str(self.file)]
        self._processes = [
            self._started("dask_scheduler", *place, "--no-dashboard", "--host", "127.0.0.1", "--port", "0"),
            self._started("dask_worker", *place, "--no-nanny", "--nthreads", "1"),
        ]

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate(timeout=300)

    def _started(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )

    def wait(self) -> None:
        """Until the scheduler has written its address."""
        for _ in range(3000):
            if self.file.exists() and self.file.read_text().rstrip().endswith("}"):
                return
            subprocess.run(["sleep", "0.1"], check=True)
        raise TimeoutError(self.file)


def _ending(cluster: Scheduler) -> Callable[[DaskExecutor], None]:
    return lambda executor: cluster.end()


@pytest.mark.filterwarnings("ignore:the cluster has no worker yet:UserWarning")
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_scheduler_is_started_again(
    runs: dict[str, Run],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    whole = runs[command](f"{tmp_path}/whole/")
    found: list[Any] = []
    for resume in (False, True):
        cluster = Scheduler(tmp_path_factory.mktemp("cluster"))
        cluster.wait()
        if not resume:
            striking(monkeypatch, {1: _ending(cluster)})
        try:
            with DaskExecutor(scheduler_file=cluster.file) as executor:
                found.append(runs[command](f"{tmp_path}/out/", executor=executor, resume=resume))
        except TargetUnavailable as error:
            assert not resume and "--resume" in error.fix
        finally:
            cluster.end()
    assert len(found) == 1 and found[0].resumed_blocks >= 1
    assert files_in(whole.output) == files_in(found[0].output)


@pytest.mark.slow
def test_tasks_have_names(inputs: Any, counter: PathCounter, dask_cluster: DaskExecutor) -> None:
    paths = inputs("parquet")
    count(paths, counter, "out/", executor=dask_cluster)
    story: Any = dask_cluster._client.run_on_scheduler(
        lambda dask_scheduler: list(dask_scheduler.task_prefixes)
    )
    assert "BlockCounter" in story


@pytest.mark.slow
def test_totals_survive_a_checkpoint() -> None:
    counts = CountSummary(statuses=Counter({"ok": 3, "no_junction": 1}))
    counts.blamed.blame("unknown_v_call", {"V9": 2})
    counts.causes.lengths.update({33: 4, 36: 1})
    counts._rows["v", "V1"] += 3
    pgen = PgenTotals({"nt": PgenSummary(statuses=Counter(ok=2), called=2), "aa": PgenSummary()})
    pgen["nt"]._bins[4] += 7
    empties: list[Any] = [CountSummary(), PgenTotals({"nt": PgenSummary(), "aa": PgenSummary()})]
    for totals, empty in zip([counts, pgen], empties, strict=True):
        found = restored_state(empty, json.loads(json.dumps(state_of(totals))))
        assert type(found) is type(totals)
        assert state_of(found) == state_of(totals)
        found.merge(totals)
    # A checkpoint has them for every part.
    assert len(json.dumps(state_of(pgen))) < 2000
    assert found["nt"]._bins[4] == 14 and isinstance(found["nt"].blamed, BlamedCalls)


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """A bucket on a server of this machine."""
    servers = pytest.importorskip(
        "moto.server", reason="moto is not installed: pip install 'moto[server,s3]'"
    )
    import boto3

    server = servers.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    told = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="bucket")
        yield "s3://bucket"
    server.stop()


@pytest.mark.slow
def test_a_store(
    inputs: Any, counter: PathCounter, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = inputs("parquet")
    monkeypatch.chdir(tmp_path)
    whole = count(paths, counter, "whole/")
    there = f"{store}/a/out/"
    with pytest.raises(KeyboardInterrupt):
        count_files(paths, there, counter, parts=PARTS, progress=stopped(48))
    with pytest.raises(FormatError, match="a dataset that is not finished"):
        count_files([there], tmp_path / "back.parquet", counter)
    with pytest.raises(InvalidInput, match="which another run is writing, or has left unfinished"):
        count_files(paths, there, counter, parts=PARTS)
    found = count_files(paths, there, counter, parts=PARTS, resume=True)
    assert found.resumed_blocks >= 3 and found.output == there
    back = count_files([Path(there)], tmp_path / "back.parquet", counter)
    assert back.rows == 100
    given = table(whole.output)
    assert (
        table(back.output).select(["junction", "path_count"]).equals(given.select(["junction", "path_count"]))
    )
    with pytest.raises(InvalidInput, match="which holds a dataset"):
        count_files(paths, there, counter, parts=PARTS)
    from plait.formats.datasets import folder_at

    folder = folder_at(there)
    assert {name: folder.read(name) for name in folder.sizes()} == files_in(whole.output)
    folder.remove("part-00000003.parquet")
    with pytest.raises(FormatError, match=r"part-00000003\.parquet: .*no such file"):
        count_files([there], tmp_path / "back.parquet", counter)
    with pytest.raises(FormatError, match="a store that answers and lets you in"):
        count_files(paths, "s3://nobodys-bucket/out/", counter, parts=PARTS)
    with pytest.raises(FormatError, match="no such file"):
        count_files([f"{store}/nothing.parquet"], tmp_path / "back.parquet", counter)


@pytest.mark.slow
def test_a_store_that_stops_answering(
    inputs: Any, counter: PathCounter, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from plait.formats import datasets

    paths = inputs("parquet")
    monkeypatch.chdir(tmp_path)
    whole = count(paths, counter, "whole/")
    plain, there = datasets._RemoteFolder.put, f"{store}/b/out/"

    def put(self: Any, name: str, content: Any) -> None:
        where = "s3://nobodys-bucket" if name == "part-00000004.parquet" else self._address
        plain(datasets._RemoteFolder(where), name, content)

    monkeypatch.setattr(datasets._RemoteFolder, "put", put)
    with pytest.raises(FormatError, match="nobodys-bucket"):
        count_files(paths, there, counter, parts=PARTS, threads=1)
    monkeypatch.setattr(datasets._RemoteFolder, "put", plain)
    with pytest.raises(FormatError, match="a dataset that is not finished"):
        count_files([there], tmp_path / "back.parquet", counter)
    found = count_files(paths, there, counter, parts=PARTS, resume=True)
    assert found.resumed_blocks >= 3
    folder = datasets.folder_at(there)
    assert {name: folder.read(name) for name in folder.sizes()} == files_in(whole.output)


@pytest.mark.slow
def test_addresses_that_nobody_opens(inputs: Any, counter: PathCounter) -> None:
    with pytest.raises(InvalidInput, match=r"^path: found 'hdfs://nowhere:1/out' \("):
        count_files(inputs("tsv"), "hdfs://nowhere:1/out/", counter)
