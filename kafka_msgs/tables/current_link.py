"""The link ``current`` in a local output directory: the tables of the latest commit, for readers that list directories.

``current`` is a symbolic link to ``snapshots/<number>-<run>``, whose tables consist of links to the committed files.
Tables with a leading underscore are omitted. One rename replaces the link. It is a convenience: the manifest defines
the tables. Object stores have no links.
"""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Final
from uuid import uuid4

from kafka_msgs.tables.commit_log import CommitLog, Snapshot

__all__ = ["CURRENT", "finish_commit", "link_current"]

CURRENT: Final = "current"
"""The name of the link."""
_SNAPSHOTS: Final = "snapshots"

_LOGGER: Final = logging.getLogger(__name__)


def finish_commit(log: CommitLog) -> None:
    """Point the link at the latest commit, and remove expired files and links. Raises ``OSError``."""
    link_current(log)
    log.expire()
    _remove_old_links(log)


def link_current(log: CommitLog) -> None:
    """Point the link at the latest commit. On failure, as on a filesystem without links, a warning is logged."""
    home = log.storage.local_directory
    if home is None:
        return
    try:
        head = log.head()
        # Another run may commit, and even link its commit, before this link is in place.
        while head is not None and _link(home, head) != (last := log.head()):
            head = last
    except OSError as error:
        _LOGGER.warning("%s: the link %s was not updated: %s", log.storage, CURRENT, error)


def _link(home: Path, snapshot: Snapshot) -> Snapshot:
    name = f"{snapshot.number}-{snapshot.run}"
    _build(home, snapshot, name)
    new = home / _SNAPSHOTS / f".{snapshot.number}-{uuid4().hex}"
    new.symlink_to(Path(_SNAPSHOTS, name), target_is_directory=True)
    new.replace(home / CURRENT)
    return snapshot


def _build(home: Path, snapshot: Snapshot, name: str) -> None:
    directory = home / _SNAPSHOTS / name
    if directory.exists():
        return
    new = directory.with_name(f".{snapshot.number}-{uuid4().hex}")
    tables = {name: files for name, files in snapshot.tables.items() if not name.startswith("_")}
    for table, files in tables.items():
        for file in files.values():
            link = new / table / file.name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(home / file.path, link.parent))
    new.mkdir(parents=True, exist_ok=True)
    try:
        new.rename(directory)
    except OSError:
        # Another run may have built it meanwhile.
        shutil.rmtree(new)
        if not directory.exists():
            raise


def _remove_old_links(log: CommitLog) -> None:
    """Remove the snapshots of commits whose manifests are gone, and the leftovers of killed runs."""
    home = log.storage.local_directory
    if home is None or not (home / _SNAPSHOTS).is_dir():
        return
    # A snapshot is built after its commit, so the commits are listed last.
    entries = list((home / _SNAPSHOTS).iterdir())
    kept = log.numbers()
    for entry in entries:
        number = entry.name.lstrip(".").partition("-")[0]
        if not number.isdecimal() or int(number) not in kept:
            entry.unlink(missing_ok=True) if entry.is_symlink() else shutil.rmtree(entry, ignore_errors=True)
