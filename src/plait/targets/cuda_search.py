"""Scores of queries with many targets on GPUs.

Targets are sent once for all queries of a call and stay on the device meanwhile. Several parts of a database
are on a device at a time, each with a stream and a thread of the host: while one is computed with, the next
one is copied, and scores of the one before are taken over. Local scores are found with packed 16-bit lanes
(`plait.targets.cuda_packed`); what those cannot hold, and other modes, with 32 bits
(`plait.targets.cuda_wide`). Neither the number of devices nor the parts can change a score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from plait.errors import DeviceMemoryError
from plait.schedules.block_setup import BlockQuery
from plait.targets.block_lists import TargetBlocks, offer_border
from plait.targets.cpu import CpuTarget
from plait.targets.cuda_search_plan import SearchPlan, shares_of
from plait.targets.cuda_search_slots import SLOTS, QueryForms, Slot, packed_needs

__all__ = ["run_blocks", "sweep_blocks"]

#: Residues of a part that are worth a device of their own.
_LEAST_RESIDUES = 1 << 20
#: Those that are worth to be a part of their own while another one is computed with.
_WORTH = 1 << 24


def run_blocks(
    devices: Sequence[int], query: BlockQuery, blocks: TargetBlocks, progress: Callable[[int], None]
) -> NDArray[np.int64]:
    """Best scores of a query with the targets of blocks.

    Parameters
    ----------
    devices, blocks, progress
        As for `sweep_blocks`.
    query
        The query; not empty.

    Returns
    -------
    NDArray[np.int64]
        Shape of ``blocks.lengths``; lanes without a target hold any value.
    """
    return sweep_blocks(devices, [query], blocks, progress)[0]


def sweep_blocks(
    devices: Sequence[int],
    queries: Sequence[BlockQuery],
    blocks: TargetBlocks,
    progress: Callable[[int], None],
) -> list[NDArray[np.int64]]:
    """Best scores of queries with the targets of blocks.

    Parameters
    ----------
    devices
        Numbers of the devices that share the work.
    queries
        The queries; none is empty.
    blocks
        The targets; lanes of a block may be 64, or one for a target on its own.
    progress
        Called with the number of cells of each part.

    Returns
    -------
    list of ndarray
        For each query as `run_blocks`.

    Raises
    ------
    Unsupported
        If scores could reach 2^31, or a target is too long for a device.
    DeviceMemoryError
        If the memory of a device does not suffice.
    """
    longest = int(blocks.lengths.max(initial=0))
    forms = [QueryForms(query, longest) for query in queries]
    scores = [np.zeros(blocks.lengths.shape, np.int64) for _ in queries]
    served = [k for k, form in enumerate(forms) if form.served]
    for k, form in enumerate(forms):
        if not form.served:
            scores[k] = CpuTarget().run_blocks(queries[k], blocks, progress)
    if not served or not longest:
        return scores
    plan = SLOTS.plan(devices)
    rows = max(queries[k].rows.size for k in served)
    needs = packed_needs(rows, longest)

    def run(share: tuple[int, int]) -> None:
        first, last = share
        part = TargetBlocks(blocks.packed, blocks.first_columns[first : last + 1], blocks.lengths[first:last])
        found = _of_part(devices, [forms[k] for k in served], part, plan)
        for k, own in zip(served, found, strict=True):
            scores[k][first:last] = own
        progress(int(part.lengths.sum(dtype=np.int64)) * sum(queries[k].rows.size for k in served))

    total = int(blocks.lengths.sum(dtype=np.int64))
    shares = shares_of(
        blocks.lengths, plan._replace(residues=_residues_of_a_part(total, plan.residues, len(devices))), needs
    )
    if len(shares) == 1:
        run(shares[0])
    else:
        most = min(len(shares), plan.slots * len(devices))
        with ThreadPoolExecutor(most, thread_name_prefix="plait") as pool:
            list(pool.map(run, shares))
    for k in served:
        offer_border(queries[k], blocks.lengths, scores[k])
    return scores


def _residues_of_a_part(total: int, most: int, devices: int) -> int:
    """Residues of a part: every one of several devices gets as many parts as the others, of one size."""
    if devices == 1:
        return most
    # Two, where they are worth it: one is computed with while the other is sent.
    rounds = max(-(-total // (most * devices)), min(total // (_WORTH * devices), 2), 1)
    # Blocks are not cut, so parts come out a little smaller.
    own = total // (rounds * devices)
    return min(max(own + own // 64 + 1, _LEAST_RESIDUES), most)


def _of_part(
    devices: Sequence[int], forms: Sequence[QueryForms], part: TargetBlocks, plan: SearchPlan
) -> list[NDArray[np.int64]]:
    """Scores of a part of the targets; of its halves, should the memory not suffice."""
    try:
        with SLOTS.slot(devices) as slot:
            return _on_slot(slot, forms, part, plan)
    except DeviceMemoryError:
        SLOTS.release()
        blocks = len(part.lengths)
        if blocks == 1:
            raise
    middle = blocks // 2
    packed, first, lengths = part
    halves = (
        TargetBlocks(packed, first[: middle + 1], lengths[:middle]),
        TargetBlocks(packed, first[middle:], lengths[middle:]),
    )
    found = [_of_part(devices, forms, half, plan) for half in halves]
    return [np.concatenate(own) for own in zip(*found, strict=True)]


def _on_slot(
    slot: Slot, forms: Sequence[QueryForms], part: TargetBlocks, plan: SearchPlan
) -> list[NDArray[np.int64]]:
    used = np.flatnonzero(part.lengths)
    found = [np.zeros(part.lengths.shape, np.int64) for _ in forms]
    if used.size:
        targets = slot.send(part, used, plan.piece)
        for own, scores in zip(found, slot.scores(forms, targets, plan.bytes), strict=True):
            own.ravel()[used] = scores
    return found
