"""Write path_counts.json: counts and region calls of fixed junctions, from the oracles alone.

Run ``python tests/golden/make_path_counts.py`` to write the file again; it must come out the same. Nothing of
the package's schedules, targets or germline data takes part: ends and junctions are written out here. The
ends are those of genes of the mouse TRB and TRA loci; the junctions are made up.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.oracles import call_regions, count_dp1, count_dp2, letter_counts

V = {
    "V1": "TGCACCTGCAGTGCAGA",
    "V13-1": "TGTGCCAGCAGTGATG",
    "V19": "TGTGCCAGCAGTATAG",
    "V20": "TGTGGTGCTAGGG",
    "coded": "TGTGCNAGCRGT",
}
D = {"D1": "GGGACAGGGGGC", "D2": "GGGACTGGGGGGGC", "coded": "GGRACW"}
J = {
    "J1-1": "CAAACACAGAAGTCTTCTTT",
    "J2-1": "TAACTATGCTGAGCAGTTCTTC",
    "J2-7": "CTCCTATGAACAGTACTTC",
    "coded": "AACYGRGTTT",
}
#: What joins a J: D2 only the second cluster.
JOINS = {"J1-1": ("D1",), "J2-1": ("D1", "D2"), "J2-7": ("D1", "D2"), "coded": ("D1", "coded")}

JUNCTIONS = [
    ("V1", "J1-1", "TGCACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTCTTT"),
    ("V1", "J1-1", "TGCACCTGCAGTGCAGACAAACACAGAAGTCTTCTTT"),
    ("V1", "J1-1", "TGCACCTGCAGTGCAGATCTGCACTGCTTTGTGTTTGAAACACAGAAGTCTTCTTT"),
    ("V1", "J2-1", "TGCACCTGCAGTGCGGGACTGGGGGGCTATGCTGAGCAGTTCTTC"),
    ("V1", "J2-7", "TGCACCTGCAGTACGGGACAGGGAGGAACAGTACTTC"),
    ("V1", "J2-7", "TGCACCTGCAGTGCAGATCCCGGGACAGGGGGCGCCCATAGGAGCTCCTATGAACAGTACTTC"),
    ("V13-1", "J1-1", "TGTGCCAGCAGTGATGGGGACAGGGGCAAACACAGAAGTCTTCTTT"),
    ("V13-1", "J1-1", "TGTGCCAGCAGTGATGCATCTTTGCAAACACAGAAGTCTTCTTT"),
    ("V13-1", "J1-1", "TGTGCCAGCAGTGACCGGGACACGCAGAAGTCTTCTTT"),
    ("V13-1", "J2-1", "TGTGCCAGCAGTGATGCGGGACTGGGGGGGCGATAACTATGCTGAGCAGTTCTTC"),
    ("V13-1", "J2-1", "TGTGCCAGCAGTGACTATGCTGAGCAGTTCTTC"),
    ("V13-1", "J2-1", "TGTGCCAGCAGTTTAGACTGGGGTAACTATGCTGAGCAGTTCTTC"),
    ("V13-1", "J2-7", "TGTGCCAGCAGTGATGGACAGGGGGCCTCCTATGAACAGTACTTC"),
    ("V13-1", "J2-7", "TGTGCCAGCAGTGGTACCTATGAACAGTACTTC"),
    ("V13-1", "J2-7", "TGTGCCNGCAGTGATGGNACRGGGGGCCTCYTATGAACAGTACTTC"),
    ("V19", "J1-1", "TGTGCCAGCAGTATAGCTATGGGACAAACACAGAAGTCTTCTTT"),
    ("V19", "J1-1", "TGTGCCAGCAGTATTGTCCCACACAGAAGTCTTCTTT"),
    ("V19", "J2-1", "TGTGCCAGCAGTATCGACTGGGGGGTGCTGAGCAGTTCTTC"),
    ("V19", "J2-1", "TGTGCCAGCAGNNNNNNNNNNNTATGCTGAGCAGTTCTTC"),
    ("V19", "J2-7", "TGTGCCAGCAGTATAGGGGGCTCCTATGAACAGTACTTC"),
    ("V19", "J2-7", "TGTGCCAGCAGTAAACGTGAACAGTACTTC"),
    ("V20", "J1-1", "TGTGGTGCTAGGGGACAGGGTACACAGAAGTCTTCTTT"),
    ("V20", "J2-1", "TGTGGTGCTCGGGACTGGGGGGGCTAACTATGCTGAGCAGTTCTTC"),
    ("V20", "J2-7", "TGTGGTGCTAGACCCTAGGGACCTATGAACAGTACTTC"),
    ("V20", "J2-7", "TGTGGTGCTAWGSACAKTATGAACAGTACTTC"),
    ("V20", "coded", "TGTGGTGCTAGGGACTAACCGAGTTT"),
    ("coded", "J1-1", "TGTGCTAGCAGTGGAACACAAACACAGAAGTCTTCTTT"),
    ("coded", "coded", "TGTGCGAGCGGTAGGGACAAACTGGGTTT"),
    ("coded", "coded", "TGTGCNAGCRGTGGRACWAACYGRGTTT"),
    ("V13-1", "J2-7", "TGTTTC"),
]

DP2 = [(strands, pi, nu) for strands in (1, 2) for pi in (0, 2, 4) for nu in (0, 3, 10)]


def regions(read: str, v: str, ds: list[str | None], j: str) -> dict[str, Any]:
    call = call_regions(read, v, ds, j, pi=4)
    first, last = call.prefix_match, len(read) - call.suffix_match
    before, after = (call.fragment_start, call.fragment_end) if call.fragment_match else (last, last)
    spans = {"before": (first, before), "after": (after, last), "between": (first, last)}
    return {**call._asdict(), **{name: letter_counts(read, *span) for name, span in spans.items()}}


def counts(read: str, v: str, names: tuple[str, ...], j: str) -> dict[str, Any]:
    dp2 = {}
    for strands, pi, nu in DP2:
        how: dict[str, Any] = {"pi": pi, "strands": strands}
        by_d = [count_dp2(read, v, [D[name]], j, limits=(nu, nu), **how) for name in names]
        dp2[f"strands {strands}, pi {pi}, nu {nu}"] = {
            "full": [found.full for found in by_d],
            "zero_d": [found.zero_d for found in by_d],
            "no_d": count_dp2(read, v, [], j, limits=(nu,), **how).full,
        }
    apart = [count_dp2(read, v, [D[name]], j, pi=4, limits=(2, 6), strands=1).full for name in names]
    return {"dp1": [count_dp1(read, v, [D[name]], j) for name in names], "dp2": dp2, "dp2_apart": apart}


def entry(v: str, j: str, read: str) -> dict[str, Any]:
    """All that is known of one junction."""
    allowed = [D[name] if name in JOINS[j] else None for name in D]
    known = counts(read, V[v], JOINS[j], J[j]) | {"regions": regions(read, V[v], allowed, J[j])}
    return {"v": v, "j": j, "d": list(JOINS[j]), "junction": read} | known


def text() -> str:
    """The whole file: genes, and one line for each junction."""
    genes = json.dumps({"v": V, "d": D, "j": J, "joins": JOINS}, indent=1)
    lines = ",\n  ".join(json.dumps(entry(*junction)) for junction in JUNCTIONS)
    return f'{genes[:-2]},\n "junctions": [\n  {lines}\n ]\n}}\n'


if __name__ == "__main__":
    Path(__file__).with_name("path_counts.json").write_text(text(), encoding="ascii", newline="\n")
