"""The files of a generated package: a module for each message, the lazy package itself, and its index.

Defines file names and contents, as text in memory; `kafka_msgs_generator.output` writes them to disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafka_msgs_generator.compiler import PARTNERS, Compiled
from kafka_msgs_generator.emit import MARK, message_module
from kafka_msgs_generator.history import History, later_fields, version_spans
from kafka_msgs_generator.naming import module_name, snake_case
from kafka_msgs_generator.source_formatting import dictionary, docstring, quoted, sequence
from kafka_msgs_generator.spec import KEYED_KINDS
from kafka_msgs_generator.templating import render

__all__ = ["INDEX", "api_keys_module", "drafts_package", "error_codes_module", "message_package"]

INDEX: Final = "_index.py"
"""The file that lists, among others, the files that the generator owns."""


def message_package(
    compiled: Iterable[Compiled],
    doc: str,
    release: str | None = None,
    draft: str | None = None,
    history: History | None = None,
) -> dict[str, str]:
    """Return the files of a package, path to text.

    ``doc`` is the package's docstring. ``release`` is the Kafka release of the definitions. ``draft`` is the title of
    their draft, if any; draft messages cannot be looked up by key. ``history`` adds a module with the releases of the
    messages.
    """
    living = sorted((item for item in compiled if not item.message.retired), key=lambda item: item.message.name)
    partners = _partners(living)
    files = {
        f"{module_name(item.message.name)}.py": message_module(
            item.message, item.source, draft=draft, partner=partners.get(item.message.name)
        )
        for item in living
    }
    modules = {item.message.name: module_name(item.message.name) for item in living}
    files["__init__.py"] = render(
        "package.py.j2",
        mark=MARK,
        doc=docstring([doc], 0),
        modules=modules,
        exported=_all(sorted(modules)),
    )
    if history is not None:
        files["_history.py"] = _history_module(history, modules)
    files[INDEX] = _index(living, modules, release, draft, sorted((*files, INDEX)))
    return files


def _history_module(history: History, names: Iterable[str]) -> str:
    recorded = [name for name in names if name in history.versions]
    return render(
        "history.py.j2",
        mark=MARK,
        versions=[(quoted(name), repr(version_spans(history, name))) for name in recorded],
        fields=[(quoted(name), repr(later)) for name in recorded if (later := _present(later_fields(history, name)))],
    )


def _present(fields: Mapping[str, str]) -> dict[str, str]:
    return {path: since for path, since in fields.items() if "-" not in since}


def _partners(living: Iterable[Compiled]) -> dict[str, str]:
    """Map each request to its response and each coordinator key to its value, if the package contains that partner."""
    keyed = {(item.origin, item.message.kind, item.message.api_key): item.message.name for item in living}
    wanted = {name: (origin, PARTNERS[kind], key) for (origin, kind, key), name in keyed.items() if kind in PARTNERS}
    return {name: keyed[place] for name, place in wanted.items() if place in keyed}


def _all(names: Sequence[str]) -> str:
    return sequence([quoted(name) for name in names], "[]", 0, "__all__ = ")


def _index(
    living: Sequence[Compiled],
    modules: Mapping[str, str],
    release: str | None,
    draft: str | None,
    files: Sequence[str],
) -> str:
    keyed = [] if draft is not None else [item for item in living if item.message.kind in KEYED_KINDS]
    keys = {(item.origin, item.message.kind, item.message.api_key or 0): item.message.name for item in keyed}
    return render(
        "index.py.j2",
        mark=MARK,
        release="None" if release is None else quoted(release),
        modules=_table("MODULES: Final[dict[str, str]] = ", modules),
        keys=_rows("API_KEYS: Final[dict[tuple[str, str, int], str]] = ", _key_rows(keys)),
        origins=_table("ORIGINS: Final[dict[str, str]] = ", {item.message.name: item.origin for item in living}),
        files=_files(files),
    )


def _key_rows(keys: Mapping[tuple[str, str, int], str]) -> list[str]:
    return [
        f"({quoted(origin)}, {quoted(kind)}, {key}): {quoted(name)}"
        for (origin, kind, key), name in sorted(keys.items())
    ]


def _table(prefix: str, entries: Mapping[str, str]) -> str:
    return dictionary({key: quoted(value) for key, value in entries.items()}, 0, prefix)


def _rows(prefix: str, rows: Sequence[str]) -> str:
    return sequence(rows, "{}", 0, prefix)


def _files(files: Iterable[str]) -> str:
    return sequence([quoted(name) for name in files], "()", 0, "FILES: Final[tuple[str, ...]] = ")


def drafts_package(drafts: Mapping[str, tuple[str, Sequence[Compiled]]]) -> dict[str, str]:
    """Return the files of a package of drafts.

    ``drafts`` maps the name of each draft to its title and its compiled definitions.
    """
    files: dict[str, str] = {}
    for name, (title, compiled) in drafts.items():
        package = message_package(compiled, f"Messages as a draft wrote them: {title}.", draft=title)
        files |= {f"{name}/{path}": text for path, text in package.items()}
    titles = {name: title for name, (title, _) in drafts.items()}
    files["__init__.py"] = render("drafts.py.j2", mark=MARK)
    files[INDEX] = render(
        "drafts_index.py.j2",
        mark=MARK,
        drafts=_table("DRAFTS: Final[dict[str, str]] = ", titles),
        files=_files(sorted((*files, INDEX))),
    )
    return files


def api_keys_module(compiled: Iterable[Compiled]) -> str:
    """Return the module with the API keys of the requests in ``compiled``."""
    requests = [item.message for item in compiled if item.message.kind == "request" and not item.message.retired]
    keys = sorted((each.api_key or 0, snake_case(each.name.removesuffix("Request")).upper()) for each in requests)
    return render("api_keys.py.j2", mark=MARK, keys=[(name, key) for key, name in keys])


def error_codes_module(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return the module of Kafka's error codes; each of ``errors`` has ``name``, ``code`` and ``retriable``."""
    ordered = sorted(errors, key=lambda error: error["code"])
    retriable = [f"ErrorCode.{error['name']}" for error in ordered if error["retriable"]]
    return render(
        "error_codes.py.j2",
        mark=MARK,
        errors=ordered,
        retriable=sequence(retriable, "{}", 0, "_RETRIABLE: Final = "),
    )
