"""What a machine offers as text: what can be used, and what to do about the rest."""

from __future__ import annotations

from plait.reports.plain_text import aligned, as_options
from plait.targets.machine import CudaFacts, Machine

__all__ = ["doctor_text"]

_GIB = 2**30


def doctor_text(machine: Machine) -> str:
    """Lines that fit a terminal.

    Parameters
    ----------
    machine
        What was found.
    """
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
