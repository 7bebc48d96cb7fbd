from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from plait.formats.files import read_ahead


class Source:
    """Numbers from 0, with what happened to them."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.made = 0
        self.closed = False
        self.threads: set[int] = set()
        self.fail_at = fail_at

    def items(self) -> Generator[int, None, None]:
        try:
            while self.made < 5:
                self.threads.add(threading.get_ident())
                if self.made == self.fail_at:
                    raise ValueError("broken")
                self.made += 1
                yield self.made - 1
        finally:
            self.closed = True


def test_all_items_come_in_order_from_another_thread() -> None:
    source = Source()
    assert list(read_ahead(source.items())) == [0, 1, 2, 3, 4]
    assert source.closed
    assert len(source.threads) == 1
    assert threading.get_ident() not in source.threads


def test_an_error_comes_after_the_items_before_it() -> None:
    seen = []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(read_ahead(Source(fail_at=3).items()))
    assert seen == [0, 1, 2]


def test_it_runs_one_item_ahead_and_no_more() -> None:
    source = Source()
    ahead = read_ahead(source.items())
    assert next(ahead) == 0
    ahead.close()
    assert source.made <= 2
    assert source.closed


def test_an_item_that_is_false_does_not_end_the_stream() -> None:
    assert list(read_ahead(item for item in (0, None, "", 1))) == [0, None, "", 1]
