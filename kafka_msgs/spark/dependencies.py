"""Shipping of this package and its dependencies to the executors of a session.

Defines the list of shipped packages and their form. Every package is an archive that Spark unpacks in a separate
directory below the root of the session's files. That root is on the path of Python workers, so the directory *is* the
package. This also works for C extensions, which Python cannot load from a zip file.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import files, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

__all__ = ["is_classic", "ship_dependencies"]

_PACKAGES: Final = (
    "kafka_msgs",
    "attr",
    "attrs",
    "crc32c",
    "cramjam",
    "dpkt",
    "scramp",
    "asn1crypto",
    "fsspec",
    "hdfs_native",
)
"""The packages to ship, if installed here. Arrow is not included: executors need it for any Python function."""

_LEFT_OUT: Final = frozenset({"__pycache__", "cli"})
_SUFFIXES: Final = frozenset({".py", ".so", ".pyd", ".typed"})
_METADATA: Final = "METADATA"


def ship_dependencies(spark: SparkSession) -> None:
    """Send this package and its dependencies to the executors of a session.

    Works in classic and in Connect mode. C extensions work if the executors have the platform and Python version of
    this process. Otherwise ``kafka_msgs`` runs in pure Python, and ``crc32c`` must be installed on the executors.
    """
    archives = [f"{path}#{name}" for name, path in _archives().items()]
    if is_classic(spark):
        known = set(spark.sparkContext.listArchives)
        for archive in archives:
            if f"file:{archive}" not in known:
                spark.sparkContext.addArchive(archive)
    else:
        spark.addArtifacts(*archives, archive=True)


def is_classic(spark: SparkSession) -> bool:
    """Return whether a session is classic: it has a JVM, and this process is its driver."""
    return type(spark).__module__ == "pyspark.sql.session"


@cache
def _archives() -> dict[str, Path]:
    """Return the archives by their target directory. They are built once per process."""
    directory = Path(_directory().name)
    homes = {name: home for package in _PACKAGES for name, home in _homes(package)}
    return {name: _archive(directory, name, home) for name, home in homes.items()}


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kafka-msgs-shipped-")


def _homes(package: str) -> Iterator[tuple[str, Path]]:
    """Yield the directories of a package: its code, and its metadata, from which it may read its version."""
    spec = find_spec(package)
    for home in (spec.submodule_search_locations or ()) if spec else ():
        yield package, Path(home)
    for distribution in packages_distributions().get(package, ()):
        for file in files(distribution) or ():
            if file.name == _METADATA:
                about = Path(str(file.locate())).parent
                yield about.name, about


def _archive(directory: Path, name: str, home: Path) -> Path:
    archive = directory / f"{name}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        for path in sorted(home.rglob("*")):
            inner, is_shipped = path.relative_to(home), path.suffix in _SUFFIXES or path.name == _METADATA
            if is_shipped and path.is_file() and _LEFT_OUT.isdisjoint(inner.parts):
                written.write(path, inner)
    return archive
