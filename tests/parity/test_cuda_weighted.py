"""Generation probabilities on a GPU are those of the CPU.

Sums are taken in another order there, and products may be rounded once with the sum they go into; of the
values, which are sums of some thousand products without cancellation, that changes less than 1e-12, relative.
Zeros are the same. Small batches run in the CUDA simulator too.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'plait[cuda13]'", allow_module_level=True)

from support.chain_values import chain_in
from support.generation_problems import GENERATION_ALGEBRAS, GENERATION_PROBLEMS, batch_texts
from support.recombination import GENETIC_CODE, drawn_junctions, probability_of, small_model

from plait.devices import cuda_devices, cuda_target
from plait.devices import cuda_target as device_trials
from plait.devices.cuda import SIMULATED
from plait.devices.cuda_devices import devices
from plait.dp.chain import gpu_tables as cuda_pieces
from plait.dp.chain import gpu_weigh_launch as cuda_weighted
from plait.dp.chain import launches
from plait.dp.chain.gpu_tables import warp_parts
from plait.errors import DeviceFailure, DeviceMemoryError
from plait.vdj.model import GenerationProbability, ModelGene, RecombinationModel
from plait.vdj.model.junctions import model_shapes, parts_of

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]

BOUND = 1e-12
FEW = 2 if SIMULATED else 20
seeds = st.integers(0, 1 << 30)


def agree(model: RecombinationModel, texts: Sequence[str], kind: Any = "nt", **calls: Any) -> list[float]:
    """A batch has the same values on the GPU, which does all of it, and on the CPU."""
    engine = GenerationProbability(model, threads=1, device="cuda")
    found = engine.compute(texts, **calls, kind=kind)
    expected = GenerationProbability(model, threads=1).compute(texts, **calls, kind=kind)
    assert found.status.tolist() == expected.status.tolist()
    assert found.pgen.tolist() == pytest.approx(expected.pgen.tolist(), rel=BOUND, abs=0, nan_ok=True)
    return found.pgen.tolist()


def none_left(patch: pytest.MonkeyPatch) -> None:
    """Make it an error that the GPU leaves a text."""
    run = cuda_weighted.run_weighted

    def watched(*arguments: Any) -> Any:
        left = run(*arguments)
        assert not left.size
        return left

    patch.setattr(cuda_weighted, "run_weighted", watched)


def read(text: str) -> str:
    """Amino acids of the whole codons of a text."""
    return "".join(GENETIC_CODE[text[k : k + 3]] for k in range(0, len(text) // 3 * 3, 3))


@settings(max_examples=FEW, deadline=None)
@given(seed=seeds, genes=st.integers(1, 3), most=st.integers(0, 5))
def test_nucleotides(seed: int, genes: int, most: int) -> None:
    model = small_model(seed, genes=genes, most=most)
    with pytest.MonkeyPatch.context() as patch:
        none_left(patch)
        agree(model, drawn_junctions(model, seed, 3 if SIMULATED else 40))


@settings(max_examples=FEW, deadline=None)
@given(seed=seeds, d=st.booleans())
def test_codes_of_several_nucleotides(seed: int, d: bool) -> None:
    model = small_model(seed, d=d)
    rng = np.random.default_rng(seed)
    texts = drawn_junctions(model, seed, 2 if SIMULATED else 20)
    for k, text in enumerate(texts):
        at = rng.integers(len(text))
        texts[k] = text[:at] + str(rng.choice(list("ACGTRYSWKMBDHVN"))) + text[at + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        none_left(patch)
        agree(model, texts)


@settings(max_examples=FEW, deadline=None)
@given(seed=seeds, d=st.booleans(), set_at=st.integers(0, 1))
def test_amino_acids_and_motifs(seed: int, d: bool, set_at: int) -> None:
    model = small_model(seed, d=d, genes=3, letters=4, most=4)
    texts = [read(text) for text in drawn_junctions(model, seed, 2 if SIMULATED else 20)]
    with pytest.MonkeyPatch.context() as patch:
        none_left(patch)
        agree(model, texts, "aa")
        agree(model, [text[:set_at] + "." + text[set_at + 1 :] + "[LSR*]" for text in texts], "motif")


def test_values() -> None:
    model = small_model(11)
    text = drawn_junctions(model, 11, 1)[0]
    assert agree(model, [text]) == pytest.approx([probability_of(model, [text])], rel=BOUND, abs=0)


@pytest.mark.parametrize("algebra", ["max_product", "log_sum"])
@pytest.mark.parametrize("problem", ["vdj-nt", "vdj-aa", "vj-nt"])
def test_other_algebras(problem: str, algebra: str) -> None:
    found = GENERATION_PROBLEMS[problem]
    chosen = GENERATION_ALGEBRAS[algebra]
    for batch in found.edge_cases[: 1 if SIMULATED else None]:
        shapes = model_shapes(batch.model)
        chain = chain_in(chosen.algebra, batch.model, shapes)
        parts, texts = batch_texts(batch, shapes.v, shapes.j)
        out = np.zeros(len(batch.texts))
        left = cuda_weighted.run_weighted([0], chain, parts, texts, batch.plain, out, chosen.algebra)
        assert not left.size
        expected = [chosen.answer(ways) for ways in found.oracle(batch)]
        assert out.tolist() == pytest.approx(expected, rel=BOUND, abs=0)


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_calls(d: bool) -> None:
    model = small_model(5, d=d, genes=3)
    texts = drawn_junctions(model, 5, 4 if SIMULATED else 12)
    v = ["TRXV1", "TRXV2*01,TRXV3", None, "none"] * 3
    j = ["TRXJ1, TRXJ3", "TRXJ2*01"] * 6
    agree(model, texts, v_call=v[: len(texts)])
    agree(model, texts, v_call=v[: len(texts)], j_call=j[: len(texts)])
    agree(model, [read(text) for text in texts], "aa", j_call=j[: len(texts)])


def many_contexts(d: bool) -> RecombinationModel:
    """More D genes than a group of contexts, or more J genes than lanes."""
    model = small_model(9, d=d, genes=2, letters=4)
    number = 6 if d else 35
    first = (model.d if d else model.j)[0]
    rng = np.random.default_rng(9)
    genes = tuple(replace(first, name=f"{first.name[:4]}{k}*01") for k in range(number))
    if d:
        table = rng.dirichlet(np.ones(number * len(model.j))).reshape(1, number, -1)
        return replace(
            model, d=genes, p_dj=table, p_d_deletions=np.repeat(model.p_d_deletions[:1], number, axis=0)
        )
    table = rng.dirichlet(np.ones(number), len(model.v))[:, None, :]
    cuts = np.repeat(model.p_j_deletions[:1], number, axis=0)
    return replace(model, j=genes, p_dj=table, p_j_deletions=cuts)


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_many_contexts(d: bool) -> None:
    model = many_contexts(d)
    texts = drawn_junctions(model, 1, 2 if SIMULATED else 30)
    agree(model, texts)
    agree(model, [read(text) for text in texts], "aa")


def test_long_texts() -> None:
    """More symbols than lanes, and more starts."""
    rng = np.random.default_rng(2)
    model = small_model(2, letters=2, most=40)
    ends = "".join(rng.choice(list("AC"), 40)), "".join(rng.choice(list("GT"), 45))
    v = ModelGene("TRXV1*01", "AC" + ends[0], 2, "F")
    j = ModelGene("TRXJ1*01", ends[1] + "GC", len(ends[1]) - 3, "F")
    cuts = np.full((2, 40), 1 / 40)
    model = replace(model, v=(v, model.v[1]), j=(j, model.j[1]), p_v_deletions=cuts, p_j_deletions=cuts)
    middle = "".join(rng.choice(list("ACGT"), 30))
    texts = [ends[0] + middle + ends[1], ends[0][:30] + middle + "N" + ends[1][8:], ends[0] + ends[1]]
    assert agree(model, texts[: 2 if SIMULATED else 3])[0] > 0


@pytest.mark.parametrize("kind", ["nt", "aa"])
def test_pieces_and_sizes_do_not_matter(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(4, letters=2)
    texts = drawn_junctions(model, 4, 5 if SIMULATED else 200)
    if kind == "aa":
        texts = [read(text) for text in texts]
    whole = agree(model, texts, kind)
    monkeypatch.setattr(cuda_weighted, "_PIECE", 2)
    monkeypatch.setattr(cuda_weighted, "_LEAST", 1)
    monkeypatch.setattr(cuda_weighted, "_SIZES", np.array([9, 11, 13, 40, 1 << 15]))
    monkeypatch.setattr(cuda_pieces, "_APART", -1 << 20)
    assert agree(model, texts, kind) == whole


@pytest.mark.parametrize("kind", ["nt", "aa"])
def test_what_leaves_shared_memory_is_left(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(6)
    texts = drawn_junctions(model, 6, 3)
    texts = [text + texts[0] * k for k, text in enumerate(texts)]
    facts = cuda_devices.device_facts(0)
    monkeypatch.setattr(cuda_weighted, "_SIZES", np.array([12, 24, 48, 96, 1 << 15]))
    for most in (1200, 4000, 1):
        monkeypatch.setattr(cuda_devices._Kept, "tables", OrderedDict())
        monkeypatch.setattr(
            cuda_weighted, "device_facts", lambda device, most=most: facts._replace(shared_per_block=most)
        )
        agree(model, [read(text) for text in texts] if kind == "aa" else texts, kind)


def test_a_device_that_fails_is_left_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(8)
    texts = drawn_junctions(model, 8, 4)
    expected = GenerationProbability(model, threads=1).compute(texts).pgen
    engine = GenerationProbability(model, threads=1, device="cuda")
    errors = [
        DeviceFailure("cuda:0", reason="a test", fix="none"),
        DeviceMemoryError("cuda:0", needed=1, free=0, fix="none"),
    ]

    def fail(*arguments: Any) -> Any:
        raise errors.pop()

    monkeypatch.setattr(cuda_weighted, "run_weighted", fail)
    with pytest.raises(DeviceMemoryError):
        engine.compute(texts)
    monkeypatch.setattr(launches, "_LEAST_TEXTS", 1)
    monkeypatch.setattr(device_trials._Found, "failures", {})
    monkeypatch.setattr(device_trials._Found, "left", set())
    sparing: Any = cuda_target.CudaTarget(devices(), 1, sparing=True)
    monkeypatch.setattr(engine, "_target", sparing)
    with pytest.warns(RuntimeWarning, match="the CPU does it instead"):
        found = engine.compute(texts)
    assert np.array_equal(found.pgen, expected)
    assert found.provenance.device == "cpu"


def test_small_batches_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(8)
    engine = GenerationProbability(model, threads=1, device="cuda")
    monkeypatch.setattr(engine, "_target", cuda_target.CudaTarget(devices(), 1, sparing=True))

    def never(*arguments: Any) -> Any:
        raise AssertionError("a small batch is not worth the start of a GPU")

    monkeypatch.setattr(cuda_weighted, "run_weighted", never)
    found = engine.compute(drawn_junctions(model, 8, 4))
    assert found.pgen.all()
    assert found.provenance.device == "cpu"


def test_texts_of_too_many_ends_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without D genes a motif that may be almost anything begins and ends with more than is noted."""
    rng = np.random.default_rng(3)
    model = small_model(3, d=False, genes=2, letters=4, most=6)
    v = tuple(
        ModelGene(f"TRXV{k + 1}*01", "AC" + "".join(rng.choice(list("ACGT"), 16)), 2, "F") for k in range(24)
    )
    cuts = np.full((24, 14), 1 / 14)
    table = rng.dirichlet(np.ones(2), 24)[:, None, :]
    model = replace(model, v=v, p_v=np.full(24, 1 / 24), p_v_deletions=cuts, p_dj=table)
    left: list[int] = []
    run = cuda_weighted.run_weighted

    def watched(*arguments: Any) -> Any:
        found = run(*arguments)
        left.extend(found.tolist())
        return found

    monkeypatch.setattr(cuda_weighted, "run_weighted", watched)
    text = drawn_junctions(model, 3, 1, shortest=12)[0][:12]
    texts = [read(text), "XXXXX"]
    agree(model, texts, "aa")
    assert left == [1]
    engine = GenerationProbability(model, threads=1, device="cuda")
    alone = engine.compute(texts[:1], kind="aa").provenance.device
    assert alone.startswith("cuda:0") and "cpu" not in alone
    assert engine.compute(texts, kind="aa").provenance.device == f"{alone} and cpu"


def test_tables_of_the_model_stay_while_those_of_motifs_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model(6)
    monkeypatch.setattr(cuda_devices._Kept, "tables", OrderedDict())
    monkeypatch.setattr(cuda_devices, "_TABLES", 2)
    made = []
    launch = cuda_weighted.WeightedLaunch
    monkeypatch.setattr(cuda_weighted, "WeightedLaunch", lambda *given: made.append(given) or launch(*given))
    engine = GenerationProbability(model, threads=1, device="cuda")
    text = read(drawn_junctions(model, 6, 1)[0])
    for k in range(3):
        assert engine.compute([text[:k] + "." + text[k + 1 :]], kind="motif").pgen[0] > 0
    assert len(made) == 1


START = """
import threading
from concurrent.futures import ThreadPoolExecutor
from support.recombination import drawn_junctions, small_model
from plait.vdj.model import GenerationProbability
model = small_model(8)
texts = drawn_junctions(model, 8, 4)
engine = GenerationProbability(model, threads=1, device="cuda")
together = threading.Barrier(16)
def run(k):
    together.wait(300)
    return engine.compute(texts).pgen.tolist()
with ThreadPoolExecutor(16) as pool:
    found = list(pool.map(run, range(16)))
assert all(values == found[0] for values in found)
"""


@pytest.mark.skipif(SIMULATED, reason="the simulator has no device to start")
def test_threads_start_a_device_together() -> None:
    made = subprocess.Popen(
        [sys.executable, "-c", START], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said, _ = made.communicate(timeout=300)
    assert made.returncode == 0, said


def test_parts_that_a_warp_cannot_read() -> None:
    assert warp_parts(parts_of([["A"], ["AC"]])) is None
    found = warp_parts(parts_of([["TTA", "TTG", "CTA", "CTC", "CTG", "CTT"]]))
    assert found is not None and int(found.places) == 3
