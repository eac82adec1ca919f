"""Listings of an object store, which has no directories."""

from __future__ import annotations

from typing import Any

from pyarrow import fs

from kafka_msgs.filesystems.listing import list_directory


class Objects:
    """Arrow's view of Google Cloud Storage: objects below a directory, and explicitly created directories."""

    type_name = "gcs"

    def __init__(self, *names: str, made: tuple[str, ...] = ()) -> None:
        self._infos = [fs.FileInfo(name, fs.FileType.File, size=1) for name in names]
        self._infos += [fs.FileInfo(name, fs.FileType.Directory) for name in made]

    def get_file_info(self, selector: fs.FileSelector) -> list[Any]:
        """Return the entries below a directory; a single-level listing contains only files and created directories."""
        below = [info for info in self._infos if info.path.startswith(f"{selector.base_dir}/")]
        return [info for info in below if selector.recursive or "/" not in info.path[len(selector.base_dir) + 1 :]]


def names(objects: Objects, path: str) -> dict[str, str]:
    return {info.path: info.type.name for info in list_directory(objects, path)}


def test_directories_are_listed_whether_they_were_made_or_not() -> None:
    objects = Objects("b/logs/a-0/0.log", "b/logs/a-0/1.log", "b/logs/c-0/0.log", "b/logs/x", made=("b/logs/c-0",))
    assert names(objects, "b/logs") == {"b/logs/a-0": "Directory", "b/logs/c-0": "Directory", "b/logs/x": "File"}
    assert names(objects, "b/logs/a-0") == {"b/logs/a-0/0.log": "File", "b/logs/a-0/1.log": "File"}
    assert names(objects, "b/nothing") == {}
