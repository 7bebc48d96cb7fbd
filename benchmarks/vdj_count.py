"""Speed of path counting, with the answers checked in the same run.

    python benchmarks/vdj_count.py [--rearrangements TABLE] [--rows N] [--repeat 3] [--json OUT.json]

TABLE is an AIRR table of mouse TRB rearrangements; without it, junctions are simulated from the bundled
germline set. Every figure is the best of the repeats, in processor time of one core unless it says
otherwise. Published figures stand beside ours; they come from other machines, as the text says.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from commands import processor_name
from operation_rate import Tally, lane_operations_per_second

from plait.devices.target import CpuTarget, ReferenceTarget
from plait.dp.chain.launches import PATH_COUNTS, CountBatch, _run_chain, make_scratch
from plait.dp.chain.rows import PerPosition
from plait.dp.chain.tables import Junctions
from plait.lang.algebras import COUNT, PROBABILITY
from plait.lang.lanes import LANES, host_lanes
from plait.vdj.chain import ChainCounter, chain_kind, chain_tables
from plait.vdj.count_files import count_files
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.models import PathModel

SWEEP = PathModel(sweep_pi=(0, 1, 2, 3, 4), sweep_nu=tuple(range(11)))
#: Name, model, published sequences/s (with the machine), sequences/s asked for on one core.
CASES = (
    ("dp1, n <= 10, 2 D", PathModel(name="dp1"), "127,000 (C++, laptop i7, 4 cores)", 500_000),
    ("dp2, one model, 2 D", PathModel(), "none", None),
    ("dp2, 55 models, 2 D, 3 counts", SWEEP, "1,460 (MATLAB+MEX, laptop i7, 4 cores)", 100_000),
)


class Columns(NamedTuple):
    """Junctions with their calls."""

    junction: pa.Array
    v_call: pa.Array
    j_call: pa.Array


def real_columns(path: Path) -> Columns:
    """Unique (junction, V, J) of a table."""
    from plait.formats.rearrangements import open_rearrangements

    with open_rearrangements([path], block_rows=100_000) as reader:
        names = [reader.roles[role] for role in ("junction", "v_call", "j_call")]
        table = pa.Table.from_batches(list(reader)).select(names)
    unique = table.group_by(names, use_threads=False).aggregate([])
    return Columns(*(unique[name].combine_chunks() for name in names))


def simulated_columns(germline: GermlineSet, rows: int, seed: int = 1) -> Columns:
    """Junctions joined from random ends and N nucleotides; for machines without a table."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("ACGT"))

    def inserted() -> str:
        return "".join(rng.choice(letters, rng.integers(0, 6)))

    found = []
    for _ in range(rows):
        v = germline.v[rng.integers(len(germline.v))]
        j = germline.j[rng.integers(len(germline.j))]
        d = germline.d[rng.integers(len(germline.d))].sequence
        start, end = np.sort(rng.integers(0, len(d) + 1, 2))
        v_end, j_end = v.cdr3_end or "", j.cdr3_end or ""
        v_part = v_end[: len(v_end) - int(rng.integers(0, 6))]
        found.append(
            (
                v_part + inserted() + d[start:end] + inserted() + j_end[int(rng.integers(0, 6)) :],
                v.name,
                j.name,
            )
        )
    return Columns(*(pa.array(column) for column in zip(*found, strict=True)))


def best(run: Callable[[], Any], repeat: int, clock: Callable[[], float] = time.process_time) -> float:
    """Shortest of several runs, in seconds."""
    times = []
    for _ in range(repeat):
        begin = clock()
        run()
        times.append(clock() - begin)
    return min(times)


def check(germline: GermlineSet, model: PathModel, texts: Junctions, sample: int) -> None:
    """Counts of a sample must equal those of interpreted Python, to the bit."""
    few = _head(texts, sample)
    fast, _ = ChainCounter(germline, model, "vdj", CpuTarget(1), "null").run(few)
    slow, _ = ChainCounter(germline, model, "vdj", ReferenceTarget(), "null").run(few)
    for name, a, b in zip(fast._fields, fast, slow, strict=True):
        if not np.array_equal(a, b):
            raise SystemExit(f"WRONG: {name} of {model} differs from the reference")


def operations_per_text(germline: GermlineSet, model: PathModel, texts: Junctions, sample: int) -> float:
    """Lane operations (one choice or one extend of one lane) that the schedule does per text."""
    few = _head(texts, sample)
    tally = Tally.fresh()
    counter = ChainCounter(germline, model, "vdj", ReferenceTarget(), "null")
    kind = chain_kind(model, LANES[1])
    batch = CountBatch(kind, tally, chain_tables(germline, model, "vdj"), few, counter.room(few, np.int64))
    ReferenceTarget().launch(PATH_COUNTS, batch)
    return Tally.operations / few.start.size


def _head(texts: Junctions, n: int) -> Junctions:
    step = max(1, texts.start.size // n)
    return Junctions(texts.symbols, *(field[::step][:n] for field in texts[1:]))


def compute(germline: GermlineSet, columns: Columns, repeat: int, limit: float) -> list[dict[str, Any]]:
    """Compute rates on one core, without reading or writing files."""
    results = []
    for name, model, published, asked in CASES:
        counter = PathCounter(germline, model, threads=1)
        texts = counter.items(*columns).texts
        chain = ChainCounter(germline, model, "vdj", CpuTarget(1), "null")
        chain.run(_head(texts, 1000))
        seconds = best(lambda texts=texts, chain=chain: chain.run(texts), repeat)
        whole = best(lambda counter=counter: counter.count(*columns), repeat)
        check(germline, model, texts, 150)
        operations = operations_per_text(germline, model, texts, 150)
        rate = texts.start.size / seconds
        results.append({
            "case": name, "sequences": texts.start.size, "per_second": rate,
            "per_second_arrow_to_result": texts.start.size / whole, "published": published, "asked": asked,
            "lane_operations": operations, "share_of_limit": operations * rate / limit,
        })  # fmt: skip
    return results


def by_width(germline: GermlineSet, columns: Columns, repeat: int, alg: Any, dtype: Any) -> dict[int, float]:
    """Sequences/s of the sweep in lane groups of every width, on one core."""
    texts = PathCounter(germline, SWEEP, threads=1).items(*columns).texts
    tables, target = chain_tables(germline, SWEEP, "vdj", dtype), CpuTarget(1)
    out = ChainCounter(germline, SWEEP, "vdj", target, "null").room(texts, dtype)
    rates = {}
    for width, lanes in LANES.items():
        kind = chain_kind(SWEEP, lanes)
        target.launch(PATH_COUNTS, CountBatch(kind, alg, tables, _head(texts, 1000), out))
        batch = CountBatch(kind, alg, tables, texts, out)
        seconds = best(lambda batch=batch: target.launch(PATH_COUNTS, batch), repeat)
        rates[width] = texts.start.size / seconds
    return rates


def by_order(germline: GermlineSet, columns: Columns, repeat: int) -> dict[str, float]:
    """Sequences/s of one model match by match and by positions, on one core; answers must be equal."""
    model = PathModel()
    texts = PathCounter(germline, model, threads=1).items(*columns).texts
    tables, kind = chain_tables(germline, model, "vdj"), chain_kind(model, host_lanes())
    scratch = make_scratch(COUNT, tables, int(texts.length.max()))
    rates, answers, n = {}, [], texts.start.size
    for rows in (kind.rows, PerPosition()):
        out = ChainCounter(germline, model, "vdj", CpuTarget(1), "null").room(texts, np.int64)
        call = partial(_run_chain, kind._replace(rows=rows), COUNT, tables, texts, 0)
        call(1000, scratch, out)
        rates[type(rows).__name__] = n / best(lambda call=call, out=out: call(n, scratch, out), repeat)
        answers.append(out)
    for name, a, b in zip(answers[0]._fields, *answers, strict=True):
        if not np.array_equal(a, b):
            raise SystemExit(f"WRONG: {name} by positions differs from match by match")
    return rates


def end_to_end(
    germline: GermlineSet, columns: Columns, source: Path | None, repeat: int
) -> list[dict[str, Any]]:
    """TSV to Parquet, wall-clock, all threads."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        if source is None:
            from plait.formats.tables import open_table

            source = Path(folder) / "rows.tsv.gz"
            batch = pa.record_batch(list(columns), names=["junction", "v_call", "j_call"])
            with open_table(source, batch.schema, metadata={}) as table:
                table.write(batch)
        for name, model, _, _ in CASES[1:]:
            rows = 0

            def run(model: PathModel = model) -> None:
                nonlocal rows
                counter = PathCounter(germline, model, threads=1)
                rows = count_files([source], Path(folder) / "out.parquet", counter).summary.rows

            seconds = best(run, repeat, time.perf_counter)
            results.append({
                "case": f"{name}: {source.name} to Parquet", "rows": rows, "per_second": rows / seconds,
                "asked": 150_000 if model is CASES[1][1] else None,
                "output_mb": (Path(folder) / "out.parquet").stat().st_size / 1e6,
            })  # fmt: skip
    return results


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rearrangements", type=Path)
    parser.add_argument("--rows", type=int, default=0, help="take only this many sequences")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    germline = load_germline("mouse_trb")
    if options.rearrangements:
        columns = real_columns(options.rearrangements)
    else:
        columns = simulated_columns(germline, options.rows or 100_000)
    if options.rows:
        columns = Columns(*(column[: options.rows] for column in columns))
    known = pc.and_(_known(columns.v_call, germline, "V"), _known(columns.j_call, germline, "J"))
    columns = Columns(*(column.filter(known) for column in columns))
    limit = lane_operations_per_second(options.repeat)
    facts = {
        "machine": processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "lanes": host_lanes().width,
        "limit_lane_operations_per_second": limit,
        "sequences": "real" if options.rearrangements else "simulated",
    }
    print(json.dumps(facts))
    computed = compute(germline, columns, options.repeat, limit)
    for r in computed:
        asked = f", asked {r['asked']:,}" if r["asked"] else ""
        print(
            f"{r['case']:32} {r['per_second']:11,.0f} seq/s on one core{asked}; published {r['published']}\n"
            f"{'':32} {r['per_second_arrow_to_result']:11,.0f} seq/s with encoding and result columns; "
            f"{r['lane_operations']:,.0f} operations/seq, {r['share_of_limit']:.0%} of what the core issues"
        )
    some = Columns(*(column[:100_000] for column in columns))
    orders = by_order(germline, some, options.repeat)
    print("one model: " + ", ".join(f"{name} {rate:,.0f} seq/s" for name, rate in orders.items()))
    widths = by_width(germline, some, options.repeat, COUNT, np.int64)
    floating = by_width(germline, some, options.repeat, PROBABILITY, np.float64)
    for name, rates in (("integers", widths), ("floating numbers", floating)):
        told = ", ".join(f"{w} lanes {rate:,.0f} seq/s" for w, rate in rates.items())
        print(f"the sweep in {name} by lane width: {told}")
    whole = end_to_end(germline, columns, options.rearrangements, options.repeat)
    for r in whole:
        asked = f", asked {r['asked']:,}" if r["asked"] else ""
        print(
            f"{r['case']}: {r['per_second']:,.0f} rows/s{asked} ({r['rows']:,} rows, {r['output_mb']:.0f} MB)"
        )
    if options.json:
        told = {
            "facts": facts,
            "compute": computed,
            "by_order": orders,
            "by_width": widths,
            "by_width_floating": floating,
            "end_to_end": whole,
        }
        options.json.write_text(json.dumps(told, indent=1) + "\n")


def _known(calls: pa.Array, germline: GermlineSet, segment: Any) -> pa.Array:
    names = pc.unique(calls).to_pylist()
    return pc.is_in(
        calls, pa.array([n for n in names if n and germline.resolve(n, segment) is not None], pa.string())
    )


if __name__ == "__main__":
    main()
