"""Whole commands on many rows, into folders of parts: time, memory and disk.

    python benchmarks/datasets.py [--rows 30000000] [--folder FOLDER] [--commands generate count] [--keep]
        [--seconds 600] [--study-rows 30000000] [--threads 2]

Junctions of human TRB are drawn, counted, and their probabilities computed, each into a folder of parts with
the threads of this machine; ``study`` takes the first of the drawn parts as repertoires of eight subjects,
through counts, sharing and the regression to the report. Printed are wall time, processor time, the most
memory and the bytes on disk; of three parts of each, the values are compared with the same rows worked on in
memory, and of a study the clonotypes of one length with Arrow's groups of them.

``--seconds`` kills (SIGKILL) what still runs then, and ends with status 75. The same call goes on where that
was, with ``--resume``: the sums are those of all runs, and it is said how many there were. That needs
``--folder``. What a cluster makes of it: ``cluster_plan.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

MODEL, GERMLINE = "human_TRB", "human_trb"
SUBJECTS = 8
#: Status of a call that is to be repeated, as sysexits.h has it.
_AGAIN = 75
#: Length of the junctions whose clonotypes are grouped a second time.
_LENGTH = 33
_PROGRAM = (
    "import sys; from plait.cli import main\nif __name__ == '__main__': raise SystemExit(main(sys.argv[1:]))"
)


class Runs:
    """Runs of commands, of which a file keeps what they took: wall and processor seconds, and bytes."""

    def __init__(self, folder: Path, seconds: float | None) -> None:
        self._path, self._seconds = folder / "runs.json", seconds
        self.known = json.loads(self._path.read_text()) if self._path.exists() else {}

    def finished(self, name: str) -> bool:
        """Whether a command has come to its end."""
        return bool(self.known.get(name)) and self.known[name][-1]["status"] == 0

    def go(self, name: str, words: list[object]) -> None:
        """Run a command, or go on with it; SystemExit if it fails or its time is over."""
        runs = self.known.setdefault(name, [])
        command = [sys.executable, "-c", _PROGRAM, *map(str, words), *(["--resume"] if runs else [])]
        began, load = time.perf_counter(), os.getloadavg()[0]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            killer = threading.Timer(self._seconds or threading.TIMEOUT_MAX, process.kill)
            killer.start()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            killer.cancel()
        wall = time.perf_counter() - began
        self._seconds = None if self._seconds is None else max(1.0, self._seconds - wall)
        found = {
            "status": process.returncode,
            "wall": wall,
            "processor": usage.ru_utime + usage.ru_stime,
            "bytes": usage.ru_maxrss * 1024,
            "load": load,
        }
        runs.append(found)
        self.save()
        if process.returncode:
            print(f"{name}: status {process.returncode} after {wall:,.0f} s", file=sys.stderr, flush=True)
            raise SystemExit(_AGAIN if process.returncode == -9 else 1)

    def save(self) -> None:
        """Write what is known."""
        self._path.write_text(json.dumps(self.known, indent=1))

    def told(self, name: str, rows: int) -> str:
        """What all runs of a command took."""
        runs = self.known[name]
        wall, processor = (sum(run[what] for run in runs) for what in ("wall", "processor"))
        most = max(run["bytes"] for run in runs)
        times = f" in {len(runs)} runs, all but the last killed and resumed" if len(runs) > 1 else ""
        loads = "/".join(f"{run['load']:.0f}" for run in runs)
        return (
            f"{name}: {rows:,} rows{times}, {wall:,.0f} s (load before: {loads}), {processor:,.0f} s of "
            f"processor ({rows / processor:,.0f} a second of it, {1e6 * processor / rows:.2f} us a row), "
            f"{most / 2**20:,.0f} MiB at most"
        )


def bytes_of(folder: Path) -> int:
    """Bytes on disk of a dataset."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def checked(command: str, folder: Path, rows: int) -> str:
    """Compare some parts with the same rows in memory; what was compared."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    assert manifest["rows"] == rows, (manifest["rows"], rows)
    parts = manifest["parts"]
    for part in {0, len(parts) // 2, len(parts) - 1}:
        table = pq.read_table(folder / parts[part]["path"], partitioning=None)
        given = [table[name].combine_chunks() for name in ("junction", "v_call", "j_call")]
        if command == "count":
            from plait.vdj import PathCounter

            counter = PathCounter(GERMLINE, threads=2)
            expected = counter.columns.batch(counter.count(*given))["path_count"]
            assert table["path_count"].combine_chunks().equals(expected)
        elif command == "pgen":
            from plait.vdj.model import GenerationProbability, load_model

            found = GenerationProbability(load_model(MODEL), threads=2).compute(given[0])
            assert np.allclose(found.pgen, table["pgen_nt"].to_numpy(), rtol=1e-12, atol=0)
        elif command == "generate":
            assert pc.all(table["productive"]).as_py()
    return f"{len({0, len(parts) // 2, len(parts) - 1})} of {len(parts)} parts compared"


def subjects_of(drawn: Path, folder: Path, rows: int) -> int:
    """Deal so many of the drawn rows, as whole parts, to folders of subjects, and list them; the rows."""
    parts = json.loads((drawn / "_manifest.json").read_text())["parts"]
    count = int(np.searchsorted(np.cumsum([part["rows"] for part in parts]), rows)) + 1
    shutil.rmtree(folder, ignore_errors=True)
    for number, part in enumerate(parts[:count]):
        place = folder / f"subject{number % SUBJECTS + 1}"
        place.mkdir(parents=True, exist_ok=True)
        (place / part["path"]).symlink_to((drawn / part["path"]).absolute())
    names = sorted(path.name for path in folder.iterdir())
    (folder / "sheet.csv").write_text("file,subject_id\n" + "".join(f"{name},{name}\n" for name in names))
    return sum(part["rows"] for part in parts[:count])


def checked_study(folder: Path, subjects: Path) -> str:
    """Compare the clonotypes of one length with groups of the rows that have it; what was compared."""
    key, tables = ["junction", "v_gene", "j_gene"], []
    for place in sorted(path for path in subjects.iterdir() if path.is_dir()):
        rows = ds.dataset(place, format="parquet").scanner(
            columns=["junction", "v_call", "j_call"],
            filter=pc.equal(pc.binary_length(pc.field("junction")), _LENGTH),
            batch_readahead=1,
            fragment_readahead=1,
        )
        table = rows.to_table()
        genes = {
            f"{s}_gene": pc.replace_substring_regex(table[f"{s}_call"].cast(pa.string()), r"[*,].*", "")
            for s in "vj"
        }
        columns = {"junction": table["junction"].cast(pa.string()), **genes}
        tables.append(pa.table({**columns, "subject": pa.array([place.name] * len(table))}))
    expected = (
        pa.concat_tables(tables).group_by(key).aggregate([("subject", "count_distinct"), ([], "count_all")])
    )
    found = ds.dataset(folder / "clonotypes").to_table(
        columns=[*key, "subjects", "rows"], filter=pc.equal(pc.binary_length(pc.field("junction")), _LENGTH)
    )
    order = [(name, "ascending") for name in key]
    expected = expected.select([*key, "subject_count_distinct", "count_all"]).sort_by(order)
    assert expected.rename_columns(found.column_names).cast(found.schema).equals(found.sort_by(order))
    return f"{len(found):,} clonotypes of {_LENGTH} nucleotides compared"


def run(options: argparse.Namespace, folder: Path) -> None:
    """Run the commands one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn, subjects, rows = folder / "drawn", folder / "subjects", options.rows
    runs = Runs(folder, options.seconds)
    words: dict[str, list[object]] = {
        "generate": ["generate", "--model", MODEL, "-n", rows, "--seed", 1, "-o", f"{drawn}/"],
        "count": ["count", drawn, "--germline", GERMLINE, "-o", f"{folder / 'count'}/"],
        "pgen": ["pgen", drawn, "--model", MODEL, "--of", "nt", "-o", f"{folder / 'pgen'}/"],
        "study": ["study", subjects / "sheet.csv", "--germline", GERMLINE, "-o", folder / "study"],
    }
    words["study"] += ["--sweep-pi", "0,4", "--sweep-nu", "4,10", "--halves", options.halves]
    lines = runs.known.setdefault("lines", {})
    for command in options.commands:
        if command not in lines:
            out = drawn if command == "generate" else folder / command
            if command == "study" and "study rows" not in runs.known:
                runs.known["study rows"] = subjects_of(drawn, subjects, options.study_rows)
            if not runs.finished(command):
                runs.go(command, ["vdj", *words[command], "--threads", options.threads])
            size = bytes_of(out)
            if command == "study":
                done, compared = runs.known["study rows"], checked_study(out, subjects)
                stages = json.loads((out / "study.json").read_text())["timings"]
                compared += "; stages " + ", ".join(f"{name} {s:.0f} s" for name, s in stages.items())
            else:
                done, compared = rows, checked(command, out, rows)
            lines[command] = f"{runs.told(command, done)}, {size / 1e9:.2f} GB; {compared}"
            runs.save()
            if not options.keep and command != "generate":
                shutil.rmtree(out)
        print(lines[command], flush=True)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--commands", nargs="+", default=["generate", "count", "pgen", "study"])
    parser.add_argument("--study-rows", type=int, default=30_000_000)
    parser.add_argument("--halves", type=int, default=50)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        run(options, options.folder or Path(folder))


if __name__ == "__main__":
    main()
