"""The tables of a job in an output directory: committed by a manifest, then applied to tables in another format.

The manifest defines the content of all tables. A version of a Delta or Iceberg table refers to the files that the
manifest lists: missing ones are added and all others removed, so that applying a commit twice changes nothing. If a run
is killed before it has applied its commit, the next run does so first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import NOT_EMPTY, CommitLog, RunToken, Snapshot, WrittenFile
from kafka_msgs.tables.current_link import finish_commit
from kafka_msgs.tables.factory import get_format
from kafka_msgs.tables.table_format import TableFormat, partition_values
from kafka_msgs.tables.task_output import TableSpec

__all__ = ["JobTables"]

_ATTEMPTS: Final = 10
_PAUSE: Final = 0.1
"""The seconds before another attempt, multiplied by the number of attempts."""


@frozen(kw_only=True)
class JobTables:
    """The tables of a job by name, in the directory ``out``, a path or URI. ``identity`` identifies its runs."""

    out: str
    specs: Mapping[str, TableSpec]
    identity: Mapping[str, object]
    form: TableFormat
    log: CommitLog

    @classmethod
    def at(
        cls,
        out: str,
        specs: Mapping[str, TableSpec],
        identity: Mapping[str, object],
        table_format: str = "parquet",
        fs_options: FilesystemOptions = NO_OPTIONS,
    ) -> JobTables:
        """Return the tables in a directory. Raises the errors of ``get_format`` and of ``Storage.at``."""
        form, log = get_format(table_format, fs_options), CommitLog(Storage.at(out, fs_options))
        return cls(out=out, specs=specs, identity={**identity, "format": table_format}, form=form, log=log)

    def find_base(self) -> Snapshot | None:
        """Return the commit that the next run resumes, or None for the first run.

        Raises ``JobPathError`` if there is anything else than an earlier run of the same job, and for a location that
        the library of the format misreads, ``OptionError`` for an Iceberg table without a catalog, and the errors of
        the format.
        """
        if self.form.misread.match(self._location("")):
            reason = f"{self.form.name} tables cannot be here: their library misreads %20, # or ? in the location"
            raise JobPathError(path=str(self.log.storage), reason=reason)
        base = self.log.find_earlier(self.identity)
        for name, spec in self.specs.items() if base is None else ():
            table = self.form.open(self._location(name), spec)
            if table is not None and table.number is not None and not self.log.numbers():
                raise JobPathError(path=mask_uri(self._location(name)), reason=NOT_EMPTY)
        return base

    def begin(self, base: Snapshot | None) -> RunToken:
        """Begin a run, and before it apply the commit ``base`` if a killed run did not.

        Raises the errors of ``commit``.
        """
        if base is not None:
            self._apply(base)
        return self.log.begin(self.identity, base, table_directories=self._has_versions)

    def commit(self, token: RunToken, files: Mapping[str, Iterable[WrittenFile]]) -> Snapshot:
        """Commit the files of a run by table, and apply the commit. Files of other tables are only in the manifest.

        Raises ``JobPathError`` for a file in wrong directories, the errors of ``CommitLog.commit``, and if the commit
        could not be applied, ``JobPathError``, ``UnseenFileError`` or an error of the format: then the next run applies
        it.
        """
        found = {name: list(each) for name, each in files.items()}
        for name, spec in self.specs.items() if self._has_versions else ():
            for file in found.get(name, ()):
                if file.rows:
                    partition_values(spec, file)
        snapshot = self.log.commit(token, found)
        self._apply(snapshot)
        finish_commit(self.log)
        return snapshot

    @property
    def _has_versions(self) -> bool:
        return self.form.name != TableFormat.name

    def _location(self, name: str) -> str:
        # The libraries of formats do not know all forms of local URIs.
        home = self.log.storage.local_directory
        return f"{self.out.rstrip('/') if home is None else home.absolute()}/{name}"

    def _apply(self, snapshot: Snapshot) -> None:
        for name, spec in self.specs.items():
            for attempt in range(_ATTEMPTS):
                try:
                    self._apply_table(name, spec, snapshot)
                    break
                except self.form.conflicts as error:
                    # Often another run has just applied the same commit.
                    if attempt == _ATTEMPTS - 1:
                        reason = f"the next run applies commit {snapshot.number}, which conflicts: {error}"
                        raise JobPathError(path=mask_uri(self._location(name)), reason=reason) from error
                    time.sleep(_PAUSE * attempt)

    def _apply_table(self, name: str, spec: TableSpec, snapshot: Snapshot) -> None:
        table = self.form.open(self._location(name), spec)
        if table is None:
            return
        number = table.number or 0
        if number > max(self.log.numbers(), default=0):
            reason = f"it contains commit {number}, which is not in {self.log.storage}"
            raise JobPathError(path=mask_uri(self._location(name)), reason=reason)
        if number >= snapshot.number:
            return
        # A table without rows has a file in the manifest, but needs none in other formats.
        listed = snapshot.tables.get(name, {}).values()
        wanted = {each.path.removeprefix(f"{name}/"): each for each in listed if each.rows}
        there = set(table.files)
        added = {path: file for path, file in wanted.items() if path not in there}
        self.log.check_files(added.values())
        table.commit(snapshot.number, added, there - wanted.keys())
