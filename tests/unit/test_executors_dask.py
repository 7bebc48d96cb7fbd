"""The executor of Dask clusters, on real worker processes: order, bounds, and all that can go wrong."""

from __future__ import annotations

import os
import platform
import resource
import signal
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import dask
import numpy as np
import pyarrow as pa
import pytest

from plait.errors import FormatError, InvalidInput, PlaitError, TargetUnavailable, TaskFailed
from plait.run.dask import Call, DaskExecutor, own_sources, packed

# Workers cannot import this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

GLIBC = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is kept with glibc alone")
#: Seconds after which a test fails that waits for another process.
PATIENCE = 300


def double(number: int) -> tuple[int, int]:
    return 2 * number, os.getpid()


def first_of_all(marker: Path) -> bool:
    """Whether no other process has asked before."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def names(number: int) -> str:
    return f"number {number}"


def test_results_come_in_order_and_batches_as_needed(dask_cluster: DaskExecutor) -> None:
    read: list[int] = []

    def batches() -> Iterator[int]:
        for number in range(200):
            read.append(number)
            yield number

    results = dask_cluster.map(double, batches())
    assert next(results)[0] == 0
    assert len(read) <= 2 * dask_cluster.slots
    rest = list(results)
    assert [found for found, _ in rest] == list(range(2, 400, 2))
    assert os.getpid() not in {process for _, process in rest}
    assert dask_cluster.elsewhere and dask_cluster.slots == 2


def addresses(number: int) -> tuple[str, str]:
    from distributed import get_worker

    return get_worker().address, get_worker().local_directory


@pytest.mark.parametrize("key", ["none", "another run's"])
def test_nobody_without_the_key_is_let_in(dask_cluster: DaskExecutor, key: str) -> None:
    import distributed

    (worker, folder), *_ = dask_cluster.map(addresses, range(1))
    for address in (dask_cluster.address, worker):
        assert address.startswith("tls://127.0.0.1:")
        security = None if key == "none" else distributed.Security.temporary()
        place = address.replace("tls://", "tcp://") if key == "none" else address
        with pytest.raises(OSError):
            distributed.Client(place, security=security, timeout=5, set_as_default=False)
    assert stat.S_IMODE(Path(folder).parents[1].stat().st_mode) == 0o700
    assert [found for found, _ in dask_cluster.map(double, range(3))] == [0, 2, 4]


@pytest.mark.parametrize(
    "address", ["", "nonsense", "tcp://", "inproc://x:1", "tcp://h:99999", "tcp://h:x", "tcp://[::1"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InvalidInput, match="expected an address as tcp://host:8786"):
        DaskExecutor(scheduler=address).__enter__()


def test_a_scheduler_with_certificates_and_none_here() -> None:
    told = pytest.raises(TargetUnavailable, match="yours are set if it has certificates")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), told:
        DaskExecutor(scheduler="tls://127.0.0.1:9").__enter__()


def test_without_the_library_that_makes_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(TargetUnavailable, match=r"requires `cryptography`.*pip install 'plait\[cluster\]'"):
        DaskExecutor(workers=1).__enter__()


def test_no_page_is_served(dask_cluster: DaskExecutor) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(dask_cluster._client.dashboard_link.rpartition("/")[0] + "/health")


def test_what_is_not_taken_is_not_computed(dask_cluster: DaskExecutor, tmp_path: Path) -> None:
    results = dask_cluster.map(lambda n: (tmp_path / str(n)).touch(), range(1000))
    next(results)
    results.close()
    assert len(list(tmp_path.iterdir())) < 100
    assert [found for found, _ in dask_cluster.map(double, range(3))] == [0, 2, 4]


def test_a_slice_travels_alone() -> None:
    batch = pa.record_batch({"text": pa.array(["x" * 100] * 10_000)})
    assert len(packed([batch.slice(5000, 2)])) < 2000


def test_a_function_is_unpickled_once_in_a_process(dask_cluster: DaskExecutor) -> None:
    class Counting:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, number: int) -> tuple[int, int]:
            self.calls += 1
            return os.getpid(), self.calls

    found = list(dask_cluster.map(Counting(), range(20)))
    for process in {process for process, _ in found}:
        calls = [number for one, number in found if one == process]
        assert sorted(calls) == list(range(1, len(calls) + 1))


def new_pages(number: int) -> tuple[int, int]:
    """The process, and pages that it takes from the kernel for 3 MiB, which are 768 of the usual size."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert len(bytearray(3 << 20)) == 3 << 20
    return os.getpid(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@GLIBC
def test_workers_keep_pages_for_the_next_batch(dask_cluster: DaskExecutor) -> None:
    found = list(dask_cluster.map(new_pages, range(20)))
    for process in {process for process, _ in found}:
        assert min(pages for one, pages in found if one == process) < 100


@GLIBC
def test_memory_of_the_c_library_is_not_given_back_after_a_batch() -> None:
    program = (
        "import pickle, sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_executors_dask as own\n"
        "call = own.Call(own.packed(own.new_pages), own.packed(0), own.own_sources())\n"
        "print(min(pickle.loads(call())[1] for _ in range(5)))"
    )
    kept = {"MALLOC_TRIM_THRESHOLD_": "268435456", "MALLOC_MMAP_THRESHOLD_": "33554432"}
    run = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        env=os.environ | kept | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) < 100


def test_a_worker_killed_in_mid_task(dask_cluster: DaskExecutor, tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number == 3 and first_of_all(tmp_path / "killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    assert list(dask_cluster.map(work, range(12))) == [number * number for number in range(12)]
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_a_worker_killed_with_finished_results(dask_cluster: DaskExecutor, tmp_path: Path) -> None:
    results = dask_cluster.map(double, range(40))
    found = [next(results)]
    os.kill(found[0][1], signal.SIGKILL)
    found += results
    assert [number for number, _ in found] == list(range(0, 80, 2))


def test_a_task_that_fails_once(dask_cluster: DaskExecutor, tmp_path: Path) -> None:
    def work(number: int) -> int:
        if first_of_all(tmp_path / str(number)):
            raise OSError("the file system was away")
        return number

    assert list(dask_cluster.map(work, range(4))) == [0, 1, 2, 3]


def test_a_task_that_always_fails(dask_cluster: DaskExecutor, tmp_path: Path) -> None:
    def work(number: int) -> int:
        if number == 2:
            tries = len(list(tmp_path.iterdir()))
            (tmp_path / str(tries)).touch()
            raise ArithmeticError("no such number")
        return number

    results = dask_cluster.map(work, range(10), named=names)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(TaskFailed, match="number 2 failed: ArithmeticError: no such number") as caught:
        next(results)
    assert caught.value.task == "number 2" and caught.value.unexpected
    assert isinstance(caught.value.__cause__, ArithmeticError)
    assert len(list(tmp_path.iterdir())) == 2


def test_an_error_of_plait_arrives_whole(dask_cluster: DaskExecutor) -> None:
    def work(number: int) -> int:
        raise FormatError("in.tsv", line=7, found="nothing", expected="something", hint="look")

    with pytest.raises(FormatError, match="line 7") as caught:
        list(dask_cluster.map(work, [1], named=names))
    assert (caught.value.path, caught.value.line, caught.value.hint) == ("in.tsv", 7, "look")
    assert caught.value.__notes__ == ["in number 1"]


def test_an_error_that_cannot_be_sent(dask_cluster: DaskExecutor) -> None:
    class Odd(Exception):
        def __init__(self, a: int, b: int) -> None:
            self.lock = threading.Lock()
            super().__init__("odd")

    def work(number: int) -> int:
        raise Odd(1, 2)

    with pytest.raises(TaskFailed, match=r"number 5 failed: .*odd"):
        list(dask_cluster.map(work, [5], named=names))


@pytest.mark.parametrize("error", [
    InvalidInput("a", found=1, expected="b"),
    TargetUnavailable("dask", reason="a", fix="b"),
    TaskFailed("a", reason="b", fix="c"),
])  # fmt: skip
def test_errors_are_picklable(error: PlaitError) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


def test_another_plait_on_a_worker() -> None:
    call = Call(packed(double), packed(1), "0.0.1 (abc)")
    with pytest.raises(TargetUnavailable, match=r"has plait .*, this process has 0.0.1 \(abc\)"):
        call()
    assert Call(packed(len), packed("ab"), own_sources())() == packed(2)


@pytest.fixture(scope="module")
def small_worker() -> Iterator[DaskExecutor]:
    """One worker of little memory; its first death is its last."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        DaskExecutor(workers=1, worker_memory="512MiB") as executor,
    ):
        yield executor


@pytest.mark.slow
def test_a_task_that_kills_every_worker(small_worker: DaskExecutor) -> None:
    def work(number: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(TaskFailed, match="number 1 failed: the worker died on it") as caught:
        list(small_worker.map(work, [1], named=names))
    assert "memory limit of 512 MiB" in caught.value.reason and not caught.value.unexpected


@pytest.mark.slow
def test_the_memory_limit(small_worker: DaskExecutor) -> None:
    def work(number: int) -> int:
        taken = np.ones(80 << 20)
        threading.Event().wait(PATIENCE)
        return taken.size

    with pytest.raises(TaskFailed, match="the worker reached the memory limit of 512 MiB") as caught:
        list(small_worker.map(work, [4], named=names))
    assert caught.value.task == "number 4" and "--worker-memory" in caught.value.fix
    # The worker is started anew, and serves.
    assert [found for found, _ in small_worker.map(double, [1])] == [2]
