"""Write a table of simulated rearrangements of one subject.

The same options give the same file, to the byte::

    python tools/simulate_repertoires.py --rows 2000 --seed 1 -o mouse1.tsv
"""

from __future__ import annotations

import argparse
from pathlib import Path

from support.repertoires import simulated_repertoire


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="AIRR table, tab-separated")
    parser.add_argument("--germline", default="mouse_trb", help="name of a bundled set with D genes")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--genes", type=int, help="most V and most J alleles that take part")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    table = simulated_repertoire(given.rows, germline=given.germline, genes=given.genes, seed=given.seed)
    columns = table.drop_columns("subject_id").to_pydict()
    lines = [list(columns), *zip(*columns.values(), strict=True)]
    given.output.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))


if __name__ == "__main__":
    main()
