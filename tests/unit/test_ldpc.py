"""Parity-check codes: messages against a plain reference, answers against enumeration, grouping, files."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.cli import main
from plait.devices.target import CpuTarget, ReferenceTarget
from plait.errors import FormatError, InvalidInput
from plait.formats.files import read_array
from plait.ldpc import Code, code_named, decode, files, simulate
from plait.ldpc.codes import read_alist
from plait.ldpc.decoding import _DECODING, DecodeBatch, Parities, added, parity, without

HAMMING = Code("hamming", 7, [[0, 1, 2, 4], [0, 1, 3, 5], [0, 2, 3, 6]])
FULL = Code("full", 2, [[0], [0, 1]])
#: Its graph has no cycle: sum-product gives exact probabilities.
TREE = Code("tree", 8, [[0, 1, 2], [2, 3, 4], [4, 5], [2, 6, 7]])


def regular(seed: int, size: int, weight: int) -> Code:
    """Each column in three checks of so many."""
    rng = np.random.default_rng(seed)
    checks: list[list[int]] = []
    while len(checks) < 3 * size // weight:
        order = np.concatenate([rng.permutation(size) for _ in range(3)]).reshape(-1, weight)
        checks = [sorted(set(row)) for row in order.tolist() if len(set(row)) == weight]
        checks = checks if len(checks) == len(order) else []
    return Code("regular", size, checks)


def holds(code: Code, columns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    sums = np.add.reduceat(columns[:, code.bits], code.starts[:-1], axis=1)
    return (sums % 2 == 0).all(axis=1)


def received(code: Code, words: np.ndarray[Any, Any], sigma: float, seed: int) -> np.ndarray[Any, Any]:
    noise = np.random.default_rng(seed).normal(0, sigma, words.shape)
    return (1 - 2.0 * words + noise) * 2 / sigma**2


# --- codes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "n", "k", "columns"),
    often(
        3,
        [
            ("ar4ja-1/2-1024", 2048, 1024, 2560),
            ("ar4ja-2/3-1024", 1536, 1024, 1792),
            ("ar4ja-4/5-1024", 1280, 1024, 1408),
            ("ar4ja-2/3-4096", 6144, 4096, 7168),
            ("c2", 8160, 7136, 8176),
            ("wimax-1248", 1248, 624, 1248),
            ("wimax-576", 576, 288, 576),
        ],
    ),
)
def test_codes_of_standards(name: str, n: int, k: int, columns: int) -> None:
    code = code_named(name)
    assert (code.n, code.k, code.size) == (n, k, columns)
    # The two codes of smallest blocks have some.
    assert not four_cycles(code) or name in ("ar4ja-2/3-1024", "ar4ja-4/5-1024")
    information = np.random.default_rng(1).integers(0, 2, (3, k))
    words = code.encode(information)
    columns_of = np.zeros((3, code.size + 1), np.uint8)
    columns_of[:, code.sent] = words
    if name.startswith("ar4ja"):
        # Those that are not sent are what the decoder says they are.
        assert np.array_equal(words[:, :k], information)
        found = decode(np.where(words, -20.0, 20.0), code, device="cpu")
        assert found.found.all() and np.array_equal(found.information, information)
    else:
        assert holds(code, columns_of[:, :-1]).all()
    assert np.array_equal(words[:, -2:] * (name == "c2"), np.zeros((3, 2)))


@pytest.mark.parametrize("size", often(1, [4096, 16384]))
@pytest.mark.parametrize("rate", often(1, ["1/2", "2/3", "4/5"]))
def test_large_codes_are_as_the_standard_says(rate: str, size: int) -> None:
    code = code_named(f"ar4ja-{rate}-{size}")
    assert code.n == size * {"1/2": 2, "2/3": 1.5, "4/5": 1.25}[rate]
    assert code.starts.size - 1 == code.size - size
    # Of rate 4/5 a quarter of a block has some, by either source of the tables.
    assert four_cycles(code) == (size // 32 if rate == "4/5" else 0)


def four_cycles(code: Code) -> int:
    """Pairs of columns that two checks have in common; a wrong number in a table makes some."""
    pairs: set[tuple[int, int]] = set()
    every = 0
    for first, last in itertools.pairwise(code.starts.tolist()):
        own = set(itertools.combinations(code.bits[first:last].tolist(), 2))
        pairs |= own
        every += len(own)
    return every - len(pairs)


def test_small_codes_are_systematic_and_complete() -> None:
    for code in (HAMMING, TREE):
        words = code.encode(list(itertools.product((0, 1), repeat=code.k)))
        every = np.array(list(itertools.product((0, 1), repeat=code.size)))
        assert {*map(bytes, words)} == {*map(bytes, every[holds(code, every)].astype(np.uint8))}
        assert np.array_equal(words[:, code.information], list(itertools.product((0, 1), repeat=code.k)))


# --- messages -------------------------------------------------------------------------------------------


def box(a: float, b: float) -> float:
    """The logarithm of the ratio of the parity of two bits."""
    sign = math.copysign(1, a) * math.copysign(1, b)
    return sign * min(abs(a), abs(b)) + math.log1p(math.exp(-abs(a + b))) - math.log1p(math.exp(-abs(a - b)))


def plainly(code: Code, prior: list[float], iterations: int, layered: bool) -> list[float]:
    """Sums of logarithms after some iterations, message by message."""
    sums, messages = list(prior), [0.0] * code.bits.size
    for _ in range(iterations):
        said = sums if layered else list(sums)
        sums = sums if layered else list(prior)
        for first, last in itertools.pairwise(code.starts.tolist()):
            bits = code.bits[first:last].tolist()
            heard = [said[bit] - messages[first + k] for k, bit in enumerate(bits)]
            for k, bit in enumerate(bits):
                others = [one for j, one in enumerate(heard) if j != k]
                message = others[0]
                for one in others[1:]:
                    message = box(message, one)
                sums[bit] = (heard[k] if layered else sums[bit]) + message
                messages[first + k] = message
    return sums


@pytest.mark.parametrize("layered", [False, True])
def test_messages_are_those_of_a_plain_reference(layered: bool) -> None:
    code = regular(1, 48, 6)
    prior = np.random.default_rng(2).normal(0.6, 1.2, (4, code.size))
    sums: list[Any] = []

    def watched(*args: Any) -> Any:
        from plait.ldpc.decoding import decode_group

        found = decode_group(*args)
        # Sums of flooding change places with those of before.
        iterations, layered, _ = args[5]
        sums.append(args[4][1 if layered else 1 + iterations % 2])
        return found

    from plait.ldpc.decoding import _run

    for iterations in (1, 5):
        batch = DecodeBatch(code, prior, "sum-product", layered, iterations, np.float64)
        _, counts, _ = _run(watched, batch, CpuTarget(1))
        pairs = sums[-1].reshape(-1, 2, sums[-1].shape[1])[: code.size]
        for word in np.flatnonzero(counts == iterations):
            expected = plainly(code, prior[word].tolist(), iterations, layered)
            found = np.log(pairs[:, 0, word] / pairs[:, 1, word])
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert (counts == iterations).any()


@pytest.mark.parametrize("schedule", ["flooding", "layered"])
def test_probabilities_on_a_tree_are_exact(schedule: Any) -> None:
    every = np.array(list(itertools.product((0, 1), repeat=TREE.size)))
    every = every[holds(TREE, every)]
    ratios = np.random.default_rng(4).normal(0, 2, (50, TREE.size))
    # More probable bits by enumeration; those of the tree need not be a word of the code.
    weights = np.exp(-(ratios @ every.T))
    ones = weights @ every / weights.sum(axis=1)[:, None]
    found = decode(ratios, TREE, iterations=6, schedule=schedule, dtype="float64", device="cpu")
    free = found.iterations == 6
    assert np.array_equal(found.bits[free], ones[free] > 0.5)
    assert free.any()


def test_most_probable_words_of_a_small_code() -> None:
    code = regular(3, 24, 6)
    words = code.encode(list(itertools.product((0, 1), repeat=code.k)))
    rng = np.random.default_rng(5)
    sent = words[rng.integers(0, len(words), 300)]
    ratios = received(code, sent, 0.55, 6)
    best = words[np.argmin(ratios @ words.T, axis=1)]
    for method in ("sum-product", "min-sum"):
        found = decode(ratios, code, method=method, device="cpu")  # type: ignore[arg-type]
        assert holds(code, found.bits[found.found]).all()
        # Of words that are found, nearly all are the most probable ones, and nearly all are found.
        assert (found.bits[found.found] == best[found.found]).all(axis=1).mean() > 0.97
        assert found.found.mean() > 0.85


def test_single_errors_of_hamming_codes_are_corrected() -> None:
    words = HAMMING.encode(list(itertools.product((0, 1), repeat=4)))
    for method, schedule in itertools.product(("sum-product", "min-sum"), ("layered", "flooding")):
        for flipped in range(7):
            ratios = np.where(words, -3.0, 3.0)
            ratios[:, flipped] *= -0.3
            found = decode(ratios, HAMMING, method=method, schedule=schedule, device="cpu")  # type: ignore[arg-type]
            assert np.array_equal(found.bits, words) and found.found.all()
    done = decode(np.where(words, -1.0, 1.0), HAMMING, device="cpu")
    assert done.iterations.tolist() == [0] * 16
    # What is as probable counts as 0.
    assert decode(np.zeros((1, 7)), HAMMING, device="cpu").bits.tolist() == [[0] * 7]


@pytest.mark.interpreted
@pytest.mark.parametrize("method", often(1, ["sum-product", "min-sum"]))
@pytest.mark.parametrize("layered", often(1, [False, True]))
def test_grouping_and_devices(method: Any, layered: bool) -> None:
    code = regular(7, 24, 6)
    sent = code.encode(np.random.default_rng(8).integers(0, 2, (30, code.k)))
    kind: Any = np.int8 if method == "min-sum" else np.float32
    batch = DecodeBatch(code, received(code, sent, 0.8, 9), method, layered, 8, kind)
    once = CpuTarget(1).launch(_DECODING, batch)
    assert 0 < once[2].sum() < 30 and len(set(once[1].tolist())) > 3
    for target, lanes in ((CpuTarget(3), 0), (ReferenceTarget(), 4), (ReferenceTarget(), 16)):
        again = target.launch(_DECODING, batch._replace(lanes=lanes))
        assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    alone = CpuTarget(1).launch(_DECODING, batch._replace(ratios=batch.ratios[20:21]))
    assert np.array_equal(alone[0][0], once[0][20]) and alone[1][0] == once[1][20]


def test_whole_numbers_are_quarters() -> None:
    code = regular(7, 24, 6)
    units = np.random.default_rng(1).integers(-128, 128, (9, 24)).astype(np.int8)
    found = decode(units, code, method="min-sum", device="cpu")
    again = decode(units / 4, code, method="min-sum", device="cpu")
    assert np.array_equal(found.bits, again.bits)


def least_plainly(code: Code, prior: list[int], iterations: int, layered: bool) -> tuple[list[int], int]:
    """Bits of a word by min-sum in whole numbers, message by message, and after how many iterations."""

    def held(value: int) -> int:
        return max(min(value, 127), -127)

    sums, messages = list(prior), [0] * code.bits.size
    checks = list(itertools.pairwise(code.starts.tolist()))
    for count in range(iterations + 1):
        bits = [int(value < 0) for value in sums]
        if count == iterations or not any(sum(bits[n] for n in code.bits[a:b]) % 2 for a, b in checks):
            return bits, count
        said = sums if layered else list(sums)
        sums = sums if layered else list(prior)
        for first, last in checks:
            columns = code.bits[first:last].tolist()
            heard = [held(said[n] - messages[first + k]) for k, n in enumerate(columns)]
            for k, n in enumerate(columns):
                others = [one for j, one in enumerate(heard) if j != k]
                least = min([127, *(min(abs(one), 63) for one in others)])
                told = (least - least // 4) * (-1) ** sum(one < 0 for one in others)
                sums[n] = held((heard[k] if layered else sums[n]) + told)
                messages[first + k] = told
    raise AssertionError("iterations are never over")


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("size", often(1, [8, 24]))
def test_min_sum_is_that_of_a_plain_reference(layered: bool, size: int) -> None:
    # Checks of one bit, of two and of the same bits; and what says nothing, or more than is held.
    odd = Code("odd", 8, [[0, 1, 2, 4], [3], [0, 1, 2, 4], [5, 6], [4, 5, 6, 7], [0, 7]])
    code = odd if size == 8 else regular(7, 24, 6)
    units = np.random.default_rng(3).normal(12, 40, (150, size)).round().clip(-127, 127).astype(np.int8)
    units[::5, ::2] = 0
    schedule: Any = "layered" if layered else "flooding"
    found = decode(units, code, method="min-sum", schedule=schedule, iterations=7, device="cpu")
    expected = [least_plainly(code, word.tolist(), 7, layered) for word in units]
    assert found.bits.tolist() == [bits for bits, _ in expected]
    assert found.iterations.tolist() == [count for _, count in expected]
    assert len(set(found.iterations.tolist())) > 3


@given(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3))
def test_algebra_of_parities(values: list[float]) -> None:
    alg = Parities(0.0, 1.0, 1e-200, 1e-17)
    a, b, c = ((one, 1 - one) for one in values)
    assert parity(a, parity(b, c)) == pytest.approx(parity(parity(a, b), c))
    assert parity(a, (1.0, 0.0)) == a
    assert without(alg, added(alg, a, b), b) == pytest.approx(a)
    assert sum(added(alg, a, b)) == pytest.approx(1)


# --- rates of errors ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rates_fall_and_do_not_depend_on_threads() -> None:
    code = code_named("wimax-576")
    found = simulate(code, [0.5, 1.5, 3.0], words=600, errors=600, device="cpu", threads=1)
    assert found.wer[0] > 0.5 > found.wer[1] > found.wer[2]
    assert (found.wer_low <= found.wer).all() and (found.wer < found.wer_high).all()
    assert found.word_errors[2] == 0 == found.wer_low[2]
    assert (found.ber_low <= found.ber).all() and (found.ber <= found.ber_high).all()
    alone = simulate(code, [1.5], words=600, errors=600, device="cpu", threads=3)
    assert alone.word_errors[0] == found.word_errors[1] and alone.bit_errors[0] == found.bit_errors[1]
    told: list[tuple[float, int]] = []
    few = simulate(code, [0.5], words=2000, errors=20, device="cpu", progress=lambda *one: told.append(one))
    assert few.words.tolist() == [512] and told == [(0.5, 512)]


@pytest.mark.slow
def test_wimax_is_where_it_is_published() -> None:
    # Waterfall of (1248, 624): below 1e-4 of bits at 2.0 dB, above 1e-2 at 1.0 dB, by sum-product.
    found = simulate(code_named("wimax-1248"), [1.0, 2.0], words=1024, device="cpu")
    assert found.ber_low[0] > 1e-2 and found.ber[1] < 3e-4


# --- files and the command ------------------------------------------------------------------------------

ALIST = (
    "7 3\n3 4\n3 2 2 2 1 1 1\n4 4 4\n1 2 3\n1 2 0\n1 3 0\n2 3 0\n1 0 0\n2 0 0\n3 0 0\n"
    "1 2 3 5\n1 2 4 6\n1 3 4 7\n"
)


def test_alist(tmp_path: Path) -> None:
    path = tmp_path / "h.alist"
    path.write_text(ALIST)
    code = read_alist(path)
    assert np.array_equal(code.bits, HAMMING.bits) and np.array_equal(code.starts, HAMMING.starts)
    # Without zeros that fill up.
    path.write_text(ALIST.replace(" 0", ""))
    assert np.array_equal(read_alist(path).bits, HAMMING.bits)


def test_zero_bytes_in_the_header_of_an_array(tmp_path: Path) -> None:
    header = b" 'ran_order': False, 'shape': (2, 2), }".ljust(88) + b"\n" + bytes(29)
    path = tmp_path / "words.npy"
    path.write_bytes(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(32))
    with pytest.raises(FormatError, match=r"a \.npy file of numbers"):  # Python 3.12: SystemError within
        read_array(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("7 3\n", "7 x\n", "line 1: found 7 x, expected numbers of columns"),
        ("7 3\n", "7\n", "line 1: found 7, expected numbers of columns and of checks"),
        ("3 2 2 2 1 1 1", "3 2 2 2 1 1", "line 3: found 3 2 2 2 1 1, expected weights of 7 columns"),
        ("\n1 2 4 6\n", "\n1 2 4 8\n", "line 13: found 1 2 4 8, expected 4 different columns of a check, 1"),
        ("\n1 2 4 6\n", "\n1 2 4 4\n", "line 13: found 1 2 4 4, expected 4 different columns of a check"),
        ("\n1 2 4 6\n", "\n1 2 4 7\n", "line 13: found it in one list, expected column 6 in"),
        ("1 3 4 7\n", "", "found the end of the file, expected 4 different columns of a check"),
        ("1 3 4 7\n", "1 3 4 7\n1\n", "line 15: found more lines, expected the end of the file"),
    ],
)  # fmt: skip
def test_bad_alist(old: str, new: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "h.alist"
    assert old in ALIST
    path.write_text(ALIST.replace(old, new))
    with pytest.raises(FormatError, match=said):
        read_alist(path)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: code_named("ar4ja"), "code: found 'ar4ja', expected an alist file, or ar4ja-1/2-1024"),
        (lambda: decode(np.zeros((1, 6)), HAMMING), r"ratios: found \(1, 6\), expected \(words, 7\)"),
        (lambda: decode([[np.nan] * 7], HAMMING), "ratios: found no number in word 0, bit 0"),
        (lambda: decode([["a"] * 7], HAMMING), "ratios: found an array of <U1"),
        (lambda: decode(np.zeros((1, 7)), HAMMING, iterations=-1), "iterations: found -1"),
        (lambda: decode(np.zeros((1, 7)), HAMMING, method="x"), "method: found 'x', expected one of"),  # type: ignore[arg-type]
        (lambda: HAMMING.encode([[1, 2, 0, 0]]), "information: found other numbers, expected bits"),
        (lambda: HAMMING.encode([[1, 0]]), r"information: found \(1, 2\), expected \(words, 4\)"),
        (lambda: Code("x", 3, [[0, 3]]), "bits: found 3, expected a whole number from 0 to 2"),
        (lambda: Code("x", 3, [[0, -1]]), "bits: found -1, expected a whole number from 0 to 2"),
        (lambda: Code("x", 3, [[0]], [-2, 1]), "sent: found -2, expected a whole number from -1 to 2"),
        (lambda: Code("x", 3, [[0]], known=[7]), "known: found 7, expected a whole number from 0 to 2"),
        (lambda: simulate(FULL, [1]), "code: found no bits of information in full, expected one or more"),
        (lambda: simulate(HAMMING, [1], words=0), "words: found 0, expected a whole number of at least 1"),
        (lambda: simulate(HAMMING, [math.nan]), "ebn0: found nan, expected -100 to 100"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call()


def test_checks_may_come_one_by_one() -> None:
    found = Code("again", 7, (check for check in ([4, 2, 1, 0], [5, 3, 1, 0], [6, 3, 2, 0])))
    assert np.array_equal(found.bits, HAMMING.bits) and np.array_equal(found.starts, HAMMING.starts)


def test_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    information = np.random.default_rng(1).integers(0, 2, (5, 288)).astype(np.uint8)
    np.save("bits.npy", information)
    assert main(["ldpc", "encode", "bits.npy", "--code", "wimax-576", "-o", "words.npy"]) == 0
    words = np.load("words.npy")
    np.save("llrs.npy", received(code_named("wimax-576"), words, 0.6, 2))
    line = ["ldpc", "decode", "llrs.npy", "--code", "wimax-576", "--device", "cpu"]
    assert main([*line, "-o", "out.npy", "--report", "report.tsv"]) == 0
    assert "5 words, 5 of them of the code" in capsys.readouterr().err
    assert np.array_equal(np.load("out.npy"), words)
    assert Path("report.tsv").read_text().startswith("word\tfound\titerations\n0\t")
    assert main([*line, "-o", "out.npy", "--information", "--method", "min-sum"]) == 0
    assert np.array_equal(np.load("out.npy"), information)
    simulated = ["ldpc", "simulate", "--code", "wimax-576", "--ebn0", "1:2:0.5", "--words", "64"]
    assert main([*simulated, "-o", "rates.tsv"]) == 0
    assert len(Path("rates.tsv").read_text().splitlines()) == 4
    assert main(simulated) == 0
    assert capsys.readouterr().out.count("\n") == 4


def test_files_are_decoded_in_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = code_named("wimax-576")
    information = np.random.default_rng(1).integers(0, 2, (7, code.k))
    ratios = received(code, code.encode(information), 0.75, 2).astype(np.float32)
    np.save("bits.npy", np.asfortranarray(information))
    np.save("llrs.npy", ratios)
    monkeypatch.setattr(files, "_BITS", 3 * code.n)
    assert main(["ldpc", "encode", "bits.npy", "--code", "wimax-576", "-o", "words.npy"]) == 0
    assert np.array_equal(np.load("words.npy"), code.encode(information))
    line = ["ldpc", "decode", "llrs.npy", "--code", "wimax-576", "--device", "cpu", "-o", "out.npy"]
    assert main([*line, "--report", "report.tsv"]) == 0
    found = decode(ratios, code, device="cpu")
    assert np.array_equal(np.load("out.npy"), found.bits)
    assert [line.split("\t")[2] for line in Path("report.tsv").read_text().splitlines()[1:]] == list(
        map(str, found.iterations)
    )
    ratios[5, 9] = np.nan
    np.save("llrs.npy", ratios)
    assert main(line) == 2
    assert "llrs.npy: found no number in word 5, bit 9, expected numbers" in capsys.readouterr().err
    np.save("llrs.npy", ratios[:0])
    assert main(line) == 0
    assert np.load("out.npy").shape == (0, 576)
    with open("llrs.npy", "ab") as file:
        file.write(b"x")
    assert main(line) == 2
    assert "bytes behind the array" in capsys.readouterr().err


def test_outputs_are_checked_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("llrs.npy", np.ones((2, 576)))
    for work in ("decode", "simulate"):
        monkeypatch.setattr(files, work, lambda *_, **__: pytest.fail("the work has begun"))
    decoding = ["ldpc", "decode", "llrs.npy", "--code", "wimax-576", "-o", "out.npy", "--report"]
    simulating = ["ldpc", "simulate", "--code", "wimax-576", "--ebn0", "1", "-o"]
    for words, name in (
        (decoding, "out.npy"),
        (decoding, "r.txt"),
        (simulating, "r.txt"),
        (decoding, "x/r.tsv"),
    ):
        assert main([*words, name]) == 2
        assert f"{name}'" in capsys.readouterr().err
    assert not Path("out.npy").exists()


def test_a_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "h.alist"
    path.write_text(ALIST)
    assert code_named(str(path)).size == 7
    path.write_text("2 1\n1 2\n1 1\n2\n1\n1\n1 2\n")
    assert code_named(str(path)).size == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["decode", "llrs.npy", "--code", "x", "-o", "o.npy"], "code: found 'x', expected an alist file"),
        (["decode", "llrs.npy", "--code", "wimax-576", "-o", "o.txt"], "a name that ends in .npy"),
        (["decode", "llrs.npy", "--code", "wimax-576", "-o", "llrs.npy"], "which is also an input"),
        (["decode", "llrs.npy", "--code", "wimax-576", "-o", "o.npy"], "ratios: found (2, 3), expected"),
        (["decode", "text.npy", "--code", "wimax-576", "-o", "o.npy"], "text.npy: found"),
        (["decode", "objects.npy", "--code", "wimax-576", "-o", "o.npy"], "objects.npy: found"),
        (["decode", "none.npy", "--code", "wimax-576", "-o", "o.npy"], "none.npy"),
        (["encode", "llrs.npy", "--code", "wimax-576", "-o", "o.npy"], "information: found (2, 3)"),
        (["simulate", "--code", "wimax-576", "--ebn0", "1:x"], "ebn0: found '1:x', expected dB"),
        (["simulate", "--code", "wimax-576", "--ebn0", "1:9:0"], "ebn0: found '1:9:0', expected dB"),
    ],
)
def test_bad_requests(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("llrs.npy", np.zeros((2, 3)))
    np.save("objects.npy", np.array([None, {}], object))
    Path("text.npy").write_text("no array")
    before = {path.name for path in tmp_path.iterdir()}
    assert main(["ldpc", *words]) == 2
    assert said in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == before
