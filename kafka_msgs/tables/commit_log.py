"""The commit log of an output directory: immutable files, made visible by one manifest for each run.

======================================  ===============================================================================
Path                                    Content
======================================  ===============================================================================
``_runs/<run>/begun.json``              The token of a run: its base commit and its identity, without credentials.
``data/<run>/<attempt>/<table>/...``    Files that task attempts have written. They are never renamed or changed.
``<table>/<run>/<attempt>/...``         The same for tables whose format requires all files in the table's directory.
``_commits/<number>.json``              The manifest of a run: the files of all tables, by table.
======================================  ===============================================================================

A manifest is created only if no other run has created the manifest with its number. So each reader sees the files of
one complete run, and of two overlapping runs one is refused. Before the manifest exists, a crash leaves files that no
reader looks at; ``expire`` removes them. Each task first reads the token: a worker that does not see it writes to a
disk that is not shared, and the run fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain
from typing import Any, Final
from uuid import uuid4

from attrs import asdict, field, frozen

from kafka_msgs.errors import ConcurrentRunError, JobPathError, StorageError, UnseenFileError
from kafka_msgs.filesystems.storage import Storage

__all__ = ["GRACE", "NOT_EMPTY", "CommitLog", "RunToken", "Snapshot", "WrittenFile", "by_name"]

GRACE: Final = timedelta(days=1)
"""The default grace period. A run that takes longer is refused, and files without a manifest are kept as long."""

_COMMITS: Final = "_commits"
_RUNS: Final = "_runs"
_DATA: Final = "data"
_BEGUN: Final = "begun.json"
_CLOCK: Final = "clock"
_NUMBER: Final = re.compile(r"_commits/(?P<number>[0-9]{20})\.json")
_KEPT_COMMITS: Final = 2
_MOVED: Final = "another run has committed since it began"
_TOO_LONG: Final = "it took longer than the grace period, after which other runs may remove its files"
_NOT_SHARED: Final = (
    "this process does not see the file as it was written; driver and workers do not share this location, or it was "
    "deleted or changed"
)

NOT_EMPTY: Final = "it exists and is not an empty directory; nothing is overwritten"
"""The reason why an output directory is refused."""
_YES_NO: Final[Mapping[object, str]] = {True: "yes", False: "no"}
_OWN_NAMES: Final = frozenset([_COMMITS, _RUNS, _DATA])


@frozen
class WrittenFile:
    """A complete file of a table.

    ``name`` is its path in the table, and ``path`` its path in the output directory. ``size`` is in bytes. A file of an
    appended table also has the name of its ``log``, the base offset of its ``segment`` (-1 for several), and
    ``is_open`` for rows that the next run replaces.
    """

    name: str
    path: str
    size: int
    rows: int
    log: str = ""
    segment: int = -1
    is_open: bool = False


@frozen(kw_only=True)
class RunToken:
    """A run that has begun: its id, the number of the commit it builds on, and its identity.

    With ``table_directories``, the files of a table are in the directory of the table.
    """

    run: str
    base: int
    identity: Mapping[str, Any] = field(factory=dict)
    table_directories: bool = False

    @property
    def path(self) -> str:
        """The path of the token in the output directory."""
        return f"{_RUNS}/{self.run}/{_BEGUN}"

    def content(self) -> bytes:
        """Return the content of the token's file."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    def data_path(self, attempt: str, table: str, name: str) -> str:
        """Return the path of a new file of a table in the output directory."""
        if self.table_directories and not table.startswith("_"):
            return f"{table}/{self.run}/{attempt}/{name}"
        return f"{_DATA}/{self.run}/{attempt}/{table}/{name}"


@frozen(kw_only=True)
class Snapshot:
    """A commit: its number, the run that made it, and the files of each table by their names in it."""

    number: int
    run: str
    identity: Mapping[str, Any] = field(factory=dict)
    tables: Mapping[str, Mapping[str, WrittenFile]] = field(factory=dict)

    def file(self, table: str, name: str) -> WrittenFile | None:
        """Return a file by its path in a table, or None."""
        return self.tables.get(table, {}).get(name)

    def files(self) -> Iterator[WrittenFile]:
        """Yield the files of all tables."""
        return chain.from_iterable(files.values() for files in self.tables.values())

    def content(self) -> bytes:
        """Return the manifest."""
        tables = {name: [asdict(each) for each in files.values()] for name, files in self.tables.items()}
        found = {"number": self.number, "run": self.run, "identity": self.identity, "tables": tables}
        return json.dumps(found, sort_keys=True).encode()

    @classmethod
    def from_content(cls, content: bytes) -> Snapshot:
        """Return the snapshot in a manifest.

        Raises ``AttributeError``, ``KeyError``, ``TypeError`` and ``ValueError`` for other content.
        """
        found = json.loads(content)
        tables = {name: by_name(WrittenFile(**each) for each in files) for name, files in found["tables"].items()}
        return cls(number=found["number"], run=found["run"], identity=dict(found["identity"]), tables=tables)


def by_name(files: Iterable[WrittenFile]) -> dict[str, WrittenFile]:
    """Return files by their names in a table, in the order of the names."""
    return {each.name: each for each in sorted(files, key=lambda each: each.name)}


@frozen
class CommitLog:
    """The commits in an output directory.

    ``grace`` must be longer than any run. All methods raise ``OSError`` and ``StorageError``.
    """

    storage: Storage
    grace: timedelta = GRACE

    def head(self) -> Snapshot | None:
        """Return the latest commit, or None. Raises ``JobPathError`` for a damaged manifest."""
        numbers = self.numbers()
        return self.snapshot(numbers[-1]) if numbers else None

    def is_unused(self) -> bool:
        """Return whether the directory is empty, apart from the leftovers of runs that committed nothing."""
        home = self.storage.local_directory
        if (home is not None and home.is_file()) or self.numbers():
            return False
        runs = {_run_of(each.path) for each in self.storage.list_files(_RUNS)}
        return all(_is_leftover(each.path, runs) for each in self.storage.list_files())

    def find_earlier(self, identity: Mapping[str, Any]) -> Snapshot | None:
        """Return the latest commit if it has the identity of a run, which can then resume it. None for an unused one.

        Raises ``JobPathError`` if the directory contains anything else.
        """
        if self.is_unused():
            return None
        head = self.head()
        found = head.identity if head else {}
        if found.keys() != identity.keys() or found["job"] != identity["job"]:
            raise JobPathError(path=str(self.storage), reason=NOT_EMPTY)
        for what, value in found.items():
            if value != identity[what]:
                reason = f"it holds a run with other {what} ({_shown(value)}); nothing is overwritten"
                raise JobPathError(path=str(self.storage), reason=reason)
        return head

    def snapshot(self, number: int) -> Snapshot:
        """Return a commit. Raises ``JobPathError`` for a damaged or missing manifest."""
        return self._parsed(number, self.storage.read(_manifest(number)) or b"")

    def _parsed(self, number: int, content: bytes) -> Snapshot:
        try:
            found = Snapshot.from_content(content)
            if found.number != number:
                raise ValueError(f"its number is {found.number}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            path = f"{self.storage}/{_manifest(number)}"
            raise JobPathError(path=path, reason=f"it is not a manifest: {error!r}") from error
        return found

    def begin(self, identity: Mapping[str, Any], base: Snapshot | None, *, table_directories: bool = False) -> RunToken:
        """Begin a run on top of a commit, None for the first run, and return its token.

        Raises ``StorageError`` for a storage that cannot create files atomically.
        """
        run = uuid4().hex
        self.storage.probe(f"{_RUNS}/{run}/probe")
        number = base.number if base else 0
        token = RunToken(run=run, base=number, identity=identity, table_directories=table_directories)
        self.storage.create(token.path, token.content())
        return token

    def check_visible(self, token: RunToken) -> None:
        """Raise ``UnseenFileError`` if this process does not see the token of a run."""
        if self.storage.read(token.path) != token.content():
            raise UnseenFileError(path=f"{self.storage}/{token.path}", reason=_NOT_SHARED)

    def commit(self, token: RunToken, tables: Mapping[str, Iterable[WrittenFile]]) -> Snapshot:
        """Commit the files of a run, and return the snapshot. ``tables`` also lists the earlier files that remain.

        Raises the errors of ``check_files`` for the new files, and
        ``ConcurrentRunError`` if another run has committed in between, or if the run took longer than the grace period.
        """
        found = {name: by_name(files) for name, files in tables.items()}
        snapshot = Snapshot(number=token.base + 1, run=token.run, identity=token.identity, tables=found)
        self._check_head(token, token.base)
        self.check_files(each for each in snapshot.files() if _run_of(each.path) == token.run)
        if self._age(token) >= self.grace.total_seconds():
            raise self._refused(token, _TOO_LONG)
        path, content = _manifest(snapshot.number), snapshot.content()
        try:
            created = self.storage.create(path, content)
        except (OSError, StorageError):
            # A lost response may have been a success, so the manifest itself decides.
            if self.storage.read(path) != content:
                raise
        else:
            if not created and self.storage.read(path) != content:
                raise self._refused(token, _MOVED)
        self._check_head(token, snapshot.number)
        return snapshot

    def expire(self) -> int:
        """Remove old manifests, and the files of old runs that no remaining manifest lists; return their number.

        The latest two commits remain, and all that were the head within the grace period, as do the files of younger
        runs. Ages are differences of times by the storage, not by this machine.
        """
        data, runs = list(self.storage.list_files(_DATA)), list(self.storage.list_files(_RUNS))
        manifests = list(self.storage.list_files(_COMMITS))
        commits = {number: each for each in manifests if (number := _number_of(each.path))}
        if not commits:
            return 0
        horizon = max(each.modified for each in commits.values()) - self.grace.total_seconds()
        kept = {
            number
            for number, each in commits.items()
            if number > max(commits) - _KEPT_COMMITS or commits.get(number + 1, each).modified > horizon
        }
        listed = set(self._listed(kept))
        # Either list may lack a run that has begun meanwhile.
        young = {_run_of(each.path) for each in (*data, *runs) if each.modified > horizon}
        alive = young | {_run_of(path) for path in listed}
        dead = [each.path for each in data if each.path not in listed and _run_of(each.path) not in young]
        gone = {_directory_of(each.path) for each in (*data, *runs) if _run_of(each.path) not in alive}
        leftovers = [each.path for each in manifests if not _number_of(each.path) and each.modified <= horizon]
        self.storage.delete(path for path in (*dead, *leftovers) if _directory_of(path) not in gone)
        # The directories in data are the last in order. Without a token, an empty one would remain forever.
        self.storage.delete_directories(sorted(gone, reverse=True))
        self.storage.delete(each.path for number, each in commits.items() if number not in kept)
        return len(dead)

    def _listed(self, numbers: Iterable[int]) -> Iterator[str]:
        """Yield the paths of the files in manifests, except those that another run has removed meanwhile."""
        for number in numbers:
            if (content := self.storage.read(_manifest(number))) is not None:
                yield from (file.path for file in self._parsed(number, content).files())

    def numbers(self) -> list[int]:
        """Return the numbers of the commits whose manifests remain, in order."""
        found = (_number_of(each.path) for each in self.storage.list_files(_COMMITS))
        return sorted(number for number in found if number)

    def check_files(self, files: Iterable[WrittenFile]) -> None:
        """Raise ``UnseenFileError`` if a file is missing or has another size than its writer saw."""
        found = list(files)
        directories = {_directory_of(each.path) for each in found}
        there = {each.path: each.size for directory in directories for each in self.storage.list_files(directory)}
        for file in found:
            if there.get(file.path) != file.size:
                raise UnseenFileError(path=f"{self.storage}/{file.path}", reason=_NOT_SHARED)

    def _check_head(self, token: RunToken, number: int) -> None:
        if max(self.numbers(), default=0) != number:
            raise self._refused(token, _MOVED)

    def _refused(self, token: RunToken, reason: str) -> ConcurrentRunError:
        return ConcurrentRunError(path=str(self.storage), run=token.run, reason=reason)

    def _age(self, token: RunToken) -> float:
        """Return the seconds since a run began, as the difference of two times by the storage."""
        clock = f"{_RUNS}/{token.run}/{_CLOCK}"
        self.storage.write(clock, b"")
        times = {each.path: each.modified for each in self.storage.list_files(f"{_RUNS}/{token.run}")}
        if token.path not in times:
            raise UnseenFileError(path=f"{self.storage}/{token.path}", reason=_NOT_SHARED)
        return times[clock] - times[token.path]


def _manifest(number: int) -> str:
    return f"{_COMMITS}/{number:020}.json"


def _number_of(path: str) -> int | None:
    match = _NUMBER.fullmatch(path)
    return int(match["number"]) if match else None


def _run_of(path: str) -> str:
    return path.split("/", 2)[1]


def _directory_of(path: str) -> str:
    """Return the directory of a run with a file."""
    return "/".join(path.split("/", 2)[:2])


def _is_leftover(path: str, runs: Container[str]) -> bool:
    """Return whether a file belongs to a run, with or without a directory of its table."""
    first, *rest = path.split("/")
    return first in _OWN_NAMES or (len(rest) > 1 and rest[0] in runs)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else _YES_NO.get(value, str(value))
