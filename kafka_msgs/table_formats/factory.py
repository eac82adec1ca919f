"""The formats by name, each imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from kafka_msgs.errors import MissingExtraError, OptionError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions

if TYPE_CHECKING:
    from kafka_msgs.table_formats.table_format import TableFormat

__all__ = ["FORMAT_NAMES", "get_format"]

_FORMATS: Final = {
    "parquet": ("kafka_msgs.table_formats.parquet", "ParquetFormat", "pyarrow", "arrow"),
    "delta": ("kafka_msgs.table_formats.delta", "DeltaFormat", "deltalake", "delta"),
    "iceberg": ("kafka_msgs.table_formats.iceberg", "IcebergFormat", "pyiceberg", "iceberg"),
}
"""Of each format its module and class, and the package that it needs with the extra that brings it."""

FORMAT_NAMES: Final = tuple(_FORMATS)
"""The names of all formats; the first is the one that needs nothing but Arrow."""


def get_format(name: str, fs_options: FilesystemOptions = NO_OPTIONS) -> TableFormat:
    """Return the format with that name, for tables on filesystems with these settings.

    Raises ``OptionError`` if there is none, and ``MissingExtraError``.
    """
    if name not in _FORMATS:
        expected = f"one of {', '.join(FORMAT_NAMES)} was expected"
        raise OptionError(source="formats", option="format", value=name, reason=expected)
    module, cls, package, extra = _FORMATS[name]
    try:
        found: TableFormat = getattr(import_module(module), cls)(fs_options)
    except ImportError as error:
        raise MissingExtraError(feature=f"the format {name}", extra=extra, package=package) from error
    return found
