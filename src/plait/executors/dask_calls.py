"""What runs on the workers of a Dask cluster, and how it travels."""

from __future__ import annotations

import functools
import io
import pickle
import platform
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as arrow_ipc

from plait._version import __version__
from plait.errors import TargetUnavailable
from plait.settings import source_digest

__all__ = ["Call", "own_sources", "packed"]

_FEW = 4
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Call:
    """A function with one batch, as bytes: the scheduler passes them on and makes nothing of them.

    Attributes
    ----------
    function
        The pickled function. It is unpickled once in a process, so what it makes for itself is made once.
    batch
        The pickled batch.
    sources
        `own_sources` of the process that asks.
    """

    function: bytes
    batch: bytes
    sources: str

    def __call__(self) -> Any:
        """The result of the function, packed.

        Raises
        ------
        TargetUnavailable
            If another plait is installed here.
        """
        here = own_sources()
        if self.sources != here:
            raise TargetUnavailable(
                "dask",
                reason=f"a worker on {platform.node()} has plait {here}, this process has {self.sources}",
                fix="install the same version everywhere, and start the workers again",
            )
        with _lock:
            function = _unpickled(self.function)
        result = packed(function(pickle.loads(self.batch)))
        # Arrow would keep all that a batch has ever taken.
        pa.default_memory_pool().release_unused()
        return result


def packed(thing: object) -> bytes:
    """Something as bytes for `pickle.loads`.

    Parameters
    ----------
    thing
        Functions that are in no module, as those of a notebook, are sent by value.
    """
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, given: Any) -> Any:
            # By themselves, slices bring along all rows that they are cut from.
            if isinstance(given, pa.RecordBatch):
                return _batch, (_bytes_of(given),)
            return super().reducer_override(given)

    sink = io.BytesIO()
    Pickler(sink).dump(thing)
    return sink.getvalue()


def _bytes_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    # Most of what is sent is rows, and all of it passes through one process.
    options = arrow_ipc.IpcWriteOptions(compression="lz4")
    with arrow_ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _batch(content: bytes) -> pa.RecordBatch:
    with arrow_ipc.open_stream(content) as reader:
        return reader.read_next_batch()


@functools.lru_cache(maxsize=_FEW)
def _unpickled(function: bytes) -> Any:
    return pickle.loads(function)


@functools.cache
def own_sources() -> str:
    """Version and digest of the plait of this process: equal results are promised for equal ones alone."""
    files = Path(__file__).parents[1].rglob("*.py")
    return f"{__version__} ({source_digest(files)})"
