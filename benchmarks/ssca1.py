"""SSCA#1, kernels 1 and 2: the 200 best local alignments of two random sequences of codons, and their time.

    python benchmarks/ssca1.py [SCALE ...]

Two sequences of 2^(SCALE/2) random codons, with six verification sequences in both, two of which lack two
codons in one. Codons are compared as amino acids, or stops: equal ones score 5 (4 in SSCA#1 where the codons
differ; 64 letters are more than a matrix can have), others -3; a gap of g codons costs 8 + g. Kernel 1 finds
ends 5 codons apart that score 20 or more, kernel 2 their alignments. Checked: all six are found, the first
score is that of a search for the best alone, and tiles of another size give the same list. Then nucleotides
with 2/-3 and 7/2, whose local alignments in random text are short too, and one letter against itself. Seconds
of processor time of one thread, the best of several, in turns with those of the best score alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from commands import processor_name

from plait.align import Alignment, SubstitutionMatrix, make_scoring
from plait.align.aligner import Aligner, make_aligner
from plait.align.settings import SeveralBest
from plait.alphabets import GENETIC_CODE
from plait.dp.pairs import kbest

EMBEDDED = (
    "ACDEFGHIKLMNPQRSTVWY", "WYFMHKRILVAGSTCPNQDE", "MKVLAWRNDCQEGHISTYFP",
    "HQWCMYFKDNERGTSAPVIL", "TTSYQWLLMKRHGGACDEFN", "PLEASEFINDTHISWAYAND",
)  # fmt: skip
ASKED = SeveralBest(most=200, apart=5, min_score=20)
REPEATS = 3


def generate(scale: int, rng: np.random.Generator) -> tuple[str, str, list[tuple[int, int]]]:
    """Two sequences as amino acids, and where the embedded ones end in both."""
    size = int(2 ** (scale / 2))
    letters = np.array(list(GENETIC_CODE))
    pair = [letters[rng.integers(0, 64, size)] for _ in range(2)]
    slots = [rng.permutation(len(EMBEDDED)) for _ in range(2)]
    ends = []
    for number, acids in enumerate(EMBEDDED):
        copies = (acids, acids[:9] + acids[11:] if number % 3 == 2 else acids)
        at = [int(own[number]) * (size // 6) + int(rng.integers(0, size // 6 - 40)) for own in slots]
        for sequence, start, copy in zip(pair, at, copies, strict=True):
            sequence[start : start + len(copy)] = list(copy)
        ends.append((at[0] + len(copies[0]), at[1] + len(copies[1])))
    return "".join(pair[0]), "".join(pair[1]), ends


@contextmanager
def clocked(spent: dict[str, float]) -> Iterator[None]:
    """Add up what tracebacks take."""
    path = kbest._Apart._path

    def timed(*given: Any) -> Any:
        start = time.process_time()
        found = path(*given)
        spent["paths"] += time.process_time() - start
        return found

    kbest._Apart._path = timed  # type: ignore[method-assign]
    yield
    kbest._Apart._path = path  # type: ignore[method-assign]


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time, and what comes of it."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def measure(name: str, aligner: Aligner, query: str, target: str) -> list[Alignment]:
    """Print what the best score, all ends, and their alignments take."""
    batch = aligner.pair(query, target)
    times: list[tuple[float, float, float]] = []
    found: list[Alignment] = []
    for _ in range(REPEATS + 1):
        spent = {"paths": 0.0}
        alone, scores = seconds_of(lambda: aligner.score_codes(batch))
        with clocked(spent):
            all_, found = seconds_of(lambda: aligner.best_of_pair(batch, ASKED))
        assert found[0].score == scores[0]
        times.append((alone, all_ - spent["paths"], spent["paths"]))
    # In the first run kernels are loaded.
    alone, ends, paths = (min(own) for own in zip(*times[1:], strict=True))
    cells = int(batch.cells[0])
    print(
        f"{name:30} {cells:9.2g} cells: best score {alone:7.3f} s ({cells / alone / 1e9:5.2f} GCUPS), "
        f"{len(found):3} ends {ends:7.3f} s ({ends / alone:5.2f} x), their alignments {paths:.3f} s",
        flush=True,
    )
    return found


def ssca1(scale: int) -> None:
    """Kernels 1 and 2 at a scale."""
    query, target, ends = generate(scale, np.random.default_rng(scale))
    letters = "ACDEFGHIKLMNPQRSTVWY*"
    scores = np.full((len(letters), len(letters)), -3) + np.diag([8] * len(letters))
    scoring = make_scoring(SubstitutionMatrix("codons", letters, scores.astype(np.int32), "protein"), 9, 1)
    aligner = make_aligner(scoring, mode="local", threads=1, device="cpu")
    found = measure(f"SSCA#1, scale {scale}", aligner, query, target)
    near = [[abs(a.query_end - i) + abs(a.target_end - j) for a in found if a.score > 60] for i, j in ends]
    assert max(map(min, near)) <= 6, near
    tiles = kbest._TILE_ROWS, kbest._TILE_COLUMNS
    kbest._TILE_ROWS, kbest._TILE_COLUMNS = 384, 1_000
    again = aligner.best_of_pair(aligner.pair(query, target), ASKED)
    kbest._TILE_ROWS, kbest._TILE_COLUMNS = tiles
    assert again == found


def nucleotides(rows: int, columns: int) -> None:
    """Random text, and one letter."""
    rng = np.random.default_rng(1)
    drawn = ("".join(rng.choice(list("ACGT"), size)) for size in (rows, columns))
    aligner = make_aligner(make_scoring(kind="dna"), mode="local", threads=1, device="cpu")
    measure("random nucleotides", aligner, *drawn)


if __name__ == "__main__":
    print(processor_name(), flush=True)
    for scale in [int(word) for word in sys.argv[1:]] or [20, 26, 30, 34]:
        ssca1(scale)
    nucleotides(50_000, 200_000)
    one = make_aligner(make_scoring(kind="dna"), mode="local", threads=1, device="cpu")
    for letters in (3_000, 20_000):
        measure("one letter against itself", one, "A" * letters, "A" * letters)
