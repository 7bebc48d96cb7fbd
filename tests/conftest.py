"""What every test may use: hypothesis profiles, the lanes of tests and their markers, the shared data."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib.util
import os
import random
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from plait.run.dask import DaskExecutor

# No deadline: the first example of a test may compile a kernel. Few random cases in every run, always others
# but in continuous integration; many in `make test-all`. `support.examples` is for tests that say how many.
_SLOW = [HealthCheck.too_slow]
settings.register_profile("dev", max_examples=8, deadline=None)
settings.register_profile(
    "ci", max_examples=8, deadline=None, derandomize=True, print_blob=True, suppress_health_check=_SLOW
)
settings.register_profile(
    "full", max_examples=75, deadline=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# A million objects stay as long as a worker: going through them took a tenth of the time.
gc.set_threshold(50_000, 20, 100)

_REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-gpu",
        action="store_true",
        help="a skipped gpu test is a failure, for runs on a machine that must have a device",
    )
    parser.addoption(
        "--without-interpreted",
        action="store_true",
        help="leave out tests marked interpreted(alone=True), which run with the compiler off",
    )
    parser.addoption(
        "--few-specialisations",
        action="store_true",
        help="a kernel that was asked for too many combinations of types is a failure",
    )
    parser.addoption(
        "--kernels",
        choices=["all", "changed", "record"],
        default="all",
        help="tests of CUDA kernels: all; those of changed sources; or all, and keep what passes",
    )


def simulated() -> bool:
    """Whether CUDA kernels run in Numba's simulator."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "").strip() not in ("", "0")


def missing_simulator() -> str | None:
    """Why CUDA kernels cannot be simulated here, or None when they are."""
    if not simulated():
        return "runs in the CUDA simulator: make cuda, or NUMBA_ENABLE_CUDASIM=1"
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is not installed: pip install 'plait[cuda13]'"
    return None


def missing_gpu() -> str | None:
    """Why there is no usable device, or None when there is one."""
    if simulated():
        return "CUDA kernels are simulated in this run (NUMBA_ENABLE_CUDASIM)"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"no CUDA driver: {error}"
    status = driver.cuInit(0)
    if status != 0:
        return f"the CUDA driver does not start (cuInit returned {status})"
    devices = ctypes.c_int(0)
    status = driver.cuDeviceGetCount(ctypes.byref(devices))
    if status != 0 or devices.value < 1:
        return f"the CUDA driver reports no device (cuDeviceGetCount returned {status})"
    from plait.devices.driver import usable

    able = usable()
    return None if able.ok else f"{able.reason}; {able.fix}"


class _Called:
    """Entry points for compiled code that the test under way has called, while the compiler is off."""

    names: set[str] = set()  # noqa: RUF012  # one for the process


def _watch_kernels() -> None:
    from plait.lang import compile as _jit

    def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            _Called.names.add(function.__name__)
            return function(*arguments)

        # Asked for where the definition itself is meant.
        call.py_func = function  # type: ignore[attr-defined]
        return call

    _jit.kernel = kernel  # type: ignore[assignment]


def _without_compiler() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0")


def _alone(item: pytest.Item) -> bool:
    """Whether a test runs nothing that can be compiled, so that once is enough."""
    return any(marker.kwargs.get("alone", False) for marker in item.iter_markers("interpreted"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """With the compiler off, find tests that have to run with it as well, but are said not to."""
    _Called.names.clear()
    yield
    if _without_compiler() and _alone(item) and _Called.names:
        pytest.fail(f"it calls {', '.join(sorted(_Called.names))}, so it cannot be interpreted(alone=True)")


def pytest_configure(config: pytest.Config) -> None:
    if _without_compiler():
        _watch_kernels()
    else:
        from support.specialisations import Specialisations

        gate = config.getoption("--few-specialisations")
        config.pluginmanager.register(Specialisations(gate), "specialisations")
    if missing_simulator() is None:
        from support.simulator import quicken

        quicken()
    if config.getoption("--kernels") == "record":
        from support.cuda_passed import Recorder

        config.pluginmanager.register(Recorder(simulated=missing_simulator() is None), "cuda-passed")


@functools.cache
def _left_out(config: pytest.Config) -> dict[str, int]:
    """Files of simulator tests that need not run, with their numbers of tests; those that are named do."""
    if config.getoption("--kernels") != "changed" or config.option.file_or_dir or not simulated():
        return {}
    from support.cuda_passed import unchanged

    return unchanged()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let files whose kernels are made of the same bodies go to one worker, where anything is compiled."""
    if config.getvalue("dist") != "loadfile" or _without_compiler() or simulated():
        return None
    from support.families import FamilyScheduling

    return FamilyScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No worker, which would import everything, where all tests of the simulator are left out."""
    from support.cuda_passed import kept

    left = _left_out(config)
    return 0 if left and left.keys() == kept().simulated.keys() else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In a lane of one marker, import no file of tests that does not name it, or that need not run."""
    if collection_path in {_REPOSITORY / name for name in _left_out(config)}:
        return True
    for lane in ("interpreted", "cuda_simulator"):
        if config.option.markexpr.startswith(lane) and collection_path.name.startswith("test_"):
            return lane not in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_report_header(config: pytest.Config) -> str | None:
    """The devices, where tests may run on them."""
    if simulated():
        return "cuda: simulated"
    if missing_gpu() is not None:
        return None
    from plait.devices.driver import probe

    facts = probe()
    told = ", ".join(f"{d.number}: {d.name} ({d.capability[0]}.{d.capability[1]})" for d in facts.devices)
    return f"cuda: {told}; driver for CUDA {'.'.join(map(str, facts.version or ()))}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests of the simulator were left out."""
    if left := _left_out(config):
        told = f"{sum(left.values())} simulator tests of {len(left)} files"
        terminalreporter.write_line(
            f"left out: {told}, of whose sources nothing has changed since they passed"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """That every test was left out is no failure."""
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and _left_out(session.config):
        session.exitstatus = pytest.ExitCode.OK


def _leave_out_unchanged(config: pytest.Config, items: list[pytest.Item]) -> None:
    from support.cuda_passed import kept

    digests = kept().digests
    marked = [(item, item.get_closest_marker("made_of")) for item in items]
    out = [item for item, marker in marked if marker and digests.get(item.nodeid) == marker.args[0]]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what has no device; a test with both markers runs on either one."""
    if config.getoption("--without-interpreted"):
        config.hook.pytest_deselected(items=[item for item in items if _alone(item)])
        items[:] = [item for item in items if not _alone(item)]
    if config.getoption("--kernels") == "changed":
        _leave_out_unchanged(config, items)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    small = [item for item in items if item.get_closest_marker("cuda_simulator")]
    on_device = missing_gpu() if marked else None
    in_simulator = missing_simulator() if small else None
    for item in marked:
        if on_device and (item not in small or in_simulator):
            item.add_marker(pytest.mark.skip(reason=on_device))
    for item in small:
        if in_simulator and item not in marked:
            item.add_marker(pytest.mark.skip(reason=in_simulator))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.get_closest_marker("gpu") and item.config.getoption("--require-gpu"):
        report.outcome = "failed"
        report.longrepr = f"skipped under --require-gpu: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root folder of the source tree."""
    return _REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the large real data sets, which are no part of the repository."""
    named = os.environ.get("PLAIT_SHARED_DATA")
    folder = Path(named) if named else _REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(reason=f"the shared data sets are not at {folder} (PLAIT_SHARED_DATA names their folder)")
    return folder


# Its processes start in two seconds of processor, and idle for as much in every half minute.
@pytest.fixture(scope="module")
def dask_cluster() -> Iterator[DaskExecutor]:
    """Two worker processes; tests that kill one of them get another."""
    from plait.run.dask import DaskExecutor

    with DaskExecutor(workers=2) as executor:
        yield executor


@pytest.fixture
def dask_address(dask_cluster: DaskExecutor) -> Iterator[str]:
    """The address of their scheduler, for commands that come from outside, which have the key of its run."""
    import dask

    key = dask_cluster._client.security
    settings = {
        "ca-file": key.tls_ca_file,
        "client.cert": key.tls_client_cert,
        "client.key": key.tls_client_key,
    }
    with dask.config.set({f"distributed.comm.tls.{name}": text for name, text in settings.items()}):
        yield dask_cluster.address


@pytest.fixture(scope="module")
def few_draws() -> Iterator[None]:
    """Studies expect sharing from a tenth of the draws, most of what they compute at small sizes."""
    from plait.vdj import GenerationSettings

    with pytest.MonkeyPatch.context() as patch:
        settings = functools.partial(GenerationSettings, draws=20_000)
        patch.setattr("plait.vdj.convergence.public_clonotypes.GenerationSettings", settings)
        yield


@pytest.fixture(scope="session")
def mouse_rows() -> Callable[..., dict[str, list[str]]]:
    """Columns of a drawn mouse TRB repertoire: ``mouse_rows(n, seed=0)``."""
    from plait.vdj.germline import load_germline

    germline = load_germline("mouse_trb")
    ends = {a.name: a.cdr3_end for a in germline.alleles() if a.cdr3_end}
    v_names, j_names = [a.name for a in germline.v], [a.name for a in germline.j]

    def draw(n: int, seed: int = 0) -> dict[str, list[str]]:
        rng = random.Random(seed)
        columns: dict[str, list[str]] = {name: [] for name in ("junction", "v_call", "j_call", "subject_id")}
        for _ in range(n):
            v, j, d = rng.choice(v_names), rng.choice(j_names), rng.choice(germline.d).sequence
            start, size = rng.randrange(4), rng.randrange(3, 9)
            parts = [
                ends[v][: -rng.randrange(1, 6)],
                "".join(rng.choices("ACGT", k=rng.randrange(6))),
                d[start : start + size],
                "".join(rng.choices("ACGT", k=rng.randrange(6))),
                ends[j][rng.randrange(6) :],
            ]
            columns["junction"].append("".join(parts))
            columns["v_call"].append(v)
            columns["j_call"].append(j.partition("*")[0])
            columns["subject_id"].append(f"s{rng.randrange(4)}")
        return columns

    return draw


@pytest.fixture
def inputs(tmp_path: Path, mouse_rows: Any) -> Callable[[str], list[Path]]:
    """Two tables of 100 rows in all, as Parquet with row groups of other lengths than blocks, or as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(kind: str) -> list[Path]:
        paths = []
        for name, rows in (("a", mouse_rows(61, seed=1)), ("b", mouse_rows(39, seed=2))):
            path = tmp_path / f"{name}.{kind}"
            if kind == "parquet":
                pq.write_table(pa.table(rows), path, row_group_size=25)
            else:
                lines = ["\t".join(rows), *map("\t".join, zip(*rows.values(), strict=True))]
                path.write_text("\n".join(lines) + "\n")
            paths.append(path)
        return paths

    return write


@pytest.fixture(scope="module")
def counter() -> Any:
    """Counts with the alleles of mouse TRB."""
    from plait.vdj import PathCounter

    return PathCounter("mouse_trb", device="cpu", threads=1)
