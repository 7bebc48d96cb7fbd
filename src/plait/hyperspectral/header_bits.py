"""Bits of a header, most significant first."""

from __future__ import annotations

from plait.errors import PlaitError

__all__ = ["BitReader", "BitWriter", "HeaderEnd"]


class HeaderEnd(PlaitError):
    """A header is longer than the bytes there are."""


class BitWriter:
    """Puts fields one after the other."""

    def __init__(self) -> None:
        self._value = 0
        self._bits = 0
        self._pieces: list[bytes] = []

    def put(self, value: int, bits: int) -> None:
        """Append a field; its value is taken modulo ``2**bits``, two's complement where it is negative."""
        self._value = (self._value << bits) | (value & ((1 << bits) - 1))
        self._bits += bits
        if self._bits >= 4096:
            # A number that grows with every field would take time that grows with the square of their number.
            rest = self._bits % 8
            self._pieces.append((self._value >> rest).to_bytes(self._bits // 8, "big"))
            self._value &= (1 << rest) - 1
            self._bits = rest

    def fill(self) -> None:
        """Append zero bits up to a whole byte."""
        self.put(0, -self._bits % 8)

    def bytes(self) -> bytes:
        """What was put, a whole number of bytes."""
        return b"".join(self._pieces) + self._value.to_bytes(self._bits // 8, "big")


class BitReader:
    """Takes fields one after the other.

    Parameters
    ----------
    data
        Bytes from the start of the header on.
    """

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.position = 0

    def take(self, bits: int) -> int:
        """The next field.

        Raises
        ------
        HeaderEnd
            If there are too few bytes.
        """
        self.require(bits)
        end = self.position + bits
        first, last = self.position // 8, -(-end // 8)
        word = int.from_bytes(self._data[first:last], "big") >> (8 * last - end)
        self.position = end
        return word & ((1 << bits) - 1)

    def require(self, bits: int) -> None:
        """Check that a field of this size follows, before memory is made for what it holds.

        Raises
        ------
        HeaderEnd
            If there are too few bytes.
        """
        if self.position + bits > 8 * len(self._data):
            raise HeaderEnd(f"the header needs more than the {len(self._data)} bytes there are")

    def take_signed(self, bits: int) -> int:
        """The next field, in two's complement."""
        value = self.take(bits)
        return value - (1 << bits) if value >> (bits - 1) else value

    def fill(self) -> int:
        """Skip to a whole byte; the bits skipped."""
        return self.take(-self.position % 8)
