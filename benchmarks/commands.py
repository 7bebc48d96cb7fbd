"""Processor seconds of whole commands: of this checkout beside an older one, in turn; outputs compared.

    python benchmarks/commands.py --old FOLDER [--repeat 5] [--jobs 1] [--only WORDS] [--cold]

FOLDER is a checkout of another version. Every command line runs on one thread, first once with each version
to compile (with ``--cold`` each time from an empty cache, and that is what counts), then alternately, each
version pinned to the same processor. The least of each is told, and the ratio of the two. Inputs are drawn
with fixed seeds and are large enough that kernels are most of the time.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import filecmp
import os
import queue
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from plait.vdj.germline import load_germline

HERE = Path(__file__).parents[1]
GOLDEN = HERE / "tests/golden/commands"
#: Made by the new version before anything is timed; both read them.
INPUTS = (
    "vdj generate --model human_TRB -n 100000 --seed 3 -o junctions.tsv",
    "vdj generate --model human_TRB -n 500 --seed 3 -o few.tsv",
    "vdj generate --model human_TRB -n 30000 --seed 4 --keep all -o all.tsv",
    "vdj infer tra.tsv --germline human_tra --rows all --iterations 2 --no-report -o tra-model",
)
_PGEN = "vdj pgen junctions.tsv --model human_TRB"
_COUNT = "vdj count junctions.tsv --germline human_trb --device cpu"
_ALIGN = "align nucleotides.fasta --pairs all"
#: Command lines; {0} is the output. The extension says what is compared.
COMMANDS = (
    f"{_COUNT} -o {{0}}.tsv",
    f"{_COUNT} --model dp1 -o {{0}}.tsv",
    "vdj count few.tsv --germline human_trb --device cpu --model exhaustive --max-n 1 -o {0}.tsv",
    f"{_COUNT} --sweep-pi 0:4 --sweep-nu 0,4,8 --strands 2 -o {{0}}.tsv",
    f"{_PGEN} --of nt -o {{0}}.tsv",
    f"{_PGEN} --of aa -o {{0}}.tsv",
    f"{_PGEN} --of nt,aa --calls use -o {{0}}.tsv",
    "vdj pgen tra.tsv --model tra-model --of nt -o {0}.tsv",
    "vdj pgen tra.tsv --model tra-model --of aa -o {0}.tsv",
    "vdj scenarios junctions.tsv --model human_TRB --best 3 -o {0}.tsv",
    "vdj scenarios junctions.tsv --model human_TRB --posteriors -o {0}.tsv",
    "vdj scenarios tra.tsv --model tra-model --best 3 -o {0}.tsv",
    "vdj infer all.tsv --start human_TRB --rows all --calls use --iterations 2 --no-report -o {0}",
    "vdj infer tra.tsv --start tra-model --rows all --calls ignore --iterations 2 --no-report -o {0}",
    "vdj generate --model human_TRB -n 1000000 --seed 3 -o {0}.tsv",
    "vdj annotate reads.fastq --germline human_trb --min-junction-quality 0 -o {0}.tsv",
    "vdj sharing shared.tsv -o {0}.tsv",
    "search queries.fasta proteins.fasta --device cpu -o {0}.m8",
    "search nucleotides.fasta nucleotides.fasta --device cpu -o {0}.m8",
    f"{_ALIGN} --mode local -o {{0}}.tsv",
    f"{_ALIGN} --mode global --gap-open 5 --gap-extend 5 -o {{0}}.tsv",
    f"{_ALIGN} --mode semiglobal -o {{0}}.tsv",
    f"{_ALIGN} --mode overlap -o {{0}}.tsv",
    f"{_ALIGN} --mode extension --x-drop 20 -o {{0}}.tsv",
    f"{_ALIGN} --mode global --band=-600:600 -o {{0}}.tsv",
    "align queries.fasta few.fasta --pairs order --mode global --traceback linear -o {0}.tsv",
    f"{_ALIGN} --mode local --score-only -o {{0}}.tsv",
    "hsi compress cube.npy -o {0}.c123",
    "hsi compress cube.npy --preset best -o {0}.c123",
    "hsi compress cube.npy --coder hybrid -o {0}.c123",
    "hsi compress cube.npy --coder block-adaptive -o {0}.c123",
    "hsi decompress packed.c123 -o {0}.npy",
)
#: What a new user runs first, on small files.
FIRST = (
    "--help",
    "vdj count rows.tsv --germline mouse_trb --device cpu -o {0}.tsv",
    "vdj pgen rows.tsv --model human_TRB -o {0}.tsv",
    "search proteins.fasta proteins.fasta --device cpu -o {0}.m8",
    "align proteins.fasta --pairs all -o {0}.tsv",
    "vdj annotate reads_1.fastq --germline mouse_trb --min-junction-quality 0 -o {0}.tsv",
    "hsi compress cube.npy -o {0}.c123",
)


def processor_name() -> str:
    """Name of the processor, of Linux."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")


def _write_fasta(path: Path, rng: random.Random, letters: str, count: int, length: int) -> None:
    ancestor = rng.choices(letters, k=length)
    with path.open("w") as file:
        for number in range(count):
            text = [rng.choice(letters) if rng.random() < 0.3 else a for a in ancestor]
            start = rng.randrange(length // 4)
            file.write(f">s{number}\n{''.join(text[start : length - rng.randrange(length // 4)])}\n")


def _rearranged(rng: random.Random, locus: str, count: int) -> list[tuple[str, str, str, str]]:
    """Read, junction, V and J of recombinations with few deletions and insertions."""
    germline = load_germline(locus)
    v = [a for a in germline.v if a.cdr3_end and len(a.sequence) > 200]
    j = [a for a in germline.j if a.cdr3_end]
    found = []
    for _ in range(count):
        first, last = rng.choice(v), rng.choice(j)
        middle = rng.choice(germline.d).sequence[rng.randrange(5) :] if germline.d else ""
        kept = first.cdr3_end[: len(first.cdr3_end) - rng.randrange(6)]
        inserted = ["".join(rng.choices("ACGT", k=rng.randrange(7))) for _ in range(2)]
        text = kept + inserted[0] + middle + inserted[1] + last.cdr3_end[rng.randrange(7) :]
        before = first.sequence[: first.sequence.rindex(first.cdr3_end)]
        after = last.sequence[last.sequence.index(last.cdr3_end) + len(last.cdr3_end) :]
        found.append(((before + text + after)[-150:], text, first.name, last.name))
    return found


def write_inputs(folder: Path) -> None:
    """Files that the command lines read, but for those that plait makes."""
    rng = random.Random(7)
    header = "junction\tv_call\tj_call\tsubject_id\tduplicate_count\n"
    for name, locus, count in (("tra", "human_tra", 60_000), ("shared", "mouse_trb", 200_000)):
        rows = [f"{t}\t{v}\t{j}\ts{rng.randrange(9)}\t1\n" for _, t, v, j in _rearranged(rng, locus, count)]
        (folder / f"{name}.tsv").write_text(header + "".join(rows))
    with (folder / "reads.fastq").open("w") as file:
        for number, (read, *_) in enumerate(_rearranged(rng, "human_trb", 20_000)):
            file.write(f"@r{number}\n{read}\n+\n{'I' * len(read)}\n")
    _write_fasta(folder / "queries.fasta", rng, "ARNDCQEGHILKMFPSTWYV", 100, 300)
    _write_fasta(folder / "few.fasta", rng, "ARNDCQEGHILKMFPSTWYV", 100, 2_000)
    _write_fasta(folder / "proteins.fasta", rng, "ARNDCQEGHILKMFPSTWYV", 5_000, 400)
    _write_fasta(folder / "nucleotides.fasta", rng, "ACGT", 160, 1_000)
    cube = np.cumsum(np.random.default_rng(7).integers(-9, 10, (100, 96, 200)), axis=0)
    np.save(folder / "cube.npy", (cube + 2_000).astype(np.int16))


def seconds(source: Path, command: str, folder: Path, processor: int, cache: Path) -> float:
    """User and system seconds of a command with its children, pinned to a processor."""
    words = [sys.executable, "-m", "plait", *command.split()]
    kept = {"PLAIT_THREADS": "1", "PLAIT_CACHE_DIR": str(cache), "PYTHONPATH": str(source / "src")}
    told_in = folder / f"told-{processor}.txt"
    with told_in.open("wb") as told:
        child = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **kept}, stdout=told, stderr=subprocess.STDOUT
        )
        os.sched_setaffinity(child.pid, {processor})
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{source}: plait {command}: {told_in.read_text()[-600:]}")
    return used.ru_utime + used.ru_stime


def _outcome(output: Path) -> Path | None:
    """What is compared of an output; of a folder, nothing."""
    found = [
        p for p in output.parent.glob(f"{output.name}.*") if p.suffix in (".tsv", ".m8", ".npy", ".c123")
    ]
    return found[0] if found else None


def _timed(command: str, number: int, options: argparse.Namespace, folder: Path, processor: int) -> str:
    sources = {"old": options.old, "new": HERE}
    times: dict[str, list[float]] = {"old": [], "new": []}
    caches = {name: folder / f"cache-{name}" for name in sources}
    for turn in range(options.repeat + 1):
        for name, source in sources.items():
            output = folder / f"{number}-{name}"
            for path in folder.glob(f"{number}-{name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            cache = folder / f"cache-{number}-{name}-{turn}" if options.cold else caches[name]
            used = seconds(source, command.format(output.name), folder, processor, cache)
            times[name] += [used] if turn or options.cold else []
    ratio = min(times["new"]) / min(times["old"])
    told = {_outcome(folder / f"{number}-{name}") for name in sources}
    same = "-" if None in told else "equal" if filecmp.cmp(*map(str, told), shallow=False) else "OTHER OUTPUT"
    old, new = map(min, times.values())
    return f"{old:9.2f} {new:9.2f} {ratio:7.3f} {same:5} plait {command}"


def main() -> None:
    """Time what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=lambda text: Path(text).resolve(), required=True, metavar="FOLDER")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="command lines at a time, each on its processor")
    parser.add_argument("--only", default="", help="those that contain this")
    parser.add_argument("--first", action="store_true", help="small files: what a new user runs first")
    parser.add_argument("--cold", action="store_true", help="each run from an empty cache")
    options = parser.parse_args()
    processors: queue.Queue[int] = queue.Queue()
    every = sorted(os.sched_getaffinity(0))
    # Neighbours may be threads of one core.
    for processor in every[:: max(1, len(every) // options.jobs)][: options.jobs]:
        processors.put(processor)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.first:
            shutil.copytree(GOLDEN, folder, dirs_exist_ok=True)
        else:
            write_inputs(folder)
            for command in (*INPUTS, "hsi compress cube.npy -o packed.c123"):
                seconds(HERE, command, folder, min(os.sched_getaffinity(0)), folder / "cache-new")
        print(f"# {processor_name()}; processor seconds, least of {options.repeat}: old, new, new/old")

        def timed(numbered: tuple[int, str]) -> str:
            processor = processors.get()
            try:
                return _timed(numbered[1], numbered[0], options, folder, processor)
            finally:
                processors.put(processor)

        chosen = [c for c in (FIRST if options.first else COMMANDS) if options.only in c]
        ratios = []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for told in concurrent.futures.as_completed(pool.submit(timed, one) for one in enumerate(chosen)):
                ratios.append(float(told.result().split()[2]))
                print(told.result(), flush=True)
        print(f"# geometric mean of the ratios: {statistics.geometric_mean(ratios):.3f}")


if __name__ == "__main__":
    main()
