"""Where definitions come from: a released Kafka's jars, one jar, a directory, or a source checkout.

Owns the table of origins (which part of Kafka a definition belongs to), fetching jars through Maven, and finding the
definition files in each kind of place. It reads texts and hashes them; what becomes of them is ``importer``'s.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from attrs import frozen

from kafka_msgs.errors import KafkaMsgsError

__all__ = [
    "GROUP",
    "ORIGINS",
    "OriginSource",
    "SourceUnavailableError",
    "fetch_jars",
    "read_path",
    "read_release",
]

GROUP: Final = "org.apache.kafka"
"""Maven group of Kafka's artifacts."""

ORIGINS: Final[Mapping[str, str]] = {
    "clients": "kafka-clients",
    "group-coordinator": "kafka-group-coordinator",
    "transaction-coordinator": "kafka-transaction-coordinator",
    "share-coordinator": "kafka-share-coordinator",
    "raft": "kafka-raft",
    "metadata": "kafka-metadata",
    "storage": "kafka-storage",
    "streams": "kafka-streams",
}
"""Each origin (the name of Kafka's source module) and the artifact that carries its definitions."""

_UNKNOWN_RELEASE: Final = "unknown"
_FOLDERS = ("message", "metadata")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.-]*")
_ORIGIN_NAME = re.compile(r"[a-z0-9-]+")
_JAR_NAME = re.compile(r"(?P<artifact>[a-z][a-z-]*[a-z])(?:_[0-9.]+)?-(?P<release>[0-9].*?)\.jar")
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafka-msgs</groupId>
  <artifactId>definitions</artifactId>
  <version>0</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{release}</version>{exclusions}
    </dependency>"""
_EXCLUDE_ALL = """
      <exclusions>
        <exclusion>
          <groupId>*</groupId>
          <artifactId>*</artifactId>
        </exclusion>
      </exclusions>"""


class SourceUnavailableError(KafkaMsgsError):
    """Definitions that cannot be had: a missing artifact, tool, file or folder. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return self.reason


@frozen
class OriginSource:
    """The definitions of one origin, as found.

    Attributes: ``origin``; ``release`` (Kafka's version, or ``"unknown"``); ``artifact`` (what they were read from,
    without its folder); ``sha256`` (of the jar, in hex, or None when there was none); ``texts`` (file name to text).
    """

    origin: str
    release: str
    artifact: str
    sha256: str | None
    texts: Mapping[str, str]


def read_release(release: str) -> list[OriginSource]:
    """Fetch the jars of a Kafka release through Maven and return the definitions of every origin.

    Raises ``SourceUnavailableError`` naming each artifact that the release lacks.
    """
    with TemporaryDirectory() as folder:
        fetch_jars(release, tuple(ORIGINS.values()), Path(folder))
        return [
            _read_jar(Path(folder, f"{artifact}-{release}.jar"), origin, f"{GROUP}:{artifact}:{release}")
            for origin, artifact in ORIGINS.items()
        ]


def read_path(path: Path, origin: str | None = None) -> list[OriginSource]:
    """Return the definitions at ``path``: a jar, a checkout of Kafka's source, or a directory of definitions.

    ``origin`` is needed for a directory, and for a jar whose name is not that of a known artifact; a checkout tells
    the origin of each definition by its module. Raises ``SourceUnavailableError``.
    """
    if origin is not None and not _ORIGIN_NAME.fullmatch(origin):
        raise SourceUnavailableError(reason=f"{origin!r} cannot name an origin: lower-case letters, digits and dashes")
    if path.is_file():
        return [_read_jar(path, origin or _origin_of_jar(path), path.name)]
    if not path.is_dir():
        raise SourceUnavailableError(reason=f"{path} is neither a jar nor a directory")
    found = _read_checkout(path) if origin is None else [_read_directory(path, origin)]
    if not any(source.texts for source in found):
        hint = "" if origin else "; for a plain directory of definitions, name their origin"
        raise SourceUnavailableError(reason=f"no message definitions in {path}{hint}")
    return found


def fetch_jars(release: str, artifacts: tuple[str, ...], into: Path, *, dependencies: bool = False) -> None:
    """Copy the jars of ``artifacts`` at ``release`` into a folder, with what they depend on if asked.

    Raises ``SourceUnavailableError`` when Maven is not there, or naming what it cannot find.
    """
    if not _RELEASE.fullmatch(release):
        raise SourceUnavailableError(reason=f"{release!r} is not a release: expected a version such as 4.3.1")
    exclusions = "" if dependencies else _EXCLUDE_ALL
    wanted = (
        _DEPENDENCY.format(group=GROUP, artifact=artifact, release=release, exclusions=exclusions)
        for artifact in artifacts
    )
    with TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(_POM.format(dependencies="".join(wanted)), encoding="utf-8")
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={into}"]
        _run_maven(command, artifacts, release)


def _run_maven(command: list[str], artifacts: tuple[str, ...], release: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SourceUnavailableError(reason="importing a release needs Maven (mvn), which is not installed") from None
    if done.returncode == 0:
        return
    missing = [name for name in artifacts if f"{GROUP}:{name}:jar:{release}" in done.stdout + done.stderr]
    if missing:
        names = ", ".join(f"{GROUP}:{name}:{release}" for name in missing)
        raise SourceUnavailableError(reason=f"Maven cannot find {names}")
    raise SourceUnavailableError(reason=f"Maven failed:\n{(done.stdout + done.stderr).strip()}")


def _origin_of_jar(path: Path) -> str:
    match = _JAR_NAME.fullmatch(path.name)
    origins = [origin for origin, artifact in ORIGINS.items() if match and match["artifact"] == artifact]
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
    if not texts:
        raise SourceUnavailableError(reason=f"{artifact} carries no message definitions")
    match = _JAR_NAME.fullmatch(path.name)
    release = match["release"] if match else _UNKNOWN_RELEASE
    return OriginSource(origin, release, artifact, hashlib.sha256(path.read_bytes()).hexdigest(), texts)


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
