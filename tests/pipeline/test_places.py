"""Table output: the files of a run replace the files of an earlier run, on any type of filesystem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import fs

from kafka_msgs.pipeline.table_output import OutputDirectory, write_table


class WithoutMoves(fs.FSSpecHandler):  # type: ignore[misc]
    """Files that cannot be moved, as in an object store whose library does not copy for its users."""

    def move(self, src: Any, dest: Any) -> None:
        """Raise an error."""
        raise NotImplementedError


FILES: Any = fsspec.filesystem("file", auto_mkdir=True)
FILESYSTEMS = {
    "local": fs.LocalFileSystem(),
    "objects": fs.PyFileSystem(fs.FSSpecHandler(FILES)),
    "without moves": fs.PyFileSystem(WithoutMoves(FILES)),
}


@pytest.fixture(params=FILESYSTEMS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> OutputDirectory:
    """A local directory, one that moves files, and one that cannot."""
    return OutputDirectory(FILESYSTEMS[request.param], str(tmp_path / "out"))


def write(place: OutputDirectory, part: str, *values: int) -> None:
    place.begin()
    batch = pa.record_batch({"a": list(values)})
    assert write_table("rows", [batch], batch.schema, place.staging, part) == len(values)


def values(place: OutputDirectory) -> list[int]:
    found: list[int] = sorted(ds.dataset(place.path_of("rows"), format="parquet").to_table()["a"].to_pylist())
    return found


def test_a_table_takes_the_place_of_another(place: OutputDirectory) -> None:
    write(place, "0", 1, 2)
    place.publish(["rows"], {}, [])
    write(place, "0", 3)
    assert values(place) == [1, 2]
    place.publish(["rows"], {}, [])
    assert values(place) == [3]
    write(place, "kind=classic/1", 4)
    place.publish(["rows"], {}, [])
    assert (values(place), place.subdirectory("rows").files()) == ([4], ["kind=classic/1.parquet"])


def test_files_are_added_and_replace_those_that_are_named(place: OutputDirectory) -> None:
    for part, value, replaced in (("0", 1, []), ("1", 2, []), ("2", 3, ["0.parquet"])):
        write(place, part, value)
        place.publish([], {"rows": replaced}, [])
    assert values(place) == [2, 3]
    assert place.staging.files() == []
