"""Names of Avro types, for schemas in which several types differ only in their namespaces.

``fastavro`` resolves a type of the writer to the first one of the reader that has the same name without its namespace.
It would take the wrong branch of a union of ``first.Sale`` and ``second.Sale``. Such types receive names without dots,
and types of the writer receive the name of the type that they resolve to by Avro's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["distinct_names", "rename_types"]


class _Named(Protocol):
    """The types of a reader's schema, and the names that this module chose for them."""

    @property
    def named(self) -> Mapping[str, Any]: ...
    @property
    def names(self) -> dict[str, str]: ...


def distinct_names(named: Mapping[str, Any], reader: _Named | None) -> dict[str, str]:
    """Return distinct names for the types in ``named``, or no names if the simple names are distinct."""
    if reader is None:
        is_distinct = len(set(map(_simple, named))) == len(named)
        return {} if is_distinct else {name: _without_dots(name) for name in named}
    if not reader.names:
        return {}
    targets = {_simple(name): target for name, target in reversed(reader.names.items())}
    targets |= {alias: type_["name"] for type_ in reader.named.values() for alias in type_.get("aliases", ())}
    targets |= reader.names
    found: dict[str, str] = {}
    for name in named:
        target = targets.get(name) or targets.get(_simple(name))
        found[name] = _without_dots(name) if target is None or target in found.values() else target
    return found


def rename_types(schema: Any, names: Mapping[str, str]) -> Any:
    """Return a parsed schema with other names of its types."""
    if isinstance(schema, list):
        return [rename_types(each, names) for each in schema]
    if isinstance(schema, str):
        return names.get(schema, schema)
    found = {key: value for key, value in schema.items() if not key.startswith("__")}
    for part in {"name", "items", "values", "type"} & found.keys():
        found[part] = rename_types(found[part], names)
    if "fields" in found:
        found["fields"] = [each | {"type": rename_types(each["type"], names)} for each in found["fields"]]
    return found


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _without_dots(name: str) -> str:
    return name.replace(".", "/")
