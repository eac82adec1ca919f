"""Streams of log files without Spark: micro-batches whose positions pass through JSON, as through a checkpoint."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

__all__ = ["LogStream"]


class LogStream:
    """A stream over a source; ``restart`` begins another stream at the position in the checkpoint."""

    def __init__(self, source: type[DataSource], path: object, **options: object) -> None:
        self._source = source
        self._options = {"path": str(path)} | {name: _text(value) for name, value in options.items()}
        self.restart()
        self.position = json.dumps(self.reader.initialOffset())

    def restart(self) -> None:
        """Create the reader again."""
        source: Any = self._source(dict(self._options))
        self.reader: Any = source.streamReader(source.schema())

    def plan(self, rows: int | None = None) -> list[Any]:
        """Plan the next micro-batch, with an optional limit, and record its end position."""
        start = json.loads(self.position)
        limit: ReadLimit = self.reader.getDefaultReadLimit() if rows is None else ReadMaxRows(rows)
        self.position = json.dumps(self.reader.latestOffset(start, limit))
        end = json.loads(self.position)
        return list(self.reader.partitions(start, end)) if start != end else []

    def batch(self, rows: int | None = None) -> list[dict[str, Any]]:
        """Return the rows of the next micro-batch."""
        splits = self.plan(rows)
        return [row for split in splits for batch in self.reader.read(split) for row in batch.to_pylist()]

    @property
    def offsets(self) -> dict[str, dict[str, int]]:
        """The offsets in the checkpoint."""
        found: dict[str, dict[str, int]] = json.loads(self.position)["offsets"]
        return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
