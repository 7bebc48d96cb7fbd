"""What a machine offers as text: what can be used, and what to do about the rest.

Beside its command, because commands have no logic.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plait._version import __version__
from plait.devices.cuda_target import trial
from plait.devices.driver import DriverDevice, device_problem, driver_release, free_bytes, probe, usable
from plait.devices.target import devices_of
from plait.errors import InvalidInput
from plait.reports.plain_text import aligned, as_options
from plait.settings import cache_directory, thread_count

#: Packages that the extras for users bring.
EXTRAS = {
    "cluster": ("distributed",),
    "cuda13": ("numba-cuda",),
    "demo": ("pyimmunarch",),
    "fast": ("isal",),
    "hsi": ("netCDF4", "numcodecs", "rasterio", "spectral", "xarray", "zarr"),
    "anndata": ("anndata",),
    "models": ("righor",),
    "mpi": ("mpi4py",),
    "report": ("jinja2", "vl-convert-python"),
}
_CORE = ("numba", "llvmlite", "numpy", "pyarrow")
_LIBRARIES = ("numba-cuda", "cuda-bindings", "cuda-core", "nvidia-nvvm", "nvidia-nvjitlink")
#: Instruction sets that decide how fast plait is.
_TOLD = ("avx2", "avx512bw", "avx512vbmi", "neon", "sve")


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """The folder of compiled code: its files, their bytes, and why nothing can be kept there, or empty."""

    path: str
    entries: int
    bytes: int
    problem: str


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A GPU, named as for ``--device``; memory in bytes.

    `problem`: why it cannot be used, or empty.
    """

    name: str
    model: str
    capability: str
    multiprocessors: int
    memory: int
    free: int | None
    problem: str


@dataclass(frozen=True, slots=True)
class CudaFacts:
    """CUDA on this machine: whether ``--device cuda`` works, or why not and what to do.

    `driver` is its release, `serves` the newest version of CUDA that it serves, where known; `libraries` are
    versions of what is installed of those that compile kernels; `devices` are all GPUs that this process may
    see.
    """

    usable: bool
    problem: str
    fix: str
    driver: str | None
    serves: str | None
    libraries: dict[str, str]
    devices: tuple[DeviceFacts, ...]


@dataclass(frozen=True, slots=True)
class ExtraFacts:
    """An extra, as in ``pip install 'plait[NAME]'``: versions of its packages found, and those missing."""

    name: str
    found: dict[str, str]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """What `examine` has found.

    `packages` are versions of what the core needs, None where one is missing; `features` the instruction sets
    that matter; `threads` what plait takes by default, `threads_problem` what is wrong with the setting.
    """

    plait: str
    folder: str
    python: str
    system: str
    packages: dict[str, str | None]
    processor: str
    vector_bits: int
    features: tuple[str, ...]
    processors: int
    threads: int | None
    threads_problem: str
    cache: CacheFacts
    cuda: CudaFacts
    extras: tuple[ExtraFacts, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionaries, ready for JSON."""
        return asdict(self)


def examine(*, try_devices: bool = True) -> Machine:
    """Find out what this machine offers.

    `try_devices` runs a small kernel on every GPU that looks usable; that takes a few seconds.
    """
    from plait.lang.compile import host_features, host_vector_bits

    features = host_features()
    threads: int | None = None
    threads_problem = ""
    try:
        threads = thread_count()
    except InvalidInput as wrong:
        threads_problem = str(wrong)
    return Machine(
        plait=__version__,
        folder=str(Path(__file__).parents[1]),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        packages={name: _version(name) for name in _CORE},
        processor=_processor(),
        vector_bits=host_vector_bits(),
        features=tuple(name for name in _TOLD if features.get(name)),
        processors=os.cpu_count() or 1,
        threads=threads,
        threads_problem=threads_problem,
        cache=_cache(cache_directory()),
        cuda=_cuda(try_devices),
        extras=tuple(_extra(name, packages) for name, packages in EXTRAS.items()),
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cache(folder: Path) -> CacheFacts:
    problem = ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error}); PLAIT_CACHE_DIR names another folder"
    sizes = []
    for path in folder.rglob("*") if folder.is_dir() else ():
        try:
            if path.is_file():
                sizes.append(path.stat().st_size)
        except OSError:
            # Another process may be cleaning up.
            continue
    return CacheFacts(str(folder), len(sizes), sum(sizes), problem)


def _cuda(try_devices: bool) -> CudaFacts:
    facts, able = probe(), usable()
    devices = tuple(_device(device, able.ok and try_devices) for device in facts.devices)
    problem, fix = able.reason, able.fix
    if able.ok and devices:
        # The one that is taken where none is named.
        first = devices[devices_of("cuda", facts)[0]]
        others = [f"device={device.name!r}" for device in devices if not device.problem]
        problem = first.problem and f"{first.name}: {first.problem}"
        instead = " or ".join([*others, "device='cpu'"])
        fix = f"use {instead}, and see the page on GPUs" if problem else ""
    return CudaFacts(
        usable=not problem,
        problem=problem,
        fix=fix,
        driver=driver_release() if facts.version else None,
        serves=".".join(map(str, facts.version)) if facts.version else None,
        libraries={name: found for name in _LIBRARIES if (found := _version(name)) is not None},
        devices=devices,
    )


def _device(device: DriverDevice, try_it: bool) -> DeviceFacts:
    problem = device_problem(device)
    if try_it and not problem:
        problem = trial(device.number)
    return DeviceFacts(
        f"cuda:{device.number}",
        device.name,
        ".".join(map(str, device.capability)),
        device.multiprocessors,
        device.memory,
        free_bytes(device.uuid),
        problem,
    )


def _extra(name: str, packages: tuple[str, ...]) -> ExtraFacts:
    versions = {package: _version(package) for package in packages}
    found = {package: version for package, version in versions.items() if version is not None}
    return ExtraFacts(name, found, tuple(package for package in packages if package not in found))


_GIB = 2**30


def doctor_text(machine: Machine) -> str:
    """What was found, in lines that fit a terminal."""
    lines = [f"plait {machine.plait}", "", *aligned(_rows(machine), "<<", indent=0)]
    if machine.cuda.devices:
        lines += ["", *aligned(_devices(machine.cuda), "<<>>>>", indent=0)]
    problems = [
        as_options(f"{device.name}: {device.problem}") for device in machine.cuda.devices if device.problem
    ]
    if problems:
        lines += ["", *aligned([[problem] for problem in problems], "<", indent=0)]
    lines += ["", *aligned(_verdicts(machine.cuda), "<<", indent=0)]
    return "\n".join(lines) + "\n"


def _rows(machine: Machine) -> list[list[str]]:
    features = f" ({', '.join(machine.features)})" if machine.features else ""
    threads = machine.threads_problem or f"{machine.threads} of {machine.processors} processors"
    cache = machine.cache
    kept = cache.problem or f"{cache.entries:,} files, {cache.bytes / 2**20:,.1f} MiB"
    rows = [
        ["folder", machine.folder],
        ["Python", machine.python],
        ["system", machine.system],
        ["packages", ", ".join(f"{name} {found or 'missing'}" for name, found in machine.packages.items())],
        ["processor", machine.processor],
        ["vectors", f"{machine.vector_bits} bits{features}"],
        ["threads", threads],
        ["cache", f"{cache.path}: {kept}"],
    ]
    for extra in machine.extras:
        found = ", ".join(f"{name} {version}" for name, version in extra.found.items())
        missing = f"not installed: {', '.join(extra.missing)}" if extra.missing else ""
        rows.append([f"[{extra.name}]", "; ".join(part for part in (found, missing) if part)])
    cuda = machine.cuda
    if cuda.serves is not None:
        rows.append(["driver", f"{cuda.driver or 'unknown release'}, for CUDA up to {cuda.serves}"])
    if cuda.libraries:
        told = ", ".join(f"{name} {version}" for name, version in cuda.libraries.items())
        rows.append(["CUDA", told])
    return rows


def _devices(cuda: CudaFacts) -> list[list[str]]:
    rows = [["device", "model", "capability", "multiprocessors", "GiB", "free"]]
    for device in cuda.devices:
        free = "-" if device.free is None else f"{device.free / _GIB:,.1f}"
        memory = f"{device.memory / _GIB:,.1f}"
        rows.append([device.name, device.model, device.capability, str(device.multiprocessors), memory, free])
    return rows


def _verdicts(cuda: CudaFacts) -> list[list[str]]:
    """Each name for ``--device``, and whether it works."""
    told = as_options(f"no: {cuda.problem}; {cuda.fix}")
    usable = [device.name for device in cuda.devices if not device.problem]
    if cuda.usable:
        told = f"yes: {', '.join(usable)}"
    auto = usable[0] if cuda.usable else "cpu"
    return [
        ["--device cpu", "yes"],
        ["--device cuda", told],
        ["--device auto", f"means {auto}"],
    ]
