"""Speed of generation probabilities, beside OLGA's where it is installed; answers compared.

    python benchmarks/vdj_pgen.py --model FOLDER [--rows 20000] [--repeat 3] [--json OUT.json]
        [--peer-python PYTHON] [--peer-rows 2000]

FOLDER is a model of IGoR or OLGA. Junctions are drawn from it. PYTHON is that of an environment with OLGA, by
default this one; without it, that column is left out. Figures are the best of the repeats, sequences per
second of processor time on one core; OLGA computes the first rows of the same table, in the same run. The
arithmetic is counted (`vdj_pgen_limit`), and its limit is what one core does in registers, in the same run: a
multiplication and an addition of whole groups of lanes at a time, of which a single number takes one.

Other programs: ``benchmarks/vdj_pgen_peers.py``.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from vdj_pgen_limit import instructions_per_text, pairs_per_second

from plait import __version__
from plait.lang.lanes import host_lanes
from plait.vdj.model import (
    GenerationProbability,
    JunctionSampler,
    RecombinationModel,
    infer_model,
    read_model,
)
from plait.vdj.model.pgen import pgen_files
from plait.vdj.model.sampling import generate_file

#: What is computed: name, column, whether V and J are given, sequences a second that are asked for.
CASES = (
    ("nt", "junction", False, 100_000),
    ("aa", "junction_aa", False, 30_000),
    ("nt, V and J given", "junction", True, 300_000),
    ("aa, V and J given", "junction_aa", True, None),
)
#: Junctions of which the arithmetic is counted.
COUNTED = 60
#: Computes the same with a peer, in its own environment: JSON in, JSON out.
PEER = """
import importlib, json, sys, time
given = json.load(sys.stdin)
try:
    load = importlib.import_module("olga.load_model")
    engines = importlib.import_module("olga.generation_probability")
    fast = importlib.import_module("olga.performance.fast_pgen")
except ImportError as error:
    print(json.dumps({"missing": str(error)})); sys.exit()
kind = "VDJ" if given["d"] else "VJ"
genes = getattr(load, f"GenomicData{kind}")()
folder = given["model"]
genes.load_igor_genomic_data(
    f"{folder}/model_params.txt", f"{folder}/V_gene_CDR3_anchors.csv", f"{folder}/J_gene_CDR3_anchors.csv"
)
model = getattr(load, f"GenerativeModel{kind}")()
model.load_and_process_igor_model(f"{folder}/model_marginals.txt")
weights = getattr(engines, f"GenerationProbability{kind}")(model, genes)
if given.get("zeros"):
    weights.PinsVJ = [*weights.PinsVJ, *[0.0] * given["zeros"]]
engine = fast.FastPgen(weights)
found = {}
for name, rows in given["cases"].items():
    one = engine.compute_nt_CDR3_pgen if name.startswith("nt") else engine.compute_aa_CDR3_pgen
    for row in rows[:20]:
        one(*row)
    start = time.process_time()
    values = [float(one(*row)) for row in rows]
    found[name] = {"seconds": time.process_time() - start, "values": values}
print(json.dumps({"version": importlib.import_module("importlib.metadata").version("olga"), "found": found}))
"""


def best(run: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Processor seconds of the fastest run, and what it gave."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        result = run()
        times.append(time.process_time() - start)
    return min(times), result


def drawn(model: RecombinationModel, rows: int, folder: Path) -> dict[str, list[str]]:
    """Columns of productive junctions."""
    import pyarrow.parquet as pq

    path = folder / "drawn.parquet"
    generate_file(model, path, rows, seed=1)
    found: dict[str, list[str]] = pq.read_table(path).to_pydict()
    return found


def ours(model: RecombinationModel, table: dict[str, list[str]], repeat: int) -> dict[str, Any]:
    """Seconds and values of every case."""
    engine = GenerationProbability(model, threads=1)
    found = {}
    for name, column, given, _ in CASES:
        calls = [pa.array(table[f"{s}_call"]) if given else None for s in "vj"]
        texts, kind = pa.array(table[column]), name[:2]
        engine.compute(texts[:10], *(call[:10] if call is not None else None for call in calls), kind=kind)

        def run(texts: Any = texts, calls: Any = calls, kind: Any = kind) -> Any:
            return engine.compute(texts, *calls, kind=kind).pgen

        seconds, values = best(run, repeat)
        some = (call[:COUNTED] if call is not None else None for call in calls)
        counted = instructions_per_text(model, texts[:COUNTED], *some, kind)
        found[name] = {"seconds": seconds, "rows": len(texts), "values": values, "counted": counted}
    return found


def peers(python: str, program: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a program says in another environment."""
    done = subprocess.run(
        [python, "-c", program], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def others(
    model: RecombinationModel, table: dict[str, list[str]], repeat: int, folder: Path
) -> list[list[str]]:
    """Lines for sampling, inference and whole files."""
    sampler = JunctionSampler(model, seed=3)
    sampler.block(0, 10)
    n = 1 << 18
    seconds, _ = best(lambda: [sampler.block(first) for first in range(0, n, 1 << 15)], repeat)
    lines = [["generation, all junctions", f"{n / seconds:,.0f}", "2,000,000"]]
    if model.d:
        lines.append(["EM, per iteration", f"{inference(model, table, repeat):,.0f}", "30,000"])
    rows = len(table["junction"])
    source, out = folder / "drawn.parquet", folder / "out.parquet"
    seconds, _ = best(lambda: pgen_files([source], out, model, calls="ignore", threads=1), repeat)
    lines.append(["pgen of a file, nt", f"{rows / seconds:,.0f}", "-"])
    return lines


def inference(model: RecombinationModel, table: dict[str, list[str]], repeat: int) -> float:
    """Junctions a second and iteration."""
    from plait.dp.chain.graphs import CodedJunctions
    from plait.vdj.model.junctions import encode_texts, model_shapes

    encoded, shapes = encode_texts(pa.array(table["junction"]), "nt"), model_shapes(model)
    n = encoded.start.size
    first, roots = np.arange(n + 1), np.zeros(n, np.int32)
    v, j = roots + shapes.v.together, roots + shapes.j.together
    batch = CodedJunctions(encoded.codes, encoded.start, encoded.length, first, v, first, j)
    infer_model(model, lambda: [(encoded.parts, batch)], iterations=1, threads=1)
    seconds, _ = best(
        lambda: infer_model(model, lambda: [(encoded.parts, batch)], iterations=1, threads=1), repeat
    )
    return n / seconds


def main() -> None:
    """Run all of it and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--peer-rows", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model = read_model(options.model)
    with tempfile.TemporaryDirectory() as name:
        table = drawn(model, options.rows, Path(name))
        found = ours(model, table, options.repeat)
        rest = others(model, table, options.repeat, Path(name))
    n = min(options.peer_rows, options.rows)
    columns = {
        case: [table[column], *([table["v_call"], table["j_call"]] if given else [])]
        for case, column, given, _ in CASES
    }
    cases = {case: [list(row[:]) for row in zip(*lists, strict=True)][:n] for case, lists in columns.items()}
    given = {"model": str(options.model.resolve()), "d": bool(model.d), "cases": cases}
    report(model, found, rest, peers(options.peer_python, PEER, given), pairs_per_second(options.repeat))
    if options.json:
        facts = {name: {"per_second": f["rows"] / f["seconds"]} for name, f in found.items()}
        options.json.write_text(
            json.dumps({"version": __version__, "model": model.name, "cases": facts}, indent=2)
        )


def report(
    model: RecombinationModel,
    found: dict[str, Any],
    rest: list[list[str]],
    peer: dict[str, Any],
    limit: float,
) -> None:
    """Print the table."""
    version = f"OLGA {peer['version']} FastPgen" if "version" in peer else f"no OLGA ({peer['missing']})"
    print(f"plait {__version__}, {platform.machine()}, {host_lanes().width} lanes; {model.name}; {version}")
    print(
        f"arithmetic limit of one core: {limit / 1e9:.2f} G multiplications and additions of groups a second"
    )
    print(
        f"{'':28}{'plait/s':>12}{'asked':>12}{'of limit':>10}{'OLGA/s':>12}{'times':>8}"
        "  largest relative difference"
    )
    for name, _, _, asked in CASES:
        rate = found[name]["rows"] / found[name]["seconds"]
        counted = found[name]["counted"]
        most = max(counted[what, True] + counted[what, False] for what in ("add", "multiply"))
        line = f"{name:28}{rate:>12,.0f}{f'{asked:,}' if asked else '-':>12}{most * rate / limit:>10.0%}"
        if "found" in peer:
            theirs = peer["found"][name]
            values = np.array(theirs["values"])
            speed = len(values) / theirs["seconds"]
            mine = np.nan_to_num(found[name]["values"][: len(values)])
            both = (values > 0) & (mine > 0)
            apart = np.abs(mine[both] / values[both] - 1).max(initial=0)
            line += f"{speed:>12,.0f}{rate / speed:>8.0f}  {apart:.1e} over {both.sum()}"
            line += f"; {((values > 0) != (mine > 0)).sum()} zero in one alone"
        print(line)
    for what, rate_text, asked_text in rest:
        print(f"{what:28}{rate_text:>12}{asked_text:>12}")


if __name__ == "__main__":
    main()
