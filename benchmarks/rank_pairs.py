"""The k best local alignments of one long pair over ranks of MPI, beside one process.

    mpirun -n 4 python -m mpi4py benchmarks/rank_pairs.py [--residues 200000] [--device cpu]
    python benchmarks/rank_pairs.py --processes 4 [--gpus]

Random nucleotides, 2/-3 and gaps of 7 and 2, the 200 best of which the ends lie 5 apart. Every rank has one
thread; with ``--gpus`` each of the processes sees one GPU. Without an MPI library `--processes` starts the
ranks and lets them talk through pipes. Printed: seconds from start to end, kernels compiled before, by
numbers of ranks; the alignments of all ranks are checked to be those of one process.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from typing import Any

import numpy as np
from commands import processor_name

from plait.align import local_best
from plait.run.mpi import MpiExecutor


class Pipes:
    """What `MpiExecutor` uses of a communicator, for rank 0 and those that talk with it alone."""

    def __init__(self, rank: int, size: int, others: dict[int, Any]) -> None:
        self.rank, self.size, self.others = rank, size, others

    def Get_rank(self) -> int:  # noqa: N802  # names of mpi4py
        """Number of this rank."""
        return self.rank

    def Get_size(self) -> int:  # noqa: N802
        """Number of all."""
        return self.size

    def allgather(self, value: Any) -> list[Any]:
        """All are on one machine."""
        return [value] * self.size

    def send(self, value: Any, to: int) -> None:
        """To a rank."""
        self.others[to].send(value)

    def iprobe(self, source: int) -> bool:
        """Whether a rank has sent anything."""
        found: bool = self.others[source].poll()
        return found

    def recv(self, source: int) -> Any:
        """What a rank has sent."""
        return self.others[source].recv()


def pair(residues: int) -> tuple[str, str]:
    """Two random sequences."""
    letters = np.frombuffer(b"ACGT", np.uint8)[np.random.default_rng(2).integers(0, 4, (2, residues))]
    return letters[0].tobytes().decode(), letters[1].tobytes().decode()


def measure(ranks: MpiExecutor | None, residues: int, device: str) -> tuple[float, list[Any]]:
    """Seconds of the second call, and what it found."""
    how: Any = {"ranks": ranks, "threads": 1, "device": device}
    query, target = pair(residues)
    for size in (residues // 4, residues):
        start = time.perf_counter()
        found = local_best(query[:size], target[:size], 200, **how)
        seconds = time.perf_counter() - start
    return seconds, [(one.score, one.query_end, one.target_end, one.cigar) for one in found]


def follow(rank: int, size: int, pipe: Any, residues: int, gpu: int | None) -> None:
    """One of the processes besides the first."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    ranks = MpiExecutor(Pipes(rank, size, {0: pipe}))
    pipe.send(measure(ranks, residues, "cpu" if gpu is None else "cuda")[1])


def over_processes(size: int, residues: int, gpus: bool) -> tuple[float, list[list[Any]]]:
    """Seconds, and what each of the ranks found."""
    context = multiprocessing.get_context("spawn")
    pipes = {rank: context.Pipe() for rank in range(1, size)}
    started = [
        context.Process(target=follow, args=(rank, size, end, residues, rank if gpus else None))
        for rank, (_, end) in pipes.items()
    ]
    for process in started:
        process.start()
    if gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    here = {rank: end for rank, (end, _) in pipes.items()}
    seconds, found = measure(MpiExecutor(Pipes(0, size, here)), residues, "cuda" if gpus else "cpu")
    answers = [found, *(end.recv() for end in here.values())]
    for process in started:
        process.join()
    return seconds, answers


def main() -> None:
    """Measure, check and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--residues", type=int, default=200_000)
    parser.add_argument("--processes", type=int, nargs="*", default=[])
    parser.add_argument("--gpus", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if not options.processes:
        ranks = MpiExecutor()
        seconds, found = measure(ranks, options.residues, options.device)
        if ranks.rank == 0:
            alone, expected = measure(None, options.residues, options.device)
            assert found == expected
            print(f"{options.residues:,} nt: 1 process {alone:.2f} s, {ranks.size} ranks {seconds:.2f} s")
        return
    device = "cuda" if options.gpus else "cpu"
    if options.gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    alone, expected = measure(None, options.residues, device)
    print(f"{processor_name()}, {device}; 2 x {options.residues:,} nt: one process {alone:.2f} s", flush=True)
    for size in options.processes:
        seconds, answers = over_processes(size, options.residues, options.gpus)
        assert answers == [expected] * size
        print(f"{size:3} ranks {seconds:7.2f} s ({alone / seconds:.2f} x), equal on all", flush=True)


if __name__ == "__main__":
    main()
