"""Hidden Markov models: states, how they follow one another, and what they show."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import write_json
from plait.formats.files import read_json

_Floats = NDArray[np.float64]
_FIELDS = ("states", "start", "transitions", "symbols", "emissions")
#: Sums of probabilities may be off by so much.
_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class HiddenMarkovModel:
    """A hidden Markov model.

    Parameters
    ----------
    start
        Probability of each state in the first frame (states,).
    transitions
        Probabilities (states, states): from, to.
    emissions
        Probability of each symbol in each state (states, symbols); None where frames come as logarithms of
        probabilities by state.
    states, symbols
        Their names; numbers by default.

    Raises
    ------
    InvalidInput
        If a shape does not fit, or probabilities are none or do not sum to one.
    """

    start: _Floats
    transitions: _Floats
    emissions: _Floats | None = None
    states: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the tables, and make them what they are told to be."""
        start = _table("start", self.start, (None,))
        own: dict[str, Any] = {"start": start, "symbols": ()}
        own["transitions"] = _table("transitions", self.transitions, (start.size, start.size))
        own["states"] = _names("states", self.states, start.size)
        if self.emissions is not None:
            own["emissions"] = _table("emissions", self.emissions, (start.size, None))
            own["symbols"] = _names("symbols", self.symbols, own["emissions"].shape[1])
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies anew: NumPy's own may be written to, and what is kept would not be theirs."""
        return type(self), (self.start, self.transitions, self.emissions, self.states, self.symbols)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model from JSON.

        Parameters
        ----------
        path
            An object with ``start``, ``transitions`` and, if they have any, ``emissions``, ``states`` and
            ``symbols``, as for the class.

        Returns
        -------
        HiddenMarkovModel
            The model.

        Raises
        ------
        FormatError
            If the file is missing or no such object.
        """
        content = read_json(path, "a hidden Markov model")
        if not isinstance(content, dict) or not {"start", "transitions"} <= content.keys() <= {*_FIELDS}:
            found = f"the fields {', '.join(content) or 'none'}" if isinstance(content, dict) else "no object"
            expected = "an object with start and transitions, perhaps emissions, states, symbols"
            raise FormatError(path, found=found, expected=expected)
        try:
            return cls(**content)
        except InvalidInput as error:
            raise FormatError(path, found=f"{error.what}: {error.found}", expected=error.expected) from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        InvalidInput, FormatError
            If it cannot be written.
        """
        tables = {"start": self.start, "transitions": self.transitions, "emissions": self.emissions}
        content: dict[str, object] = {k: v.tolist() for k, v in tables.items() if v is not None}
        content |= {"states": self.states} | ({"symbols": self.symbols} if self.symbols else {})
        write_json(path, content)

    @classmethod
    def of_hmmlearn(cls, model: Any) -> Self:
        """Take over a fitted model of hmmlearn.

        Parameters
        ----------
        model
            One with ``startprob_`` and ``transmat_``; ``emissionprob_`` is taken if it has that.

        Returns
        -------
        HiddenMarkovModel
            The model. Others than categorical ones give the logarithms of what frames weigh themselves.
        """
        return cls(model.startprob_, model.transmat_, getattr(model, "emissionprob_", None))

    @property
    def probabilities(self) -> tuple[_Floats, _Floats, _Floats]:
        """Of states in the first frame, of transitions, and of states by symbol (symbols, states)."""
        emissions = np.empty((len(self.start), 0)) if self.emissions is None else self.emissions
        return self.start, self.transitions, emissions.T

    @cached_property
    def logs(self) -> tuple[_Floats, _Floats, _Floats]:
        """Logarithms of `probabilities`."""
        with np.errstate(divide="ignore"):
            start, steps, emissions = map(np.log, self.probabilities)
        for table in (start, steps, emissions):
            table.flags.writeable = False
        return start, steps, emissions

    def log_weights(self, observations: ArrayLike) -> _Floats:
        """Logarithms of what each frame weighs in each state.

        Parameters
        ----------
        observations
            Symbols (frames,), as text, names or whole numbers; or the logarithms (frames, states) themselves.

        Returns
        -------
        numpy.ndarray
            float64 (frames, states).

        Raises
        ------
        InvalidInput
            If a symbol is unknown, or a logarithm is no number below infinity.
        """
        given = _given(observations)
        if given.ndim == 2:
            weights = numbers_of("observations", given)
            if weights.shape[1] != len(self.states) or np.isnan(weights).any() or (weights == np.inf).any():
                expected = f"(frames, {len(self.states)}) numbers below infinity"
                raise InvalidInput("observations", found=f"{given.shape}", expected=expected)
            return weights
        if self.emissions is None:
            expected = "logarithms: the model has no emissions"
            raise InvalidInput("observations", found="symbols", expected=expected)
        return self.logs[2][self.codes(given)]

    def codes(self, observations: ArrayLike) -> NDArray[np.int32]:
        """Numbers of symbols.

        Parameters
        ----------
        observations
            Symbols (frames,), as for `log_weights`.

        Returns
        -------
        numpy.ndarray
            int32 (frames,).

        Raises
        ------
        InvalidInput
            If a symbol is unknown.
        """
        given = _given(observations)
        if given.ndim != 1:
            raise InvalidInput("observations", found=f"{given.ndim} dimensions", expected="one or two")
        if given.dtype.kind in "iu":
            codes = np.asarray(given, np.int64)
        elif given.dtype == "<U1":
            # Letters: a table takes a fifteenth of the time.
            letters = given.view(np.uint32)
            places = np.full(int(letters.max(initial=0)) + 1, -1)
            for k, name in enumerate(self.symbols):
                if len(name) < 2 and ord(name or "\0") < places.size:
                    places[ord(name or "\0")] = k
            codes = places[letters]
        else:
            place = {name: k for k, name in enumerate(self.symbols)}
            codes = np.array([place.get(str(name), -1) for name in given], np.int64)
        # Negative numbers are large ones without a sign.
        if codes.size and codes.view(np.uint64).max() >= len(self.symbols):
            at = int((codes.view(np.uint64) >= len(self.symbols)).argmax())
            expected = f"one of {', '.join(self.symbols[:20])}"
            raise InvalidInput("observations", found=f"{given[at]!s}, symbol {at + 1}", expected=expected)
        return codes.astype(np.int32)


def _given(observations: ArrayLike) -> NDArray[Any]:
    if isinstance(observations, str):
        return np.frombuffer(observations.encode("utf-32-le", "surrogatepass"), "<U1")
    return np.asarray(observations)


def numbers_of(name: str, values: Any, kind: Any = np.float64) -> NDArray[Any]:
    """A copy of a table of numbers; `InvalidInput` if it is none, or its numbers are of another kind."""
    try:
        given = np.asarray(values)
        if given.dtype.kind in "biufO" and not (kind is np.int64 and given.dtype.kind == "f" and given.size):
            return np.array(given, kind, order="C")
    except (TypeError, ValueError, OverflowError):
        pass
    what = "whole numbers" if kind is np.int64 else "numbers"
    raise InvalidInput(name, found=f"no table of {what}", expected="one")


def _table(name: str, values: Any, shape: tuple[int | None, ...]) -> _Floats:
    """Rows of probabilities."""
    found = numbers_of(name, values)
    wanted = " x ".join("any number" if n is None else str(n) for n in shape)
    if found.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
        raise InvalidInput(name, found=f"an array {found.shape}", expected=wanted)
    if not found.size or not ((found >= 0) & (found <= 1 + _TOLERANCE)).all():
        raise InvalidInput(name, found="something else", expected="probabilities, at least one")
    rows = np.abs(found.sum(axis=-1) - 1).reshape(-1)
    if rows.max() > _TOLERANCE:
        row = int(rows.argmax())
        total = float(found.reshape(-1, found.shape[-1])[row].sum())
        raise InvalidInput(f"{name}, row {row}", found=f"the sum {total:.6g}", expected="1")
    # What is computed from it is kept.
    found.flags.writeable = False
    return found


def _names(what: str, given: Any, count: int) -> tuple[str, ...]:
    """So many different names, by default numbers."""
    found = tuple(map(str, given if isinstance(given, (tuple, list, np.ndarray)) else [given]))
    found = found or tuple(map(str, range(count)))
    if len(found) != count or len(set(found)) != count:
        raise InvalidInput(what, found=f"{len(set(found))} different names", expected=f"{count}")
    return found
