"""A walk over batches that gives many of them as one item, for readers that need no object for each batch.

This module decides which batches belong together: consecutive sound ones of magic 2 that its caller wants without a
look at each. ``native`` or ``python`` find them by their headers and checksums. The walk itself, here that of
``file_scan`` or a ``BatchReader``, yields all other batches and the damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol, TypeAlias

from attrs import frozen

from kafka_msgs._backend import backend_module
from kafka_msgs.binary_layouts import header_struct
from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.batch_counts import BatchCounts
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.records import ReadOptions
from kafka_msgs.records.batch import BatchRun

__all__ = ["EVERYTHING", "BatchWalk", "Item", "RunLimits", "walk_runs"]

Item: TypeAlias = BatchRun | AnyBatch | LogFileError | RecordError
"""What a walk gives: batches, many of them at once, and damage."""

_IMPLEMENTATION: Final = backend_module("kafka_msgs.log")
_OFFSETS: Final = header_struct("base_offset", "last_offset_delta")
_EACH_RUN: Final = 2**18
"""How many bytes a run has, and up to a batch more: what was compared with its checksum is still in the processor's
cache when its records are read."""


class BatchWalk(Protocol):
    """What a walk over batches offers: ``FileScan`` and ``BatchReader``."""

    position: int

    @property
    def data(self) -> Any:
        """The bytes that are walked over."""

    @property
    def options(self) -> ReadOptions:
        """How batches are read."""

    def __next__(self) -> AnyBatch | LogFileError:
        """Return the next batch, or damage; raises ``RecordError`` for damage, too, and ``StopIteration``."""

    def resume_at(self, position: int, next_offset: int) -> None:
        """Continue at a byte, before which there are sound batches of magic 2."""


@frozen(kw_only=True)
class RunLimits:
    """Which batches are wanted: those that start before the byte ``stop``.

    Only those belong to a run that have none of the attributes ``without``, and hold offsets from ``first`` to
    ``last`` only. All others are yielded alone.
    """

    stop: int = 2**62
    without: int = 0
    first: int = -(2**63)
    last: int = 2**63 - 1


EVERYTHING: Final = RunLimits()


def walk_runs(walk: BatchWalk, limits: RunLimits = EVERYTHING) -> Iterator[Item]:
    """Yield the batches and the damage of a walk in order, consecutive sound batches of magic 2 as a ``BatchRun``.

    The checksums of a run were compared, if the options say so. Its records are not read.
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
    """Return the run that starts where a walk is, and move the walk behind it. None without one."""
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
