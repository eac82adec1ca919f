"""The location of an Iceberg table: its name in a catalog, and its files on a filesystem.

For local tables, the catalog is ``catalog.db`` next to the tables, a SQLite file in the layout of Iceberg's JDBC
catalog. For remote tables, it is the default catalog in pyiceberg's configuration file or environment variables.
"""

from __future__ import annotations

from collections.abc import Callable
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
    import pyarrow as pa
    from pyiceberg.table import CreateTableTransaction, Table

__all__ = ["CATALOG_FILE", "NAMESPACE", "IcebergTable", "catalog_of"]

CATALOG_FILE: Final = "catalog.db"
"""The catalog of local tables, next to their directories."""
NAMESPACE: Final = "kafka"
"""The namespace of the tables in their catalog. Tables are named after their directories."""
_SCHEME: Final = "file://"


def catalog_of(directory: Path) -> SqlCatalog:
    """Return the catalog of the tables in a directory. The first table creates it."""
    return SqlCatalog(NAMESPACE, uri=f"sqlite:///{directory / CATALOG_FILE}", warehouse=f"{_SCHEME}{directory}")


@frozen
class IcebergTable:
    """The location of a table. ``location`` is its URL, ``inner`` the path of the URL on the filesystem."""

    location: str
    inner: str
    filesystem: fs.FileSystem
    catalog: Callable[[], Catalog]
    there: Callable[[], bool]
    """Whether a catalog exists."""

    @classmethod
    def of(cls, location: str, fs_options: FilesystemOptions = NO_OPTIONS) -> IcebergTable:
        """Return the table at a path or URI. Raises ``OptionError`` and ``JobPathError``."""
        if "://" in location:
            storage, url = Storage.at(location, fs_options), location.rstrip("/")
            return cls(
                url, storage.full_path(""), storage.filesystem, lambda: _configured(location, fs_options), _always
            )
        path = Path(location).absolute()
        catalog = path.parent / CATALOG_FILE
        # pyiceberg and Iceberg expect an unquoted URL.
        return cls(f"{_SCHEME}{path}", str(path), fs.LocalFileSystem(), lambda: catalog_of(path.parent), catalog.exists)

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return f"{NAMESPACE}.{self.inner.rpartition('/')[2]}"

    def exists(self) -> bool:
        """Return whether the catalog contains the table."""
        return self.there() and self.catalog().table_exists(self.name)

    def table(self) -> Table:
        """Return the table. Raises pyiceberg's errors."""
        return self.catalog().load_table(self.name)

    def creation(self, schema: pa.Schema) -> CreateTableTransaction:
        """Return the transaction that creates the table, and create its namespace if it does not exist."""
        self.filesystem.create_dir(self.inner.rpartition("/")[0], recursive=True)
        catalog = self.catalog()
        catalog.create_namespace_if_not_exists(NAMESPACE)
        return catalog.create_table_transaction(self.name, schema, location=self.location)

    def path_of(self, url: str) -> str:
        """Return the path of a file of the table on its filesystem."""
        return self.inner + url.removeprefix(self.location)

    def url_of(self, path: str) -> str:
        """Return the URL of a path on the filesystem."""
        return self.location + path.removeprefix(self.inner)


def _always() -> bool:
    return True


def _configured(location: str, fs_options: FilesystemOptions) -> Catalog:
    try:
        return load_catalog(**properties(location, fs_options))
    except ValueError as error:
        reason = f"tables elsewhere need a catalog, the default one of pyiceberg's configuration: {error}"
        raise OptionError(source="iceberg", option="place", value=mask_uri(location), reason=reason) from None
