"""The formats by name, imported lazily."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from kafka_msgs.errors import MissingExtraError, OptionError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.suggestions import no_such

if TYPE_CHECKING:
    from kafka_msgs.tables.table_format import TableFormat

__all__ = ["FORMAT_NAMES", "get_format"]

_FORMATS: Final = {
    "parquet": ("kafka_msgs.tables.table_format", "TableFormat", "pyarrow", "arrow"),
    "delta": ("kafka_msgs.tables.delta", "DeltaFormat", "deltalake", "delta"),
    "iceberg": ("kafka_msgs.tables.iceberg", "IcebergFormat", "pyiceberg", "iceberg"),
}
"""The module and class of each format, its required package, and the extra that installs it."""

FORMAT_NAMES: Final = tuple(_FORMATS)
"""The names of all formats. The first one needs only Arrow."""


def get_format(name: str, fs_options: FilesystemOptions = NO_OPTIONS) -> TableFormat:
    """Return the format with a name, for tables on filesystems with these options.

    Raises ``OptionError`` for an unknown name, and ``MissingExtraError``.
    """
    if name not in _FORMATS:
        raise OptionError(source="formats", option="format", value=name, reason=no_such("format", name, FORMAT_NAMES))
    module, cls, package, extra = _FORMATS[name]
    try:
        found: TableFormat = getattr(import_module(module), cls)(fs_options)
    except ImportError as error:
        raise MissingExtraError(feature=f"the format {name}", extra=extra, package=package) from error
    return found
