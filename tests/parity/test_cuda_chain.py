"""Path counts on a GPU are those of the CPU, bit for bit: counts, regions and bounds.

Small batches run in the CUDA simulator too. A simulated warp is 32 Python threads, so those are tiny.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'plait[cuda13]'", allow_module_level=True)

from support.cases import Batch, Junction, make_germline, run_chain
from support.problems import PROBLEMS, WORKED_EXAMPLE

from plait.alphabets import encode
from plait.devices import cuda_devices
from plait.devices.cuda import SIMULATED
from plait.devices.cuda_devices import devices
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.chain import gpu_count_launch as cuda_chain
from plait.dp.chain import gpu_tables as cuda_pieces
from plait.dp.chain.launches import PATH_COUNTS, CountBatch
from plait.dp.chain.tables import REGION_FIELDS, ChainOutput, ChainTables, Junctions
from plait.lang.algebras import BIG_COUNT, COUNT, PROBABILITY, SATURATING_COUNT
from plait.lang.lanes import LANES, host_lanes
from plait.vdj.chain import chain_kind, chain_tables
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.models import PathModel

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]

SERVED = ("dp1", "dp2-one-strand", "dp2-two-strands", "vj-dp1", "vj-dp2")
SWEEP = PathModel(sweep_pi=(0, 1, 2, 3, 4), sweep_nu=tuple(range(11)))
MODELS = (
    PathModel(),
    PathModel(strands=2, pi=0, nu=0),
    PathModel(pi=6, nu=3, nu_vd=1, nu_dj=7),
    PathModel(nu=30, strands=2),
    SWEEP,
    PathModel(strands=2, nu_dj=2, sweep_pi=(0, 3), sweep_nu=tuple(range(0, 60, 2))),
    PathModel(name="dp1"),
    PathModel(name="dp1", pi=0, max_n=0, empty_d="once"),
    PathModel(name="dp1", max_n=90, empty_d="none"),
)


class OnGpu:
    """The devices, as a target; what they do not serve is an error."""

    def launch(self, problem: Any, batch: CountBatch) -> None:
        on_gpu(*batch)


def on_gpu(*batch: Any) -> None:
    """Fill the last of the fields of a batch."""
    assert cuda_chain.count_batch(CountBatch(*batch), CudaTarget(devices())) is batch[-1]


def on_cpu(*batch: Any) -> None:
    """The same on the CPU."""
    CpuTarget().launch(PATH_COUNTS, CountBatch(*batch))


def agree(batch: Batch) -> None:
    """A batch is counted alike."""
    gpu: Any = OnGpu()
    # Lanes are for texts that the GPU leaves to the CPU.
    found = run_chain(batch, gpu, COUNT, host_lanes())
    wanted = run_chain(batch, CpuTarget(1), COUNT, host_lanes())
    for name in ChainOutput._fields:
        assert found[name] == wanted[name], name


@pytest.mark.parametrize("problem", SERVED)
@pytest.mark.parametrize("case", range(3))
def test_edge_cases(problem: str, case: int) -> None:
    cases = PROBLEMS[problem].edge_cases
    for batch in cases[case::3]:
        agree(batch)


@pytest.mark.parametrize("problem", SERVED)
def test_drawn_batches(problem: str) -> None:
    @settings(
        max_examples=3 if SIMULATED else 100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(PROBLEMS[problem].inputs)
    def same(batch: Batch) -> None:
        agree(batch)

    same()


@given(st.lists(st.integers(0, 7), min_size=1, max_size=9), st.integers(1, 4))
@settings(max_examples=3 if SIMULATED else 30, deadline=None)
def test_pieces_do_not_matter(picks: Sequence[int], most: int) -> None:
    reads = ("ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC", "ACC", "", "NNACGT", "T" * 130, "CTTC", "ACCTTC", "AC")
    batch = Batch(
        WORKED_EXAMPLE.germline,
        PathModel(pi=1, nu=1, sweep_nu=(0, 1)),
        tuple(Junction(reads[k]) for k in picks),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_chain, "_PIECE", most * 300)
        patch.setattr(cuda_chain, "_LEAST", 1)
        patch.setattr(cuda_pieces, "_APART", 1)
        agree(batch)


@pytest.mark.parametrize("model", [PathModel(pi=1, nu=2, sweep_nu=(0, 2)), PathModel(name="dp1", max_n=3)])
@pytest.mark.parametrize("genes", [("GGGACAGGGGGC", "TTTT", "CC"), ("GGGAC",), ()])
def test_only_what_is_wanted(model: PathModel, genes: tuple[str, ...]) -> None:
    germline = make_germline(["ACCTGC"], genes, ["CTTC"], locus="TRB" if genes else "TRA")
    parts = [encode(read) for read in ("ACCTGCGGGACTTC", "ACCTCTTC", "ANNCTTC")]
    length = np.array([part.size for part in parts], np.int64)
    zero = np.zeros(len(parts), np.int64)
    texts = Junctions(np.concatenate(parts), np.cumsum(length) - length, length, zero, zero)
    tables = chain_tables(germline, model, germline.chain)
    m, d = tables.out_lane.size, len(genes)
    for full, empty, none, regions in ((min(d, 1), 0, 0 if d else m, 0), (d, d, 0, 0), (d, 0, m, 20)):
        shapes = (3, full, m), (3, empty, m), (3, none), (3, 0, m), (3, regions)
        found, wanted = (
            ChainOutput(*(np.full(shape, -7, np.int64) for shape in shapes), np.zeros(3)) for _ in range(2)
        )
        kind = chain_kind(model, host_lanes())
        on_gpu(kind, COUNT, tables, texts, found)
        on_cpu(kind, COUNT, tables, texts, wanted)
        for field, values in wanted._asdict().items():
            np.testing.assert_array_equal(getattr(found, field), values, err_msg=field)


def test_the_rest_is_counted_by_the_host_it_is_given() -> None:
    """With the threads that the user asked for."""
    asked: list[int] = []

    class Host(CpuTarget):
        def launch(self, problem: Any, batch: Any) -> Any:
            asked.append(batch.texts.start.size)
            return super().launch(problem, batch)

    germline = make_germline(["ACCTGC"], ["GGGAC"], ["CTTC"])
    parts = [encode(read) for read in ("ACCTTC", "T" * 140, "ACCCTTC")]
    length = np.array([part.size for part in parts], np.int64)
    zero = np.zeros(3, np.int64)
    texts = Junctions(np.concatenate(parts), np.cumsum(length) - length, length, zero, zero)
    model = PathModel(pi=1, nu=2, sweep_nu=(0, 2))
    tables, kind = chain_tables(germline, model, "vdj"), chain_kind(model, host_lanes())
    shapes = (3, 1, 2), (3, 0, 2), (3, 2), (3, 0, 2), (3, 0)
    out = ChainOutput(*(np.zeros(shape, np.int64) for shape in shapes), np.zeros(3))
    target = CudaTarget(devices(), 1)
    target.host = Host(1)
    target.launch(PATH_COUNTS, CountBatch(kind, COUNT, tables, texts, out))
    assert asked == [1] and not np.isnan(out.bound).any()


def test_pieces_fit_the_device_with_the_least_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    free = {0: 4 << 30, 1: 1 << 28}
    here: list[int] = []

    @contextlib.contextmanager
    def on_device(number: int) -> Iterator[None]:
        here.append(number)
        yield

    monkeypatch.setattr(cuda_devices, "on_device", on_device)
    monkeypatch.setattr(cuda_devices, "free_memory", lambda **how: free[here[-1]])
    assert cuda_devices.least_free_memory([0, 1, 0]) == (1 << 28, 1)
    assert here == [0, 1]
    n = 100_000
    texts = Junctions(np.zeros(30, np.uint8), *(np.zeros(n, np.int64) for _ in range(4)))
    shapes = (n, 1, 9), (n, 1, 9), (n, 9), (n, 0, 9), (n, 0)
    out = ChainOutput(*(np.zeros(shape, np.int64) for shape in shapes), np.zeros(n))
    free[1] = 1 << 22
    plans = [cuda_chain._plan(numbers, texts, out) for numbers in ([0], [0, 1], [1, 0])]
    assert plans[0].slots * plans[0].piece_bytes > 1 << 22
    assert all(plan.slots * plan.piece_bytes < 1 << 22 for plan in plans[1:])


def drawn_texts(germline: GermlineSet, count: int, seed: int) -> Junctions:
    """Junctions joined from what is left of V, D and J, and some of random letters, codes among them."""
    rng = np.random.default_rng(seed)
    letters = np.array([1, 2, 4, 8], np.uint8)
    v = [encode(a.cdr3_end or "") for a in germline.v]
    d = [encode(a.sequence) for a in germline.d] or [np.zeros(0, np.uint8)]
    j = [encode(a.cdr3_end or "") for a in germline.j]
    of_v, of_j = rng.integers(0, len(v), count), rng.integers(0, len(j), count)
    parts = []
    for k in range(count):
        gene = d[rng.integers(len(d))]
        a, b = np.sort(rng.integers(0, gene.size + 1, 2))
        read = np.concatenate([
            v[of_v[k]][: max(0, v[of_v[k]].size - rng.integers(0, 8))],
            rng.choice(letters, rng.integers(0, 8)),
            gene[a:b],
            rng.choice(letters, rng.integers(0, 8)),
            j[of_j[k]][rng.integers(0, 8) :],
        ])  # fmt: skip
        if k % 50 == 0:
            read = rng.choice(letters[: rng.integers(1, 5)], rng.integers(0, 150))
        elif k % 50 == 1 and read.size:
            read[rng.integers(read.size)] = rng.integers(0, 16)
        parts.append(read)
    length = np.array([part.size for part in parts], np.int64)
    return Junctions(np.concatenate(parts), np.cumsum(length) - length, length, of_v, of_j)


def germline_of(name: str) -> GermlineSet:
    """A germline set of the package, or one with many and long D genes."""
    if name != "long_d":
        return load_germline(name)
    rng = np.random.default_rng(4)
    genes = ["".join(rng.choice(list("ACGT"), size)) for size in (45, 31, 33, 7, 1, 50)]
    return make_germline(["ACCTGCAGTGCAGA", "ACCTG", "A"], genes, ["CAAACACAGAAGTCTTC", "CTTC"])


@pytest.mark.parametrize("name", ["mouse_trb", "human_trb", "human_tra", "long_d"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: "-".join(map(str, model.as_dict().values())))
def test_large_batches(name: str, model: PathModel) -> None:
    germline = germline_of(name)
    texts = drawn_texts(germline, 4 if SIMULATED else 3000, 5)
    tables = chain_tables(germline, model, germline.chain)
    kind = chain_kind(model, host_lanes())
    assert cuda_chain.serves(kind, COUNT, tables)
    n, m, d = texts.start.size, tables.out_lane.size, tables.words.length.size
    shapes = (n, d, m), (n, d, m), (n, m), (n, 0, m), (n, len(REGION_FIELDS))
    found, wanted = (
        ChainOutput(*(np.full(shape, -7, np.int64) for shape in shapes), np.zeros(n)) for _ in range(2)
    )
    on_gpu(kind, COUNT, tables, texts, found)
    on_cpu(kind, COUNT, tables, texts, wanted)
    for field, values in wanted._asdict().items():
        np.testing.assert_array_equal(getattr(found, field), values, err_msg=field)


def test_totals_of_a_counter() -> None:
    pa = pytest.importorskip("pyarrow", reason="junctions come in Arrow arrays")
    from plait.vdj import PathCounter

    reads = ["TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC", "", "TGTGCCAGCANTTGGGACTGGTATGAACAGTACTTC", "TGTTTC"]
    columns = [pa.array(part, pa.large_string()) for part in (reads, ["TRBV13-1"] * 4, ["TRBJ2-7"] * 4)]
    model = PathModel(sweep_pi=(0, 2), sweep_nu=(0, 1))
    found, wanted = (
        PathCounter("mouse_trb", model, device=device, threads=1).totals(*columns)
        for device in ("cuda:0", "cpu")
    )
    assert found.provenance.device.startswith("cuda:0")
    np.testing.assert_array_equal(found.status, wanted.status)
    np.testing.assert_array_equal(found.total, wanted.total)


def test_batches_at_the_same_time() -> None:
    # The simulator runs one kernel at a time, but what stands around kernels runs side by side there too.
    germline = load_germline("mouse_trb")
    texts = drawn_texts(germline, 2 if SIMULATED else 20_000, 6)
    jobs = []
    for model in (PathModel(nu=2), PathModel(name="dp1"), SWEEP, SWEEP)[: 2 if SIMULATED else 4]:
        tables, kind = chain_tables(germline, model, "vdj"), chain_kind(model, host_lanes())
        jobs.append((tables, kind))

    def run(job: tuple[ChainTables, Any]) -> list[np.ndarray]:
        tables, kind = job
        n, m, d = texts.start.size, tables.out_lane.size, tables.words.length.size
        shapes = (n, d, m), (n, d, m), (n, m), (n, 0, m), (n, len(REGION_FIELDS))
        out = ChainOutput(*(np.zeros(shape, np.int64) for shape in shapes), np.zeros(n))
        on_gpu(kind, COUNT, tables, texts, out)
        return list(out)

    alone = [run(job) for job in jobs]
    with ThreadPoolExecutor(3 if SIMULATED else 8) as pool:
        together = list(pool.map(run, jobs * (2 if SIMULATED else 4)))
    for k, found in enumerate(together):
        for a, b in zip(found, alone[k % len(jobs)], strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_served() -> None:
    germline = make_germline(["ACCTG"], ["GGGAC"], ["CATTC"])
    two = make_germline(["ACCTG"], ["GGGAC"], ["CATTC"], locus="TRD")

    def served(model: PathModel, alg: Any = COUNT, of: GermlineSet = germline, dtype: Any = np.int64) -> bool:
        tables = chain_tables(of, model, of.chain, dtype)
        return cuda_chain.serves(chain_kind(model, LANES[1]), alg, tables)

    assert all(served(model) for model in MODELS)
    assert not served(SWEEP, SATURATING_COUNT)
    assert not served(SWEEP, PROBABILITY, dtype=np.float64)
    assert not served(SWEEP, BIG_COUNT, dtype=object)
    assert not served(SWEEP, of=two)
    # Running sums of that many levels and patterns have no room.
    assert not served(PathModel(sweep_pi=tuple(range(17)), sweep_nu=(0, 200)))
