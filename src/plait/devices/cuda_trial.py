"""A small kernel that shows whether a device really runs what plait compiles for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import on_device
from plait.lang.warps import WARP, lane_index, shuffle_xor


@cuda_kernel(lambda: [(np.zeros(WARP, np.int32),)])
def neighbours(out: Any) -> None:
    """Write the number of the other lane of each pair."""
    lane = np.int32(lane_index())
    out[lane] = shuffle_xor(lane, np.int32(1))


def try_device(number: int) -> str:
    """Run the kernel on a device; what is wrong with the result, or nothing.

    `DeviceFailure` or `DeviceMemoryError` if the device does not run it.
    """
    with on_device(number):
        out = cuda.to_device(np.zeros(WARP, np.int32))
        neighbours.launch(1, WARP, out)
        found = out.copy_to_host()
    return (
        "" if found.tolist() == [lane ^ 1 for lane in range(WARP)] else "a small kernel gives wrong results"
    )
