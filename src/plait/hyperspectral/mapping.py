"""Samples of types that the standard does not have as integers of up to 32 bits, and back, bit for bit."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import UNCONVERTED, check_sample_type
from plait.hyperspectral.cubes import CubeSource

Kind = Literal["offset", "quotient", "product", "levels", "order"]
#: Types by name, and in what ways their samples become integers, the first that fits.
_KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "int64": ("offset",),
    "uint64": ("offset",),
    "float32": ("quotient", "product", "levels", "order"),
    "float64": ("quotient", "product", "levels"),
}
_MOST_DIGITS: Final = 7
#: The standard has samples of up to 32 bits.
_STANDARD_BYTES: Final = 4
_MOST: Final = 1 << 32
#: Different numbers of all bands that are kept, and samples that there are for each at the least.
_MOST_LEVELS: Final = 1 << 22
_SAMPLES_A_LEVEL: Final = 8
#: Samples that are looked at before all are.
_FIRST: Final = 1 << 12
#: Samples that are read at a time, few enough to stay in the processor's cache.
_SAMPLES: Final = 1 << 18
_WORDS: Final[dict[Kind, str]] = {
    "offset": "integers less {base}",
    "quotient": "whole numbers divided by 1e{digits}",
    "product": "whole numbers times 1e-{digits}",
    "levels": "places among the numbers that a band has",
    "order": "bit patterns in the order of the numbers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMapping:
    """How samples of type `dtype` became integers from 0 on.

    What `base` is taken from is, by `kind`: an integer (offset); a whole number which over 10**`digits`, or
    times 10**-`digits`, is the sample (quotient, product); or the bit pattern without its last `shift` bits,
    all zero, as a number that grows with the sample (order): there negative ones count down from -1. Of bands
    with few different numbers the integer is the place among them (levels): `levels` has these.
    """

    dtype: str
    kind: Kind
    base: int = 0
    digits: int = 0
    shift: int = 0
    levels: str = ""

    def to_integers(self, samples: NDArray[Any]) -> NDArray[np.uint32]:
        """Samples, (rows, columns, bands), as integers.

        InvalidInput if they are none of those that the mapping was made for.
        """
        if self.kind == "levels":
            whole = _places(_ordered(samples), _unpacked(self.levels))
        elif self.kind == "order":
            whole = _ordered(samples)
        else:
            whole = _whole(samples, self.kind, self.digits)
        found = ((whole >> self.shift) - self.base).astype(np.uint32)
        if not _same(self.from_integers(found), samples.astype(self.dtype, copy=False)):
            expected = "those that were there when the cube was looked through"
            raise InvalidInput("cube", found="other samples", expected=expected)
        return found

    def from_integers(self, integers: NDArray[Any]) -> NDArray[Any]:
        """The samples again; InvalidInput if there is none for an integer."""
        if self.kind == "levels":
            return _unordered(_at(integers, _unpacked(self.levels)), np.dtype(self.dtype))
        if self.kind == "offset":
            # Modulo 2**64, in which large unsigned ones are negative.
            return (integers.astype(np.int64) + np.int64(self.base)).astype(self.dtype)
        whole = integers.astype(np.int64) + self.base
        if self.kind != "order":
            return _samples(whole, self.kind, self.digits, np.dtype(self.dtype))
        # The last bits were ones where the number is negative.
        more = np.where(whole < 0, (1 << self.shift) - 1, 0)
        return _unordered((whole << self.shift) | more, np.dtype(np.float32))

    def describe(self) -> str:
        """It in words, for notes."""
        return f"{self.dtype} as {_WORDS[self.kind].format(base=self.base, digits=self.digits)}"

    def to_json(self) -> dict[str, Any]:
        """It as JSON."""
        return {name: value for name, value in asdict(self).items() if name != "levels" or value}

    @classmethod
    def from_json(cls, found: Any, path: object) -> Self:
        """Read what `to_json` gave; FormatError, which names `path`, if it is something else."""
        names = {"dtype": str, "kind": str, "base": int, "digits": int, "shift": int}
        if isinstance(found, dict) and {*found} - {"levels"} == {*names}:
            right = all(type(found[name]) is kind for name, kind in names.items())
            right &= isinstance(found.get("levels", ""), str) and ("levels" in found) == (
                found["kind"] == "levels"
            )
            if right and found["kind"] in _KINDS.get(found["dtype"], ()):
                mapping = cls(**found)
                if (
                    -1 << 63 <= mapping.base < 1 << 63
                    and 0 <= mapping.digits <= _MOST_DIGITS
                    and 0 <= mapping.shift < 32
                ):
                    return mapping
        expected = "how samples became integers, by plait"
        raise FormatError(path, found=f"a mapping: {found!r:.80}", expected=expected)


def _whole(samples: NDArray[Any], kind: Kind, digits: int) -> NDArray[np.int64]:
    if kind == "offset":
        return samples.astype(np.int64)
    with np.errstate(all="ignore"):
        found = np.rint(samples.astype(np.float64) * 10.0**digits)
        return np.where(np.abs(found) < _MOST, found, 0).astype(np.int64)


def _samples(whole: NDArray[np.int64], kind: Kind, digits: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    if kind == "quotient":
        return (whole / 10.0**digits).astype(dtype)
    # As programs do that scale arrays: both factors have the type of the samples.
    return np.asarray(whole.astype(dtype) * dtype.type(10.0**-digits), dtype)


def _ordered(samples: NDArray[Any]) -> NDArray[np.int64]:
    """Bit patterns as numbers that grow with the sample."""
    kind = np.dtype(f"i{samples.dtype.itemsize}")
    bits = np.ascontiguousarray(samples, samples.dtype.newbyteorder("=")).view(kind).astype(np.int64)
    return np.where(bits < 0, bits ^ np.iinfo(kind).max, bits)


def _unordered(whole: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[Any]:
    kind = np.dtype(f"i{dtype.itemsize}")
    return np.where(whole < 0, whole ^ np.iinfo(kind).max, whole).astype(kind).view(dtype)


def _places(whole: NDArray[np.int64], levels: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    found = np.empty(whole.shape, np.int64)
    for band, known in enumerate(levels):
        found[..., band] = np.minimum(np.searchsorted(known, whole[..., band]), len(known) - 1)
    return found


def _at(places: NDArray[Any], levels: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    found = np.empty(places.shape, np.int64)
    if len(levels) != places.shape[-1]:
        expected = f"levels of {places.shape[-1]} bands"
        raise InvalidInput("mapping", found=f"levels of {len(levels)}", expected=expected)
    for band, known in enumerate(levels):
        own = places[..., band]
        if own.size and int(own.max()) >= len(known):
            expected = f"one of the {len(known):,} levels of band {band}"
            raise InvalidInput("sample", found=f"number {int(own.max()):,}", expected=expected)
        found[..., band] = known[own]
    return found


def _packed(levels: Sequence[NDArray[np.int64]]) -> str:
    """Levels as text: their numbers, then what each is more than the one before; bytes of a kind together."""
    steps = [np.diff(known, prepend=0) for known in levels]
    words = np.concatenate([[len(levels)], [len(known) for known in levels], *steps]).astype("<i8")
    return base64.b64encode(zlib.compress(words.view(np.uint8).reshape(-1, 8).T.tobytes(), 9)).decode("ascii")


@lru_cache(maxsize=4)
def _unpacked(text: str) -> tuple[NDArray[np.int64], ...]:
    """What `_packed` made text of; InvalidInput if it did not."""
    try:
        data = zlib.decompressobj().decompress(
            base64.b64decode(text, validate=True), 8 * (_MOST_LEVELS + (1 << 17))
        )
        words = np.frombuffer(data, np.uint8).reshape(8, -1).T.copy().view("<i8")[:, 0].astype(np.int64)
        bands = int(words[0])
        counts = words[1 : bands + 1]
        if not 0 < bands <= counts.size or counts.min() < 1 or counts.sum() != words.size - bands - 1:
            raise ValueError("other numbers of levels")
    except (ValueError, IndexError, zlib.error) as error:
        raise InvalidInput("levels", found=error, expected="numbers of each band, packed by plait") from error
    return tuple(np.cumsum(own) for own in np.split(words[bands + 1 :], np.cumsum(counts)[:-1]))


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays of a type have the same bits: -0 and 0 differ, and NaN is NaN."""
    bits = f"u{one.dtype.itemsize}"
    return np.array_equal(one.view(bits), other.view(bits))


class MappedCube:
    """A cube as integers: samples of `source` through a mapping; `bits` hold every one of them."""

    def __init__(self, source: CubeSource, mapping: SampleMapping, bits: int) -> None:
        self._source, self.mapping, self.bits = source, mapping, bits
        self.rows, self.columns, self.bands = source.rows, source.columns, source.bands
        self.dtype = np.dtype(np.uint32)

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[np.uint32]:
        """Samples of a window; see `CubeSource.read`."""
        return self.mapping.to_integers(self._source.read(first, last, first_column, last_column))


class _Trial:
    """One way to make integers, while all samples fit: the range of them, and bits that are used."""

    def __init__(self, dtype: np.dtype[Any], kind: Kind, digits: int = 0) -> None:
        self.dtype, self.kind, self.digits = dtype, kind, digits
        self.least, self.most, self.used = 1 << 64, -1 << 64, 0

    def fits(self, samples: NDArray[Any]) -> bool:
        """Whether more samples fit."""
        if self.kind == "order":
            whole = _ordered(samples)
            self.used |= int(np.bitwise_or.reduce(np.where(whole < 0, -1 - whole, whole), axis=None))
        else:
            whole = _whole(samples, self.kind, self.digits)
            if self.kind != "offset" and not _same(
                _samples(whole, self.kind, self.digits, self.dtype), samples
            ):
                return False
        self.least, self.most = min(self.least, int(whole.min())), max(self.most, int(whole.max()))
        return self.most - self.least < _MOST

    def mapping(self) -> tuple[SampleMapping, int]:
        """What was found, and bits of the integers."""
        # The lowest bit that any sample has.
        shift = (self.used & -self.used).bit_length() - 1 if self.used else 0
        base = self.least >> shift
        made = SampleMapping(
            dtype=self.dtype.name, kind=self.kind, base=base, digits=self.digits, shift=shift
        )
        return made, max(2, ((self.most >> shift) - base).bit_length())


class _Levels(_Trial):
    """Places among the different numbers of each band, where these are few."""

    def __init__(self, dtype: np.dtype[Any], source: CubeSource) -> None:
        super().__init__(dtype, "levels")
        self._samples = source.rows * source.columns * source.bands
        self._levels = [np.zeros(0, np.int64)] * source.bands
        self._most = min(self._samples // _SAMPLES_A_LEVEL, _MOST_LEVELS)

    def fits(self, samples: NDArray[Any]) -> bool:
        """Whether more samples, (rows, columns, bands), fit."""
        whole, count = _ordered(samples), sum(map(len, self._levels))
        for band, known in enumerate(self._levels):
            self._levels[band] = np.union1d(known, whole[..., band])
            count += len(self._levels[band]) - len(known)
            if count > self._most:
                return False
        return True

    def mapping(self) -> tuple[SampleMapping, int]:
        """What was found, and bits of the integers."""
        made = SampleMapping(dtype=self.dtype.name, kind="levels", levels=_packed(self._levels))
        return made, max(2, (max(map(len, self._levels)) - 1).bit_length())


def is_mapped(kind: np.dtype[Any]) -> bool:
    """Whether samples of a type have to become other integers; InvalidInput if they cannot."""
    check_sample_type(kind, "cube")
    return kind.kind == "f" or kind.itemsize > _STANDARD_BYTES


def mapped(source: CubeSource) -> MappedCube:
    """A cube of such samples as integers.

    It is read once, and again where a way that its first samples fit turns out not to fit all. InvalidInput
    if that is not possible without loss.
    """
    dtype = source.dtype.newbyteorder("=")
    trials: list[_Trial] = []
    for kind in _KINDS[dtype.name]:
        if kind == "levels":
            trials.append(_Levels(dtype, source))
            continue
        first = 1 if kind == "product" else 0
        last = _MOST_DIGITS if kind in ("quotient", "product") else first
        trials += [_Trial(dtype, kind, digits) for digits in range(first, last + 1)]
    trials.sort(key=lambda trial: ({"levels": 1, "order": 2}.get(trial.kind, 0), trial.digits))
    few = next(_pieces(source))[:1, : max(1, _FIRST // source.bands)]
    offset = trials[0]
    trials = [trial for trial in trials if trial.fits(few)]
    while trials:
        wrong = next((samples for samples in _pieces(source) if not trials[0].fits(samples)), None)
        if wrong is None:
            return MappedCube(source, *trials[0].mapping())
        # What is wrong for one way is wrong for most.
        trials = [trial for trial in trials[1:] if trial.fits(wrong)]
    _refuse(offset)


def _pieces(source: CubeSource) -> Iterator[NDArray[Any]]:
    step = max(1, _SAMPLES // (source.columns * source.bands))
    for first in range(0, source.rows, step):
        yield source.read(first, min(first + step, source.rows))


def _refuse(trial: _Trial) -> NoReturn:
    """Say what was wrong with all ways, of which `trial` is the first."""
    name = trial.dtype.name
    if trial.kind == "offset":
        # Large unsigned ones are negative here.
        ends = [one % (1 << 64) if name == "uint64" else one for one in (trial.least, trial.most)]
        raise InvalidInput(
            "cube",
            found=f"{name} samples, among them {min(ends)} and {max(ends)}",
            expected="samples in a range that 32 bits hold",
        )
    raise InvalidInput(
        "cube",
        found=f"{name} samples, neither whole numbers over a power of ten nor few different ones",
        expected="such samples, or float32",
        hint=f"{UNCONVERTED}; otherwise, if 24 bits are enough, convert them: astype('float32')",
    )
