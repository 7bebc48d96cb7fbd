"""Build a wheel with the machine code of kernels, with which commands compile nothing.

For every level of processors (`plait.lang.compile.LEVELS`) that this machine can run, the golden command
lines and some more are run, compiled for that level; what the former write has to be golden. The kernels that
they have used go into the wheel: what a command line needs is found out by running it.

    python tools/build_wheel.py            # dist/plait-VERSION-cp3xx-none-manylinux_2_17_MACHINE.whl
    python tools/build_wheel.py --pure     # without machine code, for any platform
    python tools/build_wheel.py --list     # src/plait/lang/specialisations.json: what commands use, no wheel

Objects of levels that this machine cannot run are made on another one, and its build/objects copied here.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.used_kernels import as_listed, command_of, used_kernels

from plait.cli import main as cli_main
from plait.lang import ahead, native
from plait.lang.compile import LEVELS, compiled_cache, host_levels, shipped_folder
from plait.settings import thread_count

HERE = Path(__file__).resolve().parents[1]
GOLDEN = HERE / "tests" / "golden" / "make_command_outputs.py"
#: Command lines that need more kernels than the golden ones. They read the same inputs, what was written, and
#: proteins: more_0, one; more_1 and more_2, of a length, so that they are aligned beside each other.
MORE = (
    "demo --rows 20000 -o out-more",
    "hsi decompress out-hybrid.c123 -o out-more-hybrid.npy",
    "hsi decompress out-adaptive.c123 -o out-more-adaptive.npy",
    "search nucleotides.fasta nucleotides.fasta -o out-more.m8",
    *(
        f"align {files} --mode {mode} -o out-more.tsv"
        for files in (
            "proteins.fasta --pairs all",
            "nucleotides.fasta --pairs all",
            "reads_1.fastq reads_2.fastq",
            "more_1.fasta more_2.fasta",
            "more_0.fasta more_2.fasta --pairs one",
        )
        for mode in ("local", "global", "semiglobal", "overlap", "extension")
    ),
    "align more_1.fasta more_2.fasta --mode extension --score-only -o out-more.tsv",
    "align reads_1.fastq reads_2.fastq --match 0 --mismatch -1 --gap-open 1 --gap-extend 1 -o out-more.tsv",
)


def main() -> None:
    """Make the objects, and the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=HERE / "dist", help="folder of the wheel")
    parser.add_argument("--objects", type=Path, default=HERE / "build" / "objects", help="folder of objects")
    parser.add_argument(
        "--levels", nargs="*", choices=list(LEVELS), default=host_levels(), help="those to make"
    )
    parser.add_argument("--pure", action="store_true", help="a wheel without objects")
    parser.add_argument("--list", action="store_true", help="write the list of what commands use, no wheel")
    parser.add_argument("--record", type=Path, nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    objects = chosen.objects.resolve()
    if chosen.record:
        record(*chosen.record)
    elif chosen.list:
        write_list(objects)
    else:
        for level in () if chosen.pure else chosen.levels:
            files = list(make_objects(level, objects).iterdir())
            size = sum(file.stat().st_size for file in files) / 2**20
            print(f"{level}: {len(files)} kernels, {size:.1f} MiB", flush=True)
        build(None if chosen.pure else objects, chosen.output.resolve())


def make_objects(level: str, objects: Path) -> Path:
    """Compile for a level what the command lines need, where the sources have changed; the folder of it."""
    folder = objects / shipped_folder(level).name
    run_lines(settings_of(level), objects, folder)
    return folder


def settings_of(level: str) -> dict[str, str]:
    """What tells Numba to compile for a level."""
    name, needed = LEVELS[level]
    return {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in needed)}


def write_list(objects: Path) -> None:
    """Write which kernels, of which types, each command has used, with vectors of each width."""
    kernels: dict[str, int] = {}
    sizes: dict[str, int] = {}
    commands: dict[str, dict[str, list[list[int]]]] = {}
    # Vectors of 128 bits are those of Arm, too.
    widths = {
        "512": settings_of("x86-64-v4"),
        "256": settings_of("x86-64-v3"),
        "128": {"NUMBA_ENABLE_AVX": "0"},
    }
    threads = {"PLAIT_THREADS": str(-(-thread_count() // len(widths)))}

    def lines_of(width: str) -> list[tuple[str, dict[str, int]]]:
        return run_lines(widths[width] | threads, objects, objects / f"width-{width}")

    with ThreadPoolExecutor() as pool:
        found = dict(zip(widths, pool.map(lines_of, widths), strict=True))
    for width, lines in found.items():
        commands[width] = {}
        for command, used in lines:
            sizes |= used | sizes
            numbers = [kernels.setdefault(kernel, len(kernels)) for kernel in used]
            kept = commands[width].setdefault(command, [])
            if numbers and numbers not in kept:
                kept.append(numbers)
    content = {"kernels": list(kernels), "kib": [sizes[kernel] for kernel in kernels], "commands": commands}
    text = json.dumps(content, indent=1)
    ahead.LIST.write_text(text + "\n", encoding="ascii")


def run_lines(settings: dict[str, str], objects: Path, folder: Path) -> list[tuple[str, dict[str, int]]]:
    """Run the command lines in a process with other settings of Numba; KiB of kernels that each has used."""
    cache = {"PLAIT_CACHE_DIR": str(objects / "cache")}
    with tempfile.TemporaryDirectory() as name:
        noted = Path(name) / "used.json"
        command = [sys.executable, __file__, "--record", str(folder), str(noted)]
        subprocess.run(command, env=os.environ | settings | cache, check=True)
        return [(command, used) for command, used in json.loads(noted.read_text(encoding="ascii"))]


def record(folder: Path, noted: Path) -> None:
    """Run the command lines in this process, compare what they write, and keep the kernels they have used."""
    files: dict[tuple[str, str], str] = {}
    load = native.load

    def watched(file: Path, found: native.Signature, **options: Any) -> Any:
        files[file.name.rpartition("-")[0], found.types] = file.name
        return load(file, found, **options)

    def kib(kernel: Any, types: str) -> int:
        # What only Numba can call is small.
        path = compiled_cache() / files[kernel.name, types]
        return -(-path.stat().st_size // 1024) if path.exists() else 1

    # What the list knows, in several processes; the lines compile what is not in it.
    for process in ahead.start(ahead.listed(), thread_count()):
        process.communicate()
    native.load = watched
    golden = runpy.run_path(str(GOLDEN))
    lines, wrong = [], []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "run"
        shutil.copytree(golden["INPUTS"], place)
        write_proteins(place)
        expected = json.loads(golden["OUTPUTS"].read_text(encoding="utf-8"))
        for line in (*golden["COMMANDS"], *MORE):
            with used_kernels() as used:
                found = golden["run"](line, place) if line in expected else run_more(line, place)
            lines.append((command_of(line.split()), {as_listed(*call): kib(*call) for call in used}))
            wrong += [line] if line in expected and expected[line] != found else []
    if wrong:
        raise SystemExit(f"other outputs than golden ones: {wrong}")
    noted.write_text(json.dumps(lines), encoding="ascii")
    unfinished = folder.with_name(f"{folder.name}.part")
    for old in (folder, unfinished):
        shutil.rmtree(old, ignore_errors=True)
    unfinished.mkdir(parents=True)
    # What calls functions of Numba's or of the compiler's is compiled by who needs it.
    for file in filter(os.path.exists, map(compiled_cache().joinpath, files.values())):
        shutil.copy(file, unfinished)
        (unfinished / file.name).chmod(0o644)
    unfinished.rename(folder)


def write_proteins(folder: Path) -> None:
    """Proteins of 60 residues for `MORE`: files of one, and of 80 each."""
    rng = random.Random(1)
    for number, count in enumerate((1, 80, 80)):
        texts = ("".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=60)) for _ in range(count))
        (folder / f"more_{number}.fasta").write_text("".join(f">p{k}\n{t}\n" for k, t in enumerate(texts)))


def run_more(line: str, folder: Path) -> None:
    """Run a command line whose outputs are not golden."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        if status := cli_main(line.split()):
            raise SystemExit(f"plait {line}: exit status {status}")


def build(objects: Path | None, output: Path) -> None:
    """The wheel, with the objects of these sources; hatch_build.py takes them from the environment."""
    environment = dict(os.environ)
    if objects is not None:
        folders = [str(objects / shipped_folder(level).name) for level in LEVELS]
        environment["PLAIT_WHEEL_OBJECTS"] = os.pathsep.join(filter(os.path.isdir, folders))
        environment["PLAIT_WHEEL_PLATFORM"] = f"manylinux_2_17_{platform.machine()}"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output)]
    subprocess.run(command, cwd=HERE, env=environment, check=True)


if __name__ == "__main__":
    main()
