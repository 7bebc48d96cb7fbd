"""Expected sharing: on simulated repertoires of which all is known, and on those of eight mice.

    python benchmarks/vdj_sharing.py [--mice TABLE --model FOLDER] [--seed 1]

Simulated: six subjects of 20,000 to 40,000 clonotypes from human_TRB, of which a share passes selection;
told are the fitted factor and clonotypes by number of subjects, observed and expected, which must agree
within four standard deviations. TABLE has a column ``subject_id``; FOLDER is a recombination model of its
locus.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.formats.sorted_runs import text_hash
from plait.vdj import GenerationSettings, SharingSettings, SharingTable, sharing
from plait.vdj.model import JunctionSampler, RecombinationModel, load_model
from plait.vdj.model.junctions import translations

SIZES = (20_000, 30_000, 20_000, 40_000, 20_000, 30_000)


def simulated(model: RecombinationModel, selection: float, seed: int) -> pa.Table:
    """Rows of subjects; whether an amino acid sequence has passed selection is told by its hash value."""
    sampler, parts, first = JunctionSampler(model, seed=seed), [], 0
    while sum(part.num_rows for part in parts) < sum(SIZES):
        draws = sampler.block(first, 1 << 16)
        first += 1 << 16
        texts = pa.array(draws.take(np.flatnonzero(draws.productive)).texts(), pa.large_string())
        acids = translations(texts).cast(pa.large_string())
        chance = (text_hash(acids) * np.uint64(2 * seed + 1)) * 2.0**-64
        parts.append(pa.table({"junction": texts, "junction_aa": acids}).filter(pa.array(chance < selection)))
    rows = pa.concat_tables(parts).slice(0, sum(SIZES))
    return rows.append_column("subject_id", [np.repeat([f"s{k}" for k in range(len(SIZES))], SIZES)])


def told(found: SharingTable, seconds: float) -> None:
    """Print what came of it."""
    assert found.expected is not None
    low, high = found.expected.selection_interval or (np.nan, np.nan)
    public = found.clonotypes.filter(pc.less(found.clonotypes["q_sharing"], 0.05))
    print(f"  {found.rows:,} rows, {found.clonotypes.num_rows:,} clonotypes, {seconds:.1f} s of processor")
    print(f"  selection factor {found.expected.selection:.3f} ({low:.3f} to {high:.3f})")
    print(f"  more public than expected (q < 0.05): {public.num_rows:,}")
    print("  subjects   observed     expected        sd")
    for row in found.expected.table.to_pylist():
        numbers = f"{row['observed']:10,d} {row['expected']:12,.1f} {row['expected_sd']:9,.1f}"
        print(f"  {row['subjects']:8d} {numbers}")


def main() -> None:
    """Simulate, and read the mice if they are given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mice", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    cpu = Path("/proc/cpuinfo")
    names = cpu.read_text().split("model name") if cpu.exists() else []
    print(names[1].split("\n")[0].strip("\t: ") if names[1:] else "unknown processor", f"({os.cpu_count()})")
    human = load_model("human_TRB")
    for selection in (1.0, 0.2):
        rows = simulated(human, selection, chosen.seed)
        begun = time.process_time()
        found = sharing(
            rows,
            settings=SharingSettings(key="cdr3aa"),
            generation=GenerationSettings(model=human, device="cpu"),
        )
        print(f"simulated, selection factor {selection}")
        told(found, time.process_time() - begun)
        assert found.expected is not None
        for row in found.expected.table.to_pylist()[1:]:
            assert abs(row["observed"] - row["expected"]) <= 4 * row["expected_sd"] + 0.5, row
    if chosen.mice is None:
        return
    model = load_model(chosen.model)
    for key in ("cdr3nt+v+j", "cdr3aa+v+j"):
        begun = time.process_time()
        found = sharing(
            chosen.mice,
            settings=SharingSettings(key=key),
            generation=GenerationSettings(model=model, device="cpu"),
        )
        print(f"{chosen.mice.name}, {key}, {model.name}")
        told(found, time.process_time() - begun)


if __name__ == "__main__":
    main()
