"""The location of an Iceberg table: its name in a catalog, and its files on a filesystem.

For local tables, the catalog is ``catalog.db`` next to the tables, a SQLite file in the layout of Iceberg's JDBC
catalog. For remote tables, it is the default catalog in pyiceberg's configuration file or environment variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen
from pyarrow import fs
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.filesystems.store_options import properties

if TYPE_CHECKING:
    from pyiceberg.table import Table

__all__ = ["CATALOG_FILE", "NAMESPACE", "IcebergLocation", "catalog_of"]

CATALOG_FILE: Final = "catalog.db"
"""The catalog of local tables, next to their directories."""
NAMESPACE: Final = "kafka"
"""The namespace of the tables in their catalog. Tables are named after their directories."""
_SCHEME: Final = "file://"


def catalog_of(directory: Path) -> SqlCatalog:
    """Return the catalog of the tables in a directory, and create it if it does not exist."""
    return SqlCatalog(NAMESPACE, uri=f"sqlite:///{directory / CATALOG_FILE}", warehouse=f"{_SCHEME}{directory}")


@frozen
class IcebergLocation:
    """The location of a table. ``url`` is its URL in the catalog, and ``path`` its path on the filesystem."""

    url: str
    path: str
    filesystem: fs.FileSystem
    fs_options: FilesystemOptions

    @classmethod
    def of(cls, location: str, fs_options: FilesystemOptions = NO_OPTIONS) -> IcebergLocation:
        """Return the location at a path or URI. Raises ``OptionError`` and ``JobPathError``."""
        if "://" in location:
            storage = Storage.at(location, fs_options)
            return cls(location.rstrip("/"), storage.full_path(""), storage.filesystem, fs_options)
        path = str(Path(location).absolute())
        # pyiceberg and Iceberg expect an unquoted URL.
        return cls(f"{_SCHEME}{path}", path, fs.LocalFileSystem(), fs_options)

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return f"{NAMESPACE}.{self.path.rpartition('/')[2]}"

    @property
    def _directory(self) -> Path | None:
        """The local directory of the catalog, or None for a configured catalog."""
        return Path(self.path).parent if self.url.startswith(_SCHEME) else None

    def table(self) -> Table | None:
        """Return the table, or None if it does not exist. Raises the errors of ``catalog``."""
        if self._directory is not None and not (self._directory / CATALOG_FILE).exists():
            return None
        catalog = self.catalog()
        return catalog.load_table(self.name) if catalog.table_exists(self.name) else None

    def catalog(self) -> Catalog:
        """Return the catalog. Raises ``OptionError`` without a configured one, and pyiceberg's errors."""
        if self._directory is not None:
            return catalog_of(self._directory)
        try:
            return load_catalog(**properties(self.url, self.fs_options))
        except ValueError as error:
            reason = f"tables elsewhere need a catalog, the default one of pyiceberg's configuration: {error}"
            raise OptionError(source="iceberg", option="place", value=mask_uri(self.url), reason=reason) from None
