"""Memory of GPUs for parts of a database, and what happens to a part there."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.block_setup import BlockQuery
from plait.targets.block_lists import TargetBlocks
from plait.targets.cuda import SIMULATED
from plait.targets.cuda_devices import device_facts, free_memory, on_device
from plait.targets.cuda_search_arrays import SlotArrays
from plait.targets.cuda_search_plan import (
    LANES,
    SearchPlan,
    pieces_of,
    plan_search,
    tiles_of,
    wide_warps,
)
from plait.targets.cuda_search_texts import THREADS, untangle
from plait.targets.cuda_wide import WARPS, DeviceTexts, WideMemory, WideQuery, wide_scores
from plait.targets.cuda_wide_query import WideSetup, wide_setup

__all__ = ["SLOTS", "OnDevice", "QueryForms", "Slot", "Slots", "packed_needs"]

#: Residues of queries whose packed form is kept, as it takes a while to make.
_KEPT_RESIDUES: Final = 1 << 20
#: Of the memory of a slot, the share that rows between stripes may take.
_ROWS_SHARE: Final = 4


def _packed() -> Any:
    """The packed kernel, imported when it is first needed."""
    from plait.targets import cuda_packed

    return cuda_packed


def packed_needs(rows: int, longest: int) -> Callable[[int, int], int]:
    """Bytes that the packed kernel needs for targets and their residues.

    Parameters
    ----------
    rows
        Residues of the longest query.
    longest
        Residues of the longest target.
    """
    packed = _packed()
    return lambda count, total: int(packed.packed_bytes(count, total, rows, longest))


class QueryForms:
    """A query in the forms that kernels take.

    Parameters
    ----------
    query
        The query.
    longest
        Residues of the longest target.
    """

    def __init__(self, query: BlockQuery, longest: int) -> None:
        self.query = query
        self.wide: WideSetup | None = wide_setup(query, longest)

    @property
    def served(self) -> bool:
        """Whether the GPU can hold its scores."""
        return self.wide is not None

    def packed(self) -> Any:
        """For packed lanes, or None."""
        if not self.query.free.local:
            return None
        form = _PACKED_FORMS.of(self.query)
        return form if form.possible else None


class _PackedForms:
    """Packed forms of the queries that were used last: they serve all parts of a database."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[BlockQuery, Any]] = OrderedDict()
        self._residues = 0
        self._lock = threading.Lock()

    def of(self, query: BlockQuery) -> Any:
        with self._lock:
            # Kept with the query, so that no other can have its number.
            known = self._kept.get(id(query))
            if known is None:
                known = self._kept[id(query)] = query, _packed_form(query)
                self._residues += query.rows.size
            self._kept.move_to_end(id(query))
            while self._residues > _KEPT_RESIDUES and len(self._kept) > 1:
                _, (oldest, _) = self._kept.popitem(last=False)
                self._residues -= oldest.rows.size
            return known[1]


def _packed_form(query: BlockQuery) -> Any:
    table = np.full((32, 32), int(query.scores.min(initial=0)), np.int32)
    table[: query.scores.shape[0], : query.scores.shape[1]] = query.scores
    codes = query.rows.astype(np.uint8)
    return _packed().PackedQuery(codes, table, query.gap_open, query.gap_extend)


_PACKED_FORMS: Final = _PackedForms()


class OnDevice(NamedTuple):
    """Targets on a device.

    Attributes
    ----------
    texts
        Codes, and the place of each lane, those without a target too.
    offsets
        Where each target starts, and the end of the last; on the host, int64.
    used
        Lanes with a target.
    layout
        For the packed kernel, once it was needed.
    """

    texts: DeviceTexts
    offsets: NDArray[np.int64]
    used: NDArray[np.int64]
    layout: list[Any]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Residues of each target."""
        lengths: NDArray[np.int64] = np.diff(self.offsets)
        return lengths


class _Started(NamedTuple):
    """Scores on their way to the host."""

    form: QueryForms
    found: NDArray[np.int32]
    done: Any


class Slot:
    """Memory of a device for one part, and a stream; for one thread at a time, which has the device.

    Parameters
    ----------
    device
        Its number.
    """

    def __init__(self, device: int) -> None:
        self.device = device
        self._arrays: SlotArrays | None = None

    def release(self) -> None:
        """Give the memory back."""
        self._arrays = None

    @property
    def arrays(self) -> SlotArrays:
        """Arrays, and the stream."""
        if self._arrays is None:
            self._arrays = SlotArrays()
        return self._arrays

    def send(self, part: TargetBlocks, used: NDArray[np.int64], piece: int) -> OnDevice:
        """Bring targets to the device.

        Parameters
        ----------
        part
            The targets.
        used
            Lanes with a target.
        piece
            Bytes that are sent at a time.
        """
        packed, first_columns, lengths = part
        arrays = self.arrays
        starts = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths.ravel(), out=starts[1:])
        where = arrays.upload("starts", starts)
        if packed.shape[1] != LANES:
            texts = DeviceTexts(arrays.upload("codes", _in_line(part)), where)
            return OnDevice(texts, np.append(starts[used], starts[-1]), used, [])
        texts = DeviceTexts(arrays.room("codes", int(starts[-1]), np.uint8), where)
        tiles = tiles_of(first_columns)
        sent = arrays.upload("tiles", np.concatenate(tiles)).reshape(len(tiles), tiles.rows.size)
        for number, (first, last) in enumerate(pieces_of(tiles, piece)):
            rows = packed[tiles.rows[first] : tiles.rows[last]]
            words = arrays.stage(rows.reshape(-1), number).view(np.uint32)
            rest = (sent, texts.starts, texts.codes)
            untangle.launch(last - first, THREADS, words, np.int64(first), *rest, stream=arrays.stream)
        return OnDevice(texts, np.append(starts[used], starts[-1]), used, [])

    def scores(
        self, forms: Sequence[QueryForms], targets: OnDevice, most: int
    ) -> Iterator[NDArray[np.int64]]:
        """Scores of queries with the targets; while one is computed, those of the one before are taken over.

        Parameters
        ----------
        forms
            The queries.
        targets
            What `send` has returned last.
        most
            Bytes that the kernel may need.
        """
        before: _Started | None = None
        for number, form in enumerate(forms):
            started = self._start(form, targets, number % 2)
            if before is not None:
                yield self._finish(before, targets, most)
            before = started
        if before is not None:
            yield self._finish(before, targets, most)

    def _start(self, form: QueryForms, targets: OnDevice, half: int) -> _Started:
        packed, query, arrays = _packed(), form.packed(), self.arrays
        if query is None:
            return _Started(form, np.full(targets.used.size, -1, np.int32), None)
        if not targets.layout:
            codes = targets.texts.codes.copy_to_host() if SIMULATED else targets.texts.codes
            targets.layout.append(packed.PackedTargets(codes, targets.offsets, arrays.stream, arrays))
        out = arrays.room(f"packed scores {half}", targets.used.size, np.int32)
        packed.packed_scores(query, targets.layout[0], out, stream=arrays.stream)
        return _Started(form, *arrays.download(f"packed scores {half}", out))

    def _finish(self, started: _Started, targets: OnDevice, most: int) -> NDArray[np.int64]:
        if started.done is not None:
            started.done.synchronize()
        scores = started.found.astype(np.int64)
        again = np.flatnonzero(scores < 0)
        if again.size:
            scores[again] = self._wide(started.form, targets, again, most)
        return scores

    def _wide(
        self, form: QueryForms, targets: OnDevice, which: NDArray[np.int64], most: int
    ) -> NDArray[np.int64]:
        """32-bit scores of some targets, the longest of which go first."""
        setup, arrays = form.wide, self.arrays
        assert setup is not None
        lengths = targets.lengths[which]
        order = np.argsort(-lengths, kind="stable")
        chosen = arrays.upload("chosen", targets.used[which[order]].astype(np.int32))
        columns = int(lengths.max())
        rows = most // _ROWS_SHARE
        warps = wide_warps(_multiprocessors(self.device), which.size, columns, setup.stripes, rows)
        kept = (warps, columns) if setup.stripes > 1 else (1, 1)
        memory = WideMemory(
            arrays.room("row h", kept, np.int32),
            arrays.room("row f", kept, np.int32),
            arrays.upload("next", np.zeros(1, np.int32)),
        )
        query = WideQuery(
            *(
                arrays.upload(f"query {k}", values) if isinstance(values, np.ndarray) else values
                for k, values in enumerate(setup.query)
            )
        )
        out = arrays.room("wide scores", which.size, np.int32)
        blocks, threads = -(-warps // WARPS), 32 * min(warps, WARPS)
        arguments = (setup.gap, setup.algebra, query, targets.texts, chosen, memory, out)
        wide_scores.launch(blocks, threads, *arguments, stream=arrays.stream)
        found, done = arrays.download("wide scores", out)
        done.synchronize()
        scores = np.empty(which.size, np.int64)
        scores[order] = found
        return scores


@functools.cache
def _multiprocessors(device: int) -> int:
    return device_facts(device).multiprocessors


def _in_line(part: TargetBlocks) -> NDArray[np.uint8]:
    """All residues one target behind the other, for blocks of another number of lanes."""
    packed, first_columns, lengths = part
    if packed.shape[1] == 1 and np.array_equal(np.diff(first_columns), lengths[:, 0]):
        return packed[first_columns[0] : first_columns[-1], 0]
    pieces = [
        packed[start : start + size, lane]
        for start, row in zip(first_columns[:-1].tolist(), lengths.tolist(), strict=True)
        for lane, size in enumerate(row)
    ]
    return np.concatenate([np.zeros(0, np.uint8), *pieces])


class Slots:
    """All slots of this process; made when they are first needed."""

    def __init__(self) -> None:
        self._free: dict[int, list[Slot]] = {}
        self._plans: dict[int, SearchPlan] = {}
        self._changed = threading.Condition()

    def plan(self, devices: Sequence[int]) -> SearchPlan:
        """What every one of some devices can hold.

        Parameters
        ----------
        devices
            Their numbers.
        """
        with self._changed:
            for device in devices:
                if device not in self._plans:
                    with on_device(device):
                        plan = plan_search(free_memory())
                    # The simulator runs one kernel at a time.
                    self._plans[device] = plan._replace(slots=1) if SIMULATED else plan
                    self._free[device] = [Slot(device) for _ in range(self._plans[device].slots)]
            return min((self._plans[device] for device in devices), key=lambda plan: plan.bytes)

    @contextlib.contextmanager
    def slot(self, devices: Sequence[int]) -> Iterator[Slot]:
        """A free slot of one of some devices, which is the current one meanwhile; waits for one.

        Parameters
        ----------
        devices
            Their numbers; `plan` must have been called with them.
        """
        with self._changed:
            self._changed.wait_for(lambda: any(self._free[device] for device in devices))
            device = max(devices, key=lambda number: len(self._free[number]))
            slot = self._free[device].pop()
        try:
            with on_device(device):
                yield slot
        finally:
            with self._changed:
                self._free[device].append(slot)
                # Of those who wait, some wait for other devices.
                self._changed.notify_all()

    def release(self) -> None:
        """Give back the memory of slots that are free."""
        with self._changed:
            for device, slots in self._free.items():
                with on_device(device):
                    for slot in slots:
                        slot.release()


#: Those of this process.
SLOTS: Final = Slots()
