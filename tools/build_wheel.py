"""Build a wheel with the machine code of kernels, with which commands compile nothing.

For every level of processors (`plait.lang.compile.LEVELS`) that this machine can run, the golden command
lines and ``plait demo`` are run, compiled for that level; what they write has to be golden. The kernels that
they have used go into the wheel: what a command line needs is found out by running it.

    python tools/build_wheel.py            # dist/plait-VERSION-cp3xx-none-manylinux_2_17_MACHINE.whl
    python tools/build_wheel.py --pure     # without machine code, for any platform

Objects of levels that this machine cannot run are made on another one, and its build/objects copied here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from plait.cli import main as cli_main
from plait.lang import native
from plait.lang.compile import LEVELS, compiled_cache, host_features, shipped_folder

HERE = Path(__file__).resolve().parents[1]
GOLDEN = HERE / "tests" / "golden" / "make_command_outputs.py"
#: Command lines that need kernels which the golden ones do not.
MORE = ("demo --rows 3000",)


def main() -> None:
    """Make the objects, and the wheel."""
    features = host_features()
    able = [level for level, (_, needed) in LEVELS.items() if all(map(features.get, needed))]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=HERE / "dist", help="folder of the wheel")
    parser.add_argument("--objects", type=Path, default=HERE / "build" / "objects", help="folder of objects")
    parser.add_argument("--levels", nargs="*", choices=list(LEVELS), default=able, help="those to make here")
    parser.add_argument("--pure", action="store_true", help="a wheel without objects")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.record:
        record(chosen.record)
        return
    for level in () if chosen.pure else chosen.levels:
        files = list(make_objects(level, chosen.objects.resolve()).iterdir())
        size = sum(file.stat().st_size for file in files) / 2**20
        print(f"{level}: {len(files)} kernels, {size:.1f} MiB", flush=True)
    build(None if chosen.pure else chosen.objects.resolve(), chosen.output.resolve())


def make_objects(level: str, objects: Path) -> Path:
    """Compile for a level what the command lines need, where the sources have changed; the folder of it."""
    name, needed = LEVELS[level]
    wanted = ",".join(f"+{feature}" for feature in needed)
    target = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": wanted}
    cache = {"PLAIT_CACHE_DIR": str(objects / "cache")}
    folder = objects / shipped_folder(level).name
    command = [sys.executable, __file__, "--record", str(folder)]
    subprocess.run(command, env=os.environ | target | cache, check=True)
    return folder


def record(folder: Path) -> None:
    """Run the command lines in this process, compare what they write, and keep the kernels they have used."""
    used: dict[str, None] = {}
    load = native.load

    def noted(file: Path, *rest: Any, **options: Any) -> Any:
        used[file.name] = None
        return load(file, *rest, **options)

    native.load = noted
    golden = runpy.run_path(str(GOLDEN))
    with tempfile.TemporaryDirectory() as name:
        found = golden["run_all"](Path(name) / "run")
        expected = json.loads(golden["OUTPUTS"].read_text(encoding="utf-8"))
        wrong = [command for command, files in expected.items() if files != found.get(command)]
        if wrong:
            raise SystemExit(f"other outputs than golden ones: {wrong}")
        for command in MORE:
            if status := cli_main([*command.split(), "-o", str(Path(name) / "out-more")]):
                raise SystemExit(f"plait {command}: exit status {status}")
    unfinished = folder.with_name(f"{folder.name}.part")
    for old in (folder, unfinished):
        shutil.rmtree(old, ignore_errors=True)
    unfinished.mkdir(parents=True)
    for file in used:
        shutil.copy(compiled_cache() / file, unfinished)
        (unfinished / file).chmod(0o644)
    unfinished.rename(folder)


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
