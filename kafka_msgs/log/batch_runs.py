"""A batch iterator that combines many batches into one item, for readers that need no object for each batch.

This module combines consecutive valid batches of magic 2 that match the caller's limits. ``native`` or ``python`` find
them by their headers and checksums. The underlying walk, a ``FileScan`` or a ``BatchReader``, yields all other batches
and the damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from attrs import frozen

from kafka_msgs._backend import backend_module
from kafka_msgs.binary_layouts import header_struct
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.batch_counts import BatchCounts
from kafka_msgs.log.file_scan import AnyBatch, FileScan
from kafka_msgs.records import BatchReader
from kafka_msgs.records.batch import BatchRun

__all__ = ["EVERYTHING", "BatchWalk", "Item", "RunLimits", "walk_runs"]

Item: TypeAlias = BatchRun | AnyBatch | LogFileError | RecordError
"""An item of a walk: a batch, a run of batches, or damage."""

BatchWalk: TypeAlias = FileScan | BatchReader
"""A walk over batches."""

_IMPLEMENTATION: Final = backend_module("kafka_msgs.log")
_OFFSETS: Final = header_struct("base_offset", "last_offset_delta")
_EACH_RUN: Final = 2**18
"""The size of a run in bytes, exceeded by at most one batch.

It is small enough that bytes are still in the processor's cache when their records are read after the checksum
comparison.
"""


@frozen(kw_only=True)
class RunLimits:
    """The batches to combine: batches that start before the byte ``stop``.

    Only batches without any of the attributes ``without`` and with offsets from ``first`` to ``last`` belong to a run.
    All others are yielded separately.
    """

    stop: int = 2**62
    without: int = 0
    first: int = -(2**63)
    last: int = 2**63 - 1


EVERYTHING: Final = RunLimits()


def walk_runs(walk: BatchWalk, limits: RunLimits = EVERYTHING) -> Iterator[Item]:
    """Yield the batches and the damage of a walk in order, with consecutive valid batches of magic 2 as a ``BatchRun``.

    The checksums of a run are verified, if the options require it. Its records are not read.
    """
    while walk.position < limits.stop:
        if run := _run_ahead(walk, limits):
            yield run
            continue
        try:
            yield next(walk)
        except StopIteration:
            return
        except RecordError as error:
            yield error


def _run_ahead(walk: BatchWalk, limits: RunLimits) -> BatchRun | None:
    """Return the run at the current position of a walk, and advance the walk past it. Return None without a run."""
    start, data, options = walk.position, walk.data, walk.options
    stop = min(limits.stop, start + _EACH_RUN)
    found: BatchCounts = _IMPLEMENTATION.count_batches(
        data, start, stop, options.check_crc, limits.without, limits.first, limits.last
    )
    if not found.batches:
        return None
    base_offset, delta = _OFFSETS.unpack_from(data, found.last)
    walk.resume_at(found.position, base_offset + delta + 1)
    return BatchRun(data, start, found.position, options, last_offset=base_offset + delta)
