"""The sources of definitions: the jars of a Kafka release, one jar, a directory, or a source checkout.

Defines the table of origins (the parts of Kafka that definitions belong to, and the artifacts that have contained them)
and the search for definition files in each kind of source. It reads and hashes texts; ``importer`` processes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

from kafka_msgs_generator.error_table import KafkaError, read_errors
from kafka_msgs_generator.jar import MAX_ENTRY_BYTES, Jar, open_jar
from kafka_msgs_generator.maven import SourceUnavailableError, fetch_existing_jars

__all__ = ["GROUP", "MAIN_ORIGIN", "ORIGINS", "Carrier", "OriginSource", "read_path", "read_release"]

GROUP: Final = "org.apache.kafka"
"""Maven group of Kafka's artifacts."""

MAIN_ORIGIN: Final = "clients"
"""The origin that every release has: requests, responses and headers. Its release is the release of a full import."""


@frozen
class Carrier:
    """An artifact with the definitions of an origin: all of them, or only definitions whose names have a prefix."""

    artifact: str
    prefixes: tuple[str, ...] = ("",)


_CORE: Final = "kafka_2.13"
"""Kafka's core. Its other builds, such as ``kafka_2.12``, carry the same definitions."""

ORIGINS: Final[Mapping[str, tuple[Carrier, ...]]] = {
    MAIN_ORIGIN: (Carrier("kafka-clients"),),
    "group-coordinator": (Carrier("kafka-group-coordinator"), Carrier(_CORE, ("Group", "Offset"))),
    "transaction-coordinator": (Carrier("kafka-transaction-coordinator"), Carrier(_CORE, ("Transaction",))),
    "share-coordinator": (Carrier("kafka-share-coordinator"),),
    "raft": (Carrier("kafka-raft"),),
    "metadata": (Carrier("kafka-metadata"),),
    "storage": (Carrier("kafka-storage"),),
    "streams": (Carrier("kafka-streams"),),
}
"""Each origin (the name of Kafka's source module) and the artifacts that carry its definitions, the newest first.

Before the two coordinators had separate modules, their records were in Kafka's core.
"""

_UNKNOWN_RELEASE: Final = "unknown"
_FOLDERS = ("message", "metadata")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.-]*")
_ORIGIN_NAME = re.compile(r"[a-z0-9-]+")
_JAR_NAME = re.compile(r"(?P<artifact>[a-z][a-z-]*[a-z])(?P<scala>_[0-9.]+)?-(?P<release>[0-9].*?)\.jar")


@frozen
class OriginSource:
    """The definitions of one origin, as found.

    Attributes: ``origin``; ``release`` (Kafka's version, or ``"unknown"``); ``artifact`` (the jar, without its folder);
    ``sha256`` (of the jar, in hex, or None when there was none); ``texts`` (file name to text); ``errors`` (the error
    codes of a jar of Kafka's clients, otherwise None).
    """

    origin: str
    release: str
    artifact: str
    sha256: str | None
    texts: Mapping[str, str]
    errors: list[KafkaError] | None = None


def read_release(release: str, folder: Path) -> list[OriginSource]:
    """Fetch the jars of a Kafka release through Maven into ``folder`` and return the definitions of its origins.

    An origin that the release lacks is not in the list. Raises ``SourceUnavailableError`` if an existing jar cannot be
    fetched, or if the release does not exist.
    """
    if not _RELEASE.fullmatch(release):
        raise SourceUnavailableError(reason=f"{release!r} is not a release: expected a version such as 4.4.0")
    artifacts = sorted({carrier.artifact for carriers in ORIGINS.values() for carrier in carriers})
    fetch_existing_jars([f"{GROUP}:{artifact}:{release}" for artifact in artifacts], folder)
    found = [source for origin in ORIGINS for source in _read_fetched(release, origin, folder)]
    if not any(source.origin == MAIN_ORIGIN for source in found):
        artifact = f"{GROUP}:{ORIGINS[MAIN_ORIGIN][0].artifact}:{release}"
        raise SourceUnavailableError(reason=f"Maven cannot find {artifact}: is {release} a release of Kafka?")
    return found


def _read_fetched(release: str, origin: str, folder: Path) -> list[OriginSource]:
    """Return the definitions of an origin from the newest artifact that contains them; none if the release has none."""
    for carrier in ORIGINS[origin]:
        jar = folder / f"{carrier.artifact}-{release}.jar"
        if jar.exists():
            source = _read_jar(jar, origin, f"{GROUP}:{carrier.artifact}:{release}", carrier.prefixes)
            if source.texts:
                return [source]
    return []


def read_path(path: Path, origin: str | None = None) -> list[OriginSource]:
    """Return the definitions at ``path``: a jar, a checkout of Kafka's source, or a directory of jars or definitions.

    ``origin`` is required for a directory of definitions, and for a jar that is not named after a known artifact. From
    a directory of jars, such as a broker's ``libs``, only known artifacts are read. Raises ``SourceUnavailableError``.
    """
    if origin is not None and not _ORIGIN_NAME.fullmatch(origin):
        raise SourceUnavailableError(reason=f"{origin!r} cannot name an origin: lower-case letters, digits and dashes")
    if path.is_file():
        carried = {origin: ("",)} if origin is not None else _origins_of_jar(path)
        if not carried:
            reason = f"{path.name} is not a known artifact; name the origin of its definitions with --origin"
            raise SourceUnavailableError(reason=reason)
        found = _read_origins(path, carried)
    elif path.is_dir():
        found = [_read_directory(path, origin)] if origin is not None else [*_read_jars(path), *_read_checkout(path)]
    else:
        raise SourceUnavailableError(reason=f"{path} is neither a jar nor a directory")
    if not any(source.texts for source in found):
        hint = "" if origin or path.is_file() else "; for a plain directory of definitions, name their origin"
        raise SourceUnavailableError(reason=f"no message definitions in {path}{hint}")
    return found


def _origins_of_jar(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the origins whose definitions a Kafka artifact may contain, each with the prefixes of their names."""
    match = _JAR_NAME.fullmatch(path.name)
    carriers = ((origin, carrier) for origin, carriers in ORIGINS.items() for carrier in carriers)
    artifact = match and (_CORE if match["scala"] and match["artifact"] == "kafka" else match["artifact"])
    return {origin: carrier.prefixes for origin, carrier in carriers if carrier.artifact == artifact}


def _read_jars(folder: Path) -> list[OriginSource]:
    """Return the definitions of all known artifacts in a folder, each origin from one jar."""
    found: dict[str, OriginSource] = {}
    for jar in sorted(folder.glob("*.jar")):
        for source in _read_origins(jar, _origins_of_jar(jar)):
            other = found.setdefault(source.origin, source)
            if other is not source:
                reason = f"{other.artifact} and {jar.name} both carry the origin {source.origin}; import one of them"
                raise SourceUnavailableError(reason=reason)
    return list(found.values())


def _read_origins(jar: Path, carried: Mapping[str, tuple[str, ...]]) -> list[OriginSource]:
    read = (_read_jar(jar, origin, jar.name, prefixes) for origin, prefixes in carried.items())
    return [source for source in read if source.texts]


def _read_jar(path: Path, origin: str, artifact: str, prefixes: tuple[str, ...]) -> OriginSource:
    with open_jar(path) as jar:
        texts = _texts_of_jar(jar, prefixes)
        errors = read_errors(jar) if origin == MAIN_ORIGIN else None
    match = _JAR_NAME.fullmatch(path.name)
    release = match["release"] if match else _UNKNOWN_RELEASE
    return OriginSource(origin, release, artifact, hashlib.sha256(path.read_bytes()).hexdigest(), texts, errors)


def _texts_of_jar(jar: Jar, prefixes: tuple[str, ...]) -> dict[str, str]:
    paths = {name: PurePosixPath(name) for name in sorted(jar)}
    chosen = {
        name: path.name for name, path in paths.items() if _is_definition(path) and path.name.startswith(prefixes)
    }
    return {file: _decoded(jar.read(name), name) for name, file in chosen.items()}


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
    return {file.name: _decoded(_read_file(file), file.name) for file in sorted(files)}


def _read_file(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > MAX_ENTRY_BYTES:
        reason = f"{path.name} is not a definition: it is no regular file of at most {MAX_ENTRY_BYTES} bytes"
        raise SourceUnavailableError(reason=reason)
    return path.read_bytes()


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceUnavailableError(reason=f"{name} is not UTF-8: byte {error.start} cannot be read") from None
