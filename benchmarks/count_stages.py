"""Where the time of `plait vdj count` goes: processor time a row, stage by stage, Parquet to Parquet.

    python benchmarks/count_stages.py [--rows 400000] [--repeat 3]

Junctions are drawn from human_TRB. Tables of them have all columns that `plait vdj generate` writes, or
those alone that are counted. Each stage is done for all blocks on one thread; of the repeats the least
counts. Then the whole call with one thread, whose table must have the same rows; in the end the whole command
as it is, and with memory given back to the kernel as glibc and Arrow do it by themselves.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from commands import processor_name

from plait.formats.checkpoints import Checkpoint, digest_of
from plait.formats.rearrangements import open_rearrangements
from plait.formats.row_groups import EncodedRows
from plait.formats.tables import open_table
from plait.vdj.airr import RearrangementRows
from plait.vdj.count_files import COUNTED_ROLES, BlockCounter, count_files
from plait.vdj.counting import PathCounter
from plait.vdj.model import load_model
from plait.vdj.model.sampling import generate_file


class Stages:
    """Processor seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[..., Any], *given: Any) -> Any:
        """What the work gives."""
        begin = time.process_time()
        found = work(*given)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - begin
        return found


def stages(source: Path, folder: Path, counter: PathCounter, block_rows: int) -> dict[str, float]:
    """Seconds of each stage."""
    timed, work = Stages(), BlockCounter(counter)
    with open_rearrangements([source], block_rows=block_rows) as reader:
        blocks = timed("reading", lambda: list(reader.numbered()))
        names = [reader.roles[role] for role in COUNTED_ROLES]
        rows = RearrangementRows(reader.schema, counter.columns.schema)
    checkpoint = Checkpoint(folder / "checkpoint", key={}, resume=False)
    with open_table(folder / "stages.parquet", rows.schema, metadata={}) as table:
        for number, (first, block) in enumerate(blocks):
            columns = block.select(names)
            digest = timed("digest", digest_of, columns)
            items = timed("encoding", counter.items, *columns.columns)
            raw = timed("kernel", counter._counter.run, items.texts)
            counts = timed("assembling", lambda items=items, raw=raw: counter._assemble(items, *raw))
            result = timed("result columns", counter.columns.batch, counts)
            timed("totals", work.summary, columns.columns, result)
            batch = timed("AIRR's columns", rows.batch, first, block, result)
            ready = timed("encoding Parquet", table.encoded, batch)
            assert isinstance(ready, EncodedRows)
            timed("keeping", checkpoint.put, number, ready, digest)
            timed("writing", table.write, ready)
    checkpoint.remove()
    return timed.seconds


def command(source: Path, folder: Path, *, kept: bool, models: Sequence[str]) -> tuple[float, ...]:
    """Processor seconds of `plait vdj count`, those of them in the kernel, and page faults."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Where the environment says anything of malloc, commands change nothing of it.
    environment |= {} if kept else {"GLIBC_TUNABLES": ""}
    words = [source, "--germline", "human_trb", "-o", folder / "command.parquet", *models]
    process = subprocess.Popen(
        [sys.executable, "-m", "plait", "vdj", "count", *map(str, words)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"plait vdj count ended with {status}")
    return used.ru_utime + used.ru_stime, used.ru_stime, used.ru_minflt


def whole_commands(source: Path, folder: Path, repeat: int) -> None:
    """Run the command both ways, in turn, and print the best of each."""
    told = (("pages kept", True), ("pages given back", False))
    for name, models in (("one model", ()), ("55 models", ("--sweep-pi", "0:4", "--sweep-nu", "0:10"))):
        runs = [
            [command(source, folder, kept=kept, models=models) for _, kept in told] for _ in range(repeat)
        ]
        for k, (how, _) in enumerate(told):
            seconds, kernel, faults = min(run[k] for run in runs)
            print(
                f"whole command, {name}, {how}: {seconds:.2f} s of processor, {kernel:.2f} s of it in the "
                f"kernel, {faults:,} page faults"
            )


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    print(f"{processor_name()}; {options.rows:,} rows; us of processor a row")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wide, narrow = folder / "28.parquet", folder / "3.parquet"
        generate_file(load_model("human_TRB"), wide, options.rows, seed=1)
        pq.write_table(pq.read_table(wide, columns=list(COUNTED_ROLES)), narrow, row_group_size=1 << 16)
        for source, block_rows in ((wide, 34_169), (narrow, 1 << 16)):
            counter = PathCounter("human_trb", device="cpu", threads=1)
            found = [stages(source, folder, counter, block_rows) for _ in range(options.repeat)]
            least = {name: min(one[name] for one in found) for name in found[0]}
            told = ", ".join(f"{name} {1e6 * s / options.rows:.2f}" for name, s in least.items())
            each = 1e6 * sum(least.values()) / options.rows
            print(f"{source.stem} columns: {told}; together {each:.2f}")
            seconds = []
            for _ in range(options.repeat):
                begin = time.process_time()
                count_files([source], folder / "whole.parquet", counter, threads=1)
                seconds.append(time.process_time() - begin)
            one, other = (pq.read_table(folder / f"{end}.parquet") for end in ("stages", "whole"))
            if not one.equals(other):
                raise SystemExit("WRONG: stage by stage other rows than at once")
            each = 1e6 * min(seconds) / options.rows
            print(
                f"at once {each:.2f}: {2e6 / each:,.0f} rows/s on two processors of this kind, if both work"
            )
        whole_commands(narrow, folder, options.repeat)


if __name__ == "__main__":
    main()
