"""Where definitions come from: a released Kafka's jars, one jar, a directory, or a source checkout.

Owns the table of origins (which part of Kafka a definition belongs to, and which artifacts have carried it) and finding
the definition files in each kind of place. It reads texts and hashes them; what becomes of them is ``importer``'s.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

from kafka_msgs_generator.maven import SourceUnavailableError, fetch_existing_jars

__all__ = ["GROUP", "MAIN_ORIGIN", "ORIGINS", "OriginSource", "read_path", "read_release"]

GROUP: Final = "org.apache.kafka"
"""Maven group of Kafka's artifacts."""

MAIN_ORIGIN: Final = "clients"
"""The origin that every release has: requests, responses and headers. Its release is that of a whole import."""

ORIGINS: Final[Mapping[str, tuple[str, ...]]] = {
    MAIN_ORIGIN: ("kafka-clients",),
    "group-coordinator": ("kafka-group-coordinator",),
    "transaction-coordinator": ("kafka-transaction-coordinator", "kafka_2.13"),
    "share-coordinator": ("kafka-share-coordinator",),
    "raft": ("kafka-raft",),
    "metadata": ("kafka-metadata",),
    "storage": ("kafka-storage",),
    "streams": ("kafka-streams",),
}
"""Each origin (the name of Kafka's source module) and the artifacts that carry its definitions, the newest first.

Before the transaction coordinator had a module of its own, its records were in Kafka's core.
"""

_UNKNOWN_RELEASE: Final = "unknown"
_FOLDERS = ("message", "metadata")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.-]*")
_ORIGIN_NAME = re.compile(r"[a-z0-9-]+")
_JAR_NAME = re.compile(r"(?P<artifact>[a-z][a-z-]*[a-z](?:_[0-9.]+)?)-(?P<release>[0-9].*?)\.jar")


@frozen
class OriginSource:
    """The definitions of one origin, as found.

    Attributes: ``origin``; ``release`` (Kafka's version, or ``"unknown"``); ``artifact`` (what they were read from,
    without its folder); ``sha256`` (of the jar, in hex, or None when there was none); ``texts`` (file name to text);
    ``jar`` (the file they were read from, or None).
    """

    origin: str
    release: str
    artifact: str
    sha256: str | None
    texts: Mapping[str, str]
    jar: Path | None = None


def read_release(release: str, folder: Path) -> list[OriginSource]:
    """Fetch the jars of a Kafka release through Maven into ``folder`` and return the definitions of its origins.

    An origin that the release lacks is not in the list. Raises ``SourceUnavailableError`` when something cannot be
    fetched although it exists, and when the release does not exist at all.
    """
    if not _RELEASE.fullmatch(release):
        raise SourceUnavailableError(reason=f"{release!r} is not a release: expected a version such as 4.4.0")
    found: dict[str, OriginSource] = {}
    for artifacts in zip_longest(*ORIGINS.values()):
        wanted = {origin: name for origin, name in zip(ORIGINS, artifacts, strict=True) if name and origin not in found}
        if wanted:
            found |= _fetch_origins(release, wanted, folder)
    if MAIN_ORIGIN not in found:
        artifact = f"{GROUP}:{ORIGINS[MAIN_ORIGIN][0]}:{release}"
        raise SourceUnavailableError(reason=f"Maven cannot find {artifact}: is {release} a release of Kafka?")
    return [found[origin] for origin in ORIGINS if origin in found]


def _fetch_origins(release: str, artifacts: Mapping[str, str], folder: Path) -> dict[str, OriginSource]:
    """Fetch one artifact for each origin; return the origins whose artifact exists and carries definitions."""
    coordinates = {origin: f"{GROUP}:{artifact}:{release}" for origin, artifact in artifacts.items()}
    fetch_existing_jars(list(coordinates.values()), folder)
    jars = {origin: folder / f"{artifact}-{release}.jar" for origin, artifact in artifacts.items()}
    read = {origin: _read_jar(jar, origin, coordinates[origin]) for origin, jar in jars.items() if jar.exists()}
    return {origin: source for origin, source in read.items() if source.texts}


def read_path(path: Path, origin: str | None = None) -> list[OriginSource]:
    """Return the definitions at ``path``: a jar, a checkout of Kafka's source, or a directory of definitions.

    ``origin`` is needed for a directory, and for a jar whose name is not that of a known artifact; a checkout tells
    the origin of each definition by its module. Raises ``SourceUnavailableError``.
    """
    if origin is not None and not _ORIGIN_NAME.fullmatch(origin):
        raise SourceUnavailableError(reason=f"{origin!r} cannot name an origin: lower-case letters, digits and dashes")
    if path.is_file():
        found = [_read_jar(path, origin or _origin_of_jar(path), path.name)]
    elif path.is_dir():
        found = _read_checkout(path) if origin is None else [_read_directory(path, origin)]
    else:
        raise SourceUnavailableError(reason=f"{path} is neither a jar nor a directory")
    if not any(source.texts for source in found):
        hint = "" if origin or path.is_file() else "; for a plain directory of definitions, name their origin"
        raise SourceUnavailableError(reason=f"no message definitions in {path}{hint}")
    return found


def _origin_of_jar(path: Path) -> str:
    match = _JAR_NAME.fullmatch(path.name)
    origins = [origin for origin, artifacts in ORIGINS.items() if match and match["artifact"] in artifacts]
    if not origins:
        raise SourceUnavailableError(reason=f"{path.name} is not a known artifact; name the origin of its definitions")
    return origins[0]


def _read_jar(path: Path, origin: str, artifact: str) -> OriginSource:
    try:
        with zipfile.ZipFile(path) as jar:
            names = [name for name in jar.namelist() if _is_definition(PurePosixPath(name))]
            texts = {PurePosixPath(name).name: _decoded(jar.read(name), name) for name in sorted(names)}
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceUnavailableError(reason=f"{path.name} cannot be read as a jar: {error}") from None
    match = _JAR_NAME.fullmatch(path.name)
    release = match["release"] if match else _UNKNOWN_RELEASE
    return OriginSource(origin, release, artifact, hashlib.sha256(path.read_bytes()).hexdigest(), texts, path)


def _read_directory(path: Path, origin: str) -> OriginSource:
    return OriginSource(origin, _UNKNOWN_RELEASE, "directory", None, _texts(path.glob("*.json")))


def _read_checkout(path: Path) -> list[OriginSource]:
    release = _checkout_release(path)
    resources = ((folder.parents[2].name, folder) for folder in sorted(path.glob("*/src/main/resources")))
    found = ((module, _texts(_definitions_under(folder))) for module, folder in resources)
    return [OriginSource(module, release, "checkout", None, texts) for module, texts in found if texts]


def _checkout_release(path: Path) -> str:
    properties = path / "gradle.properties"
    text = properties.read_text(encoding="utf-8") if properties.is_file() else ""
    match = re.search(r"^version=(\S+)$", text, re.MULTILINE)
    return match[1] if match else _UNKNOWN_RELEASE


def _definitions_under(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*.json") if _is_definition(PurePosixPath(file.as_posix())))


def _is_definition(name: PurePosixPath) -> bool:
    return name.suffix == ".json" and name.parent.name in _FOLDERS


def _texts(files: Iterator[Path]) -> dict[str, str]:
    return {file.name: _decoded(file.read_bytes(), file.name) for file in sorted(files)}


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceUnavailableError(reason=f"{name} is not UTF-8: byte {error.start} cannot be read") from None
