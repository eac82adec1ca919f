"""Imports definitions: reads them from their source, writes them in canonical layout, and records hashes.

Defines ``<into>/kafka/<origin>/`` and ``<into>/SOURCE.toml``, and there only the files that a ``SOURCE.toml`` lists:
files added by hand are never removed. ``release`` finds the definitions, ``canonical`` owns their layout, and
``error_table`` reads the error codes.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from attrs import Factory, frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.atomic_write import write_atomically
from kafka_msgs_generator.canonical import Definition, canonical_text, normal_form
from kafka_msgs_generator.error_table import KafkaError, error_table_text
from kafka_msgs_generator.json_tree import parse_first
from kafka_msgs_generator.older_releases import complete
from kafka_msgs_generator.release import MAIN_ORIGIN, ORIGINS, OriginSource, read_path, read_release

__all__ = ["ImportReport", "import_path", "import_release"]

_MIXED_RELEASES: Final = "mixed"
_SURPLUS: Final = "text after the definition, ignored as by Kafka"


@frozen
class ImportReport:
    """The result of an import.

    Attributes: ``release`` (of everything now in ``SOURCE.toml``); ``counts`` (definitions found, by origin); ``kept``
    (the origins that the release lacks, each with the release whose definitions stay, or None without definitions);
    ``added``, ``changed`` and ``removed`` (as ``origin/Name``, in order); ``errors`` (the number of error codes, or
    None if the source has no error table and ``errors.json`` stays unchanged); ``readings`` (constructs that older
    releases of Kafka accept and today's rules refuse, with the files that contain them).
    """

    release: str
    counts: Mapping[str, int]
    kept: Mapping[str, str | None]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    errors: int | None
    readings: Mapping[str, Sequence[str]] = Factory(dict)


@frozen
class _Plan:
    """The pending writes: ``files`` (path below the target to text), the parts of ``SOURCE.toml``, error codes."""

    files: Mapping[str, str]
    origins: Mapping[str, Mapping[str, Any]]
    errors: list[KafkaError] | None
    readings: Mapping[str, Sequence[str]]


def import_release(release: str, into: Path) -> ImportReport:
    """Import the definitions and the error table of a Kafka release, fetched through Maven.

    Existing definitions in ``into`` stay if the release lacks their origin, and ``SOURCE.toml`` keeps their source.
    Raises ``SourceUnavailableError`` if a jar cannot be fetched, and ``SchemaError`` for an unreadable definition. In
    these cases no file is written.
    """
    with TemporaryDirectory() as folder:
        plan = _plan(read_release(release, Path(folder)))
    return _apply(plan, into, lacking=[origin for origin in ORIGINS if origin not in plan.origins])


def import_path(path: Path, into: Path, origin: str | None = None) -> ImportReport:
    """Import the definitions at ``path``: a jar, a checkout, or a directory (then with its ``origin``).

    Only the origins found there are changed, and the error table if the source is a jar of Kafka's clients. Raises the
    errors of `import_release`.
    """
    return _apply(_plan(read_path(path, origin)), into)


def _plan(sources: list[OriginSource]) -> _Plan:
    files: dict[str, str] = {}
    origins: dict[str, dict[str, Any]] = {}
    readings: defaultdict[str, list[str]] = defaultdict(list)
    for source in sources:
        definitions = _definitions(source, readings)
        files |= {f"kafka/{source.origin}/{name}.json": canonical_text(each) for name, (_, each) in definitions.items()}
        hashes = {
            name: hashlib.sha256(source.texts[file].encode()).hexdigest() for name, (file, _) in definitions.items()
        }
        described = {"release": source.release, "artifact": source.artifact, "sha256": source.sha256}
        origins[source.origin] = {**described, "files": hashes}
    errors = next((source.errors for source in sources if source.errors), None)
    return _Plan(files, origins, errors, readings)


def _definitions(source: OriginSource, readings: Mapping[str, list[str]]) -> dict[str, tuple[str, Definition]]:
    """Return the definitions of an origin by message name, which is our file name, each with its source file."""
    found: dict[str, tuple[str, Definition]] = {}
    for file, text in source.texts.items():
        place = f"{source.origin}/{file}"
        root, surplus = parse_first(text, place)
        if surplus:
            readings[_SURPLUS].append(f"{place}:{surplus[0]}:{surplus[1]}")
        definition = normal_form(root, text, place)
        for reading in complete(definition):
            readings[reading].append(place)
        name = definition.get("name", "")
        if not name.isidentifier():
            raise SchemaError(f"{name!r} cannot name a message", source=place, rule="V25")
        if name in found:
            raise SchemaError(f"{name} is defined in another file, too", source=place, rule="N1")
        found[name] = file, definition
    return found


def _apply(plan: _Plan, into: Path, lacking: Sequence[str] = ()) -> ImportReport:
    before = _read_source(into)
    after = {**before, **plan.origins}
    owned = {path for origin in plan.origins for path in _paths(before, origin)}
    added = [path for path in plan.files if not (into / path).exists()]
    written = [path for path, text in plan.files.items() if _write(into / path, text)]
    removed = sorted(owned - plan.files.keys())
    for path in removed:
        (into / path).unlink(missing_ok=True)
    release = _common_release(after)
    _write(into / "SOURCE.toml", _source_text(release, after))
    if plan.errors is not None:
        _write(into / "errors.json", error_table_text(plan.errors))
    return ImportReport(
        release=release,
        counts={origin: len(facts["files"]) for origin, facts in plan.origins.items()},
        kept={origin: before[origin]["release"] if origin in before else None for origin in lacking},
        added=_short_names(added),
        changed=_short_names(sorted(set(written) - set(added))),
        removed=_short_names(removed),
        errors=None if plan.errors is None else len(plan.errors),
        readings=plan.readings,
    )


def _paths(origins: Mapping[str, Any], origin: str) -> Iterator[str]:
    return (f"kafka/{origin}/{name}.json" for name in origins.get(origin, {}).get("files", {}))


def _short_names(paths: list[str]) -> tuple[str, ...]:
    return tuple(path.removeprefix("kafka/").removesuffix(".json") for path in paths)


def _common_release(origins: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the release of the import: the clients' release, or else the release that all origins share."""
    if MAIN_ORIGIN in origins:
        return str(origins[MAIN_ORIGIN]["release"])
    releases = {facts["release"] for facts in origins.values()}
    return releases.pop() if len(releases) == 1 else _MIXED_RELEASES


def _read_source(into: Path) -> dict[str, Any]:
    path = into / "SOURCE.toml"
    origins = tomllib.loads(path.read_text(encoding="utf-8")).get("origins", {}) if path.is_file() else {}
    return dict(origins)


def _source_text(release: str, origins: Mapping[str, Mapping[str, Any]]) -> str:
    """Write ``SOURCE.toml``; a JSON string is also a TOML basic string."""
    lines = [
        "# Where the definitions below kafka/ come from. Written by the import command; hashes are SHA-256, those of",
        "# files over the text as the source has it.",
        f"release = {json.dumps(release)}",
    ]
    for origin, facts in sorted(origins.items()):
        lines += ["", f"[origins.{origin}]"]
        lines += [f"{key} = {json.dumps(facts[key])}" for key in ("release", "artifact", "sha256") if facts.get(key)]
        lines += ["", f"[origins.{origin}.files]"]
        lines += [f"{name} = {json.dumps(digest)}" for name, digest in sorted(facts["files"].items())]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> bool:
    """Atomically write ``text`` to ``path`` if it differs, and return whether it was written."""
    if path.is_file() and path.read_bytes() == text.encode("utf-8"):
        return False
    write_atomically(path, text)
    return True
