"""Pairs of revisions of a definition, made by hand, with their changes and the verdict of Kafka's own checker.

A field is written as ``NAME TYPE VERSIONS`` and facts: ``null=1+``, ``tag=0@1+``, ``default=5``, ``flexible=none``,
``ignorable``, ``key``. A change is written as ``RULE PATH VERSIONS``, with ``-`` for an empty part, and ``!`` at the
end if it is incompatible.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

__all__ = ["PAIRS", "Pair", "definition", "field"]

_KEYS: Final = {"null": "nullableVersions", "default": "default", "flexible": "flexibleVersions"}
_FLAGS: Final = {"ignorable": "ignorable", "key": "mapKey"}


def field(text: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a field; ``fields`` are the fields of its struct."""
    name, kind, versions, *facts = text.split()
    made: dict[str, Any] = {"name": name, "type": kind, "versions": versions}
    for fact in facts:
        key, _, value = fact.partition("=")
        if key == "tag":
            tag, _, tagged = value.partition("@")
            made |= {"tag": int(tag), "taggedVersions": tagged}
        else:
            made |= {_FLAGS[key]: True} if key in _FLAGS else {_KEYS[key]: value}
    return {**made, "fields": [*fields]} if fields else made


def definition(*fields: str | dict[str, Any], valid: str = "0-1", flexible: str = "1+", **facts: Any) -> dict[str, Any]:
    """Return a definition of type ``data``, which ``facts`` override."""
    made = [field(each) if isinstance(each, str) else each for each in fields]
    common = [
        {"name": name, "versions": versions, "fields": [*map(field, inner)]}
        for name, versions, *inner in facts.pop("common", ())
    ]
    return {
        "name": "Sample",
        "type": "data",
        "validVersions": valid,
        "flexibleVersions": flexible,
        "fields": made,
        **({"commonStructs": common} if common else {}),
        **facts,
    }


@frozen
class Pair:
    """Two revisions, the expected changes, and the expected verdict of Kafka's checker: "ok" or part of its reason.

    ``kafka`` is None if the checker agrees with this project.
    """

    name: str
    old: dict[str, Any]
    new: dict[str, Any]
    changes: tuple[str, ...] = ()
    kafka: str | None = None

    @property
    def compatible(self) -> bool:
        """Whether no change is incompatible."""
        return not any(change.endswith("!") for change in self.changes)


A, B = "A int32 0+", "B string 0+"
AB = definition(A, B)
REQUEST: Final[dict[str, Any]] = {"name": "SampleRequest", "type": "request", "apiKey": 1}


def items(*fields: str, facts: str = "0+", kind: str = "[]Item") -> dict[str, Any]:
    """Return a field with structs."""
    return field(f"Items {kind} {facts}", *map(field, fields))


PAIRS: Final = (
    # Whole messages
    Pair("nothing changes", AB, AB),
    Pair("a new version", AB, definition(A, B, valid="0-2"), ("E7 - -",)),
    Pair("an old version is removed", AB, definition(A, B, valid="1"), ("E7 - -",)),
    Pair("the highest version is removed", AB, definition(A, B, valid="0"), ("E5 - - !",)),
    Pair("a removed version returns", definition(A, valid="1-2"), definition(A, valid="0-2"), ("E6 - - !",)),
    Pair("versions move up", definition(A, valid="0-1"), definition(A, valid="1-2"), ("E7 - -",)),
    Pair("no shared version", definition(A, valid="0-1"), definition("A int64 0+", valid="2-3"),
         ("E7 - -", "E16 a -"), "Field type"),
    Pair("another api key", definition(A, **REQUEST), definition(A, **REQUEST | {"apiKey": 2}), ("E1 - - !",)),
    Pair("an api key is added", definition(A), definition(A, apiKey=2), ("E1 - - !",)),
    Pair("another type", definition(A), definition(A, type="header"), ("E2 - - !",)),
    Pair("another name", definition(A), definition(A, name="Other"), ("E3 - - !",)),
    Pair("flexible from an earlier version", definition(A, flexible="1+"), definition(A, flexible="0+"),
         ("E4 - 0 !",), "ok"),
    Pair("flexible from a later version", definition(A, flexible="0+"), definition(A, flexible="1+"), ("E4 - 0 !",)),
    Pair("no longer flexible", AB, definition(A, B, flexible="none"), ("E4 - 1 !",)),
    Pair("flexible from a new version", definition(A, flexible="none"), definition(A, valid="0-2", flexible="2+"),
         ("E4 - -", "E7 - -")),
    Pair("flexible below all shared versions", definition(A, valid="1-2", flexible="1+"),
         definition(A, valid="1-2", flexible="0+"), ("E4 - -",)),
    Pair("another listener", definition(A, **REQUEST), definition(A, **REQUEST, listeners=["broker"]), ("E22 - -",)),
    Pair("a version is deprecated", AB, definition(A, B, deprecatedVersions="0"), ("E22 - -",)),
    Pair("the latest version becomes stable", definition(A, **REQUEST, latestVersionUnstable=True),
         definition(A, **REQUEST), ("E22 - -", "E25 - 1")),
    Pair("an unstable version changes", definition(A, **REQUEST, latestVersionUnstable=True),
         definition(A, "B int8 1+", **REQUEST), ("E22 - -", "E25 - 1", "E11 b -"), "should be present in message1"),
    Pair("an unstable version disappears", definition(A, **REQUEST, latestVersionUnstable=True),
         definition(A, valid="0", **REQUEST), ("E22 - -", "E25 - -"), "must not be higher"),
    Pair("a stable version changes with an unstable one", definition(A, **REQUEST, latestVersionUnstable=True),
         definition("A int64 0+", **REQUEST), ("E22 - -", "E25 - 1", "E16 a 0 !")),
    # Fields that come and go
    Pair("a new field in a new version, last", AB, definition(A, B, "C int8 2+", valid="0-2"), ("E7 - -", "E11 c -")),
    Pair("a new field in a new version, first", AB, definition("C int8 2+", A, B, valid="0-2"),
         ("E7 - -", "E11 c -")),
    Pair("a new field in a new version, in between", AB, definition(A, "C int8 2+", B, valid="0-2"),
         ("E7 - -", "E11 c -")),
    Pair("a new field in an old version, last", AB, definition(A, B, "C int8 0+"), ("E11 c 0-1 !",)),
    Pair("a new field in an old version, first", AB, definition("C int8 1+", A, B), ("E11 c 1 !",)),
    Pair("a new field in old and new versions", AB, definition(A, B, "C int8 1+", valid="0-2"),
         ("E7 - -", "E11 c 1 !")),
    Pair("a new tagged field in an old version", AB, definition(A, B, "C int8 1+ tag=0@1+"), ("E12 c 1",),
         "should be present in message1"),
    Pair("a new tagged field in a new version", AB, definition(A, B, "C int8 2+ tag=0@2+", valid="0-2"),
         ("E7 - -", "E11 c -")),
    Pair("a new field that is only tagged later", definition(A, valid="0-2"),
         definition(A, "C int8 1+ tag=0@2+", valid="0-2"), ("E11 c 1 !",)),
    Pair("the last field is removed", AB, definition(A), ("E13 b 0-1 !",), "ok"),
    Pair("the first field is removed", AB, definition(B), ("E13 a 0-1 !",)),
    Pair("a field in between is removed", definition(A, "C int8 0+", B), AB, ("E13 c 0-1 !",)),
    Pair("a field of removed versions is removed", definition(A, "C int8 0"), definition(A, valid="1"),
         ("E7 - -", "E13 c -")),
    Pair("a tagged field is removed", definition(A, "C int8 1+ tag=0@1+"), definition(A), ("E13 c 1 !",), "ok"),
    Pair("a range ends at the highest old version", AB, definition(A, "B string 0-1", valid="0-2"),
         ("E7 - -", "E14 b -")),
    Pair("a range ends above the old versions", AB, definition(A, "B string 0-2", valid="0-3"),
         ("E7 - -", "E14 b -")),
    Pair("a range ends below the highest old version", AB, definition(A, "B string 0", valid="0-2"),
         ("E7 - -", "E14 b 1 !")),
    Pair("a closed range opens above the old versions", definition(A, "B string 0-1"),
         definition(A, B, valid="0-2"), ("E7 - -", "E14 b -")),
    Pair("a range begins earlier", definition(A, "B string 1+"), AB, ("E15 b 0 !",)),
    Pair("a range begins later", AB, definition(A, "B string 1+"), ("E15 b 0 !",)),
    Pair("a range begins at the lowest remaining version", AB, definition(A, "B string 1+", valid="1"),
         ("E7 - -", "E14 b -")),
    # Facts of a field
    Pair("a field is renamed", AB, definition("Amount int32 0+", B), ("E10 amount -",)),
    Pair("a field is renamed in old versions, and its name used again", AB,
         definition("OldA int32 0-1", "A int64 2+", B, valid="0-2"),
         ("E7 - -", "E10 old_a -", "E14 old_a -", "E11 a -")),
    Pair("a tagged field is renamed", definition(A, "C int8 1+ tag=0@1+"), definition(A, "D int8 1+ tag=0@1+"),
         ("E10 d -",)),
    Pair("the type becomes wider", AB, definition("A int64 0+", B), ("E16 a 0-1 !",)),
    Pair("the type becomes unsigned", definition("A uint16 0+"), definition("A int16 0+"), ("E16 a 0-1 !",)),
    Pair("a string becomes bytes", AB, definition(A, "B bytes 0+"), ("E16 b 0-1 !",)),
    Pair("a scalar becomes an array", AB, definition("A []int32 0+", B), ("E16 a 0-1 !",)),
    Pair("an array of scalars becomes an array of structs", definition("A []int32 0+"),
         definition(field("A []Item 0+", field("Value int32 0+"))), ("E16 a 0-1 !",)),
    Pair("two fields of different types change places", AB, definition(B, A), ("E17 b 0-1 !",)),
    Pair("two fields of one type change places", definition(A, "C int32 0+"), definition("C int32 0+", A),
         ("E17 c 0-1 !",), "ok"),
    Pair("fields of different versions change places", definition("A int32 0", "B string 1"),
         definition("B string 1", "A int32 0"), (), "Field type"),
    Pair("the default changes", AB, definition("A int32 0+ default=-1", B), ("E18 a 0-1 !",)),
    Pair("the default is written in another way", definition("A int32 0+ default=16"),
         definition("A int32 0+ default=0x10"), (), "Default for field2"),
    Pair("the default of the type is stated", AB, definition("A int32 0+ default=0", B), (), "Default for field2"),
    Pair("a field becomes nullable in old versions", AB, definition(A, "B string 0+ null=0+"), ("E19 b 0-1 !",)),
    Pair("a field is no longer nullable", definition("B string 0+ null=0+"), definition("B string 0+"),
         ("E19 b 0-1 !",), "ok"),
    Pair("a field becomes nullable in a new version", AB, definition(A, "B string 0+ null=2+", valid="0-2"),
         ("E7 - -", "E19 b -"), "nullable version"),
    Pair("nullable versions that are closed above", definition("B string 0+ null=0+"),
         definition("B string 0+ null=0-1"), ("E19 b -",)),
    Pair("a field gets a tag in a shared version", definition(A, "C int8 1+"), definition(A, "C int8 1+ tag=0@1+"),
         ("E21 c 1 !",), "ok"),
    Pair("a field loses its tag", definition(A, "C int8 1+ tag=0@1+"), definition(A, "C int8 1+"),
         ("E21 c 1 !",), "ok"),
    Pair("two tags are exchanged", definition("C int8 1+ tag=0@1+", "D int8 1+ tag=1@1+"),
         definition("C int8 1+ tag=1@1+", "D int8 1+ tag=0@1+"), ("E21 c 1 !", "E21 d 1 !"), "ok"),
    Pair("a field is tagged from a new version", definition(A, "C int8 0+"),
         definition(A, "C int8 0+ tag=0@2+", valid="0-2"), ("E7 - -", "E21 c -")),
    Pair("a used tag gets another field", definition(A, "C int8 1+ tag=0@1+"),
         definition(A, "D string 1+ tag=0@1+"), ("E21 d 1 !", "E13 c 1 !")),
    Pair("flexible versions of a field", AB, definition(A, "B string 0+ flexible=none"), ("E20 b 1 !", "E8 b - !")),
    Pair("facts that do not affect bytes", definition(items("Key string 0+", "Size int8 0+")),
         definition(items("Key string 0+ key", "Size int8 0+ ignorable")), ("E22 items.key -", "E22 items.size -")),
    Pair("a field outside of the versions", AB, definition(A, B, "C int8 5+"), ("E11 c -", "E8 c - !")),
    Pair("nullable versions outside of the versions", AB, definition(A, "B string 0+ null=5+"),
         ("E19 b -", "E8 b - !")),
    # Structs
    Pair("a field of a struct changes its type", definition(items("Key string 0+")), definition(items("Key bytes 0+")),
         ("E16 items.key 0-1 !",)),
    Pair("a struct gets a field in a new version", definition(items("Key string 0+")),
         definition(items("Key string 0+", "Size int8 2+"), valid="0-2"), ("E7 - -", "E11 items.size -")),
    Pair("a struct gets a field in an old version", definition(items("Key string 0+")),
         definition(items("Key string 0+", "Size int8 1+")), ("E11 items.size 1 !",)),
    Pair("a struct gets another name", definition(items("Key string 0+")),
         definition(items("Key string 0+", kind="[]Entry")), ("E16 items 0-1 !",)),
    Pair("a struct in new versions", AB, definition(A, B, items("Key string 2+", facts="2+"), valid="0-2"),
         ("E7 - -", "E11 items -")),
    Pair("a change below the versions of its struct", definition(A, items("Key string 0+", facts="1+")),
         definition(A, items("Key string 1+", facts="1+")), ("E14 items.key -",), "Minimum effective valid version"),
    Pair("a struct becomes nullable", definition(items("Key string 0+", kind="Item")),
         definition(items("Key string 0+", kind="Item", facts="0+ null=0+")), ("E19 items 0-1 !",)),
    Pair("an inline struct becomes a common struct", definition(items("Key string 0+")),
         definition("Items []Item 0+", common=[("Item", "0+", "Key string 0+")])),
    Pair("a field of a common struct changes", definition("Items []Item 0+", common=[("Item", "0+", "Key string 0+")]),
         definition("Items []Item 0+", common=[("Item", "0+", "Key int8 0+")]),
         ("E16 Item.key 0-1 !",)),
    Pair("a common struct gets a tagged field", definition("Items []Item 0+", common=[("Item", "0+", "Key string 0+")]),
         definition("Items []Item 0+", common=[("Item", "0+", "Key string 0+", "Size int8 1+ tag=0@1+")]),
         ("E12 Item.size 1",), "should be present in message1"),
    Pair("a common struct in fewer versions", definition("Items []Item 0-1", common=[("Item", "0+", "Key string 0+")]),
         definition("Items []Item 0-1", common=[("Item", "0-1", "Key string 0-1")]), ("E14 Item.key -",)),
)  # fmt: skip
"""The table."""
