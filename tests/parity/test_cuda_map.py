"""Diagonals of reads on GPUs, or in the simulator, against the CPU: reads of any length and any errors."""

from __future__ import annotations

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.mapping import gpu_verification
from plait.mapping.genome import CODE_OF_BYTE, read_genome
from plait.mapping.seeds import PackedReads, pack_reads_kernel
from plait.mapping.verification import BEYOND, DIAGONALS, WITHIN, DiagonalBatch

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


def batch_of(seed: int, errors: list[int], *, edits: bool) -> DiagonalBatch:
    """Reads of a text with changes, some of N, and diagonals where they come from and a little beside."""
    rng = np.random.default_rng(seed)
    text = rng.choice(list("ACGTN"), 700, p=[0.3, 0.2, 0.2, 0.28, 0.02])
    reads, keys = [], []
    for k in range(24):
        at, size = int(rng.integers(1, 500)), int(rng.choice([30, 63, 64, 65, 128, 150]))
        read = list(text[at : at + size])
        for _ in range(int(rng.integers(0, min(2 * max(errors) + 2, size // 2)))):
            place = int(rng.integers(len(read)))
            if k % 3 == 0:
                read[place] = "A"
            elif k % 3 == 1:
                read.insert(place, "C")
            else:
                del read[place]
        reads.append("".join(read))
        keys += [2 * k << 32 | 1024 + at + beside for beside in (0, int(rng.integers(-2, 3)))]
    lengths = np.array([len(read) for read in reads], np.int64)
    rows = 2 * len(reads)
    packed = PackedReads(
        np.zeros((rows, int(lengths.max())), np.uint8),
        np.zeros((rows, -(-int(lengths.max()) // 64) + 1, 3), np.int64),
        np.repeat(lengths, 2),
        np.repeat(rng.choice(errors, len(reads)), 2),
    )
    letters = np.frombuffer(bytearray("".join(reads).encode()), np.uint8)
    pack_reads_kernel(letters, np.concatenate([[0], np.cumsum(lengths)]), CODE_OF_BYTE, packed)
    words = read_genome({"c": "".join(text)}).words
    return DiagonalBatch(words, packed, np.array(keys, np.int64), edits)


@pytest.mark.parametrize(
    ("errors", "edits"), [([0], True), ([0, 1, 3], True), ([5], False), ([15, 16], True), ([31], True)]
)
def test_diagonals(errors: list[int], edits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_verification, "_LEAST", 8)
    batch = batch_of(sum(errors) + edits, errors, edits=edits)
    expected = CpuTarget(1).launch(DIAGONALS, batch)
    kinds = {"few": expected < WITHIN, "within": expected == WITHIN, "beyond": expected == BEYOND}
    assert kinds["few"].any() and (kinds["within"].any() or not edits or max(errors) == 0)
    for devices in (1, 2):
        np.testing.assert_array_equal(CudaTarget((0,) * devices).launch(DIAGONALS, batch), expected)
    none = batch._replace(keys=batch.keys[:0])
    assert CudaTarget((0,)).launch(DIAGONALS, none).size == 0
