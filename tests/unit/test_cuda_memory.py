"""Batches under way at a time: they do not meet, and their buffers are used again."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import (
    Slot,
    _Kept,
    device_facts,
    devices,
    free_memory,
    kept,
    on_device,
    over_devices,
)

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


@cuda_kernel(lambda: [(np.zeros(2, np.int32), np.zeros(2, np.int32))])
def add_one(values: Any, out: Any) -> None:
    """One more than each value."""
    i = cuda.grid(1)
    if i < values.size:
        out[i] = values[i] + np.int32(1)


def start(slot: Slot, values: np.ndarray) -> np.ndarray:
    """Start a batch; its result is there when the slot is done."""
    given = slot.upload("values", values)
    out = slot.room("out", values.shape, np.int32)
    add_one.launch(-(-values.size // 32), 32, given, out, stream=slot.stream)
    return slot.download("out", out)


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_batches_under_way_do_not_meet(slots: int) -> None:
    work = [np.arange(40 * k, 40 * k + 1 + 37 * k % 90, dtype=np.int32) for k in range(7)]
    found = []
    with on_device(devices()[0]):
        made = [Slot() for _ in range(slots)]
        for first in range(0, len(work), slots):
            batches = work[first : first + slots]
            started = [start(slot, values) for slot, values in zip(made, batches, strict=False)]
            for slot, result in zip(made, started, strict=False):
                slot.wait()
                found.append(result.copy())
    for values, more in zip(work, found, strict=True):
        np.testing.assert_array_equal(more, values + 1)


def test_what_was_given_may_change_at_once() -> None:
    with on_device(devices()[0]):
        slot = Slot()
        values = np.full(50, 7, np.int32)
        result = start(slot, values)
        values[:] = 0
        slot.wait()
    assert set(result.tolist()) == {8}


def test_buffers_are_used_again() -> None:
    with on_device(devices()[0]):
        slot = Slot()
        large = slot.room("x", 100, np.int32)
        small = slot.room("x", (3, 7), np.int32)
        assert large.shape == (100,) and small.shape == (3, 7)
        assert len(slot._on_device) == 1 and slot._on_device["x"][0].size == 100
        assert slot.room("x", (3, 7), np.int32) is small
        assert slot.room("x", (10, 20), np.int32).shape == (10, 20)
        assert slot.room("x", 10, np.int64).dtype == np.int64
        assert slot._on_device["x"][0].size == 10


def test_a_device_has_facts() -> None:
    facts = device_facts(devices()[0])
    assert facts.number == 0 and facts.name and facts.capability >= (8, 0)
    with on_device(0):
        assert 0 < free_memory() <= facts.memory


def test_work_is_shared_out_in_order() -> None:
    threads = set()

    def run(device: int, item: int) -> int:
        threads.add(threading.get_ident())
        return item * item

    every = devices()
    assert over_devices(every, range(20), run) == [k * k for k in range(20)]
    assert 1 <= len(threads) <= len(every)
    assert over_devices(every, [], run) == []


def test_what_is_kept_of_an_array_goes_with_it() -> None:
    device, made = devices()[0], []
    with on_device(device):
        source, other = np.ones(3), (np.ones(3),)
        for _ in range(2):
            for given in (source, other):
                kept(device, given, lambda given=given: made.append(type(given)))
        number = id(source)
        del source, given
        gc.collect()
        kept(device, other, lambda: made.append("again"))
    assert made == [np.ndarray, tuple]
    assert (device, number) not in _Kept.tables and (device, id(other)) in _Kept.tables
