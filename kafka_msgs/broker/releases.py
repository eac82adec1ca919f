"""The API versions of each Kafka release, from ``releases.tsv``, which is extracted from Kafka's own classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from kafka_msgs.errors import OptionError
from kafka_msgs.versions import NONE, VersionRange

__all__ = ["releases", "versions_of_release"]


def versions_of_release(release: str) -> Mapping[int, VersionRange]:
    """Return the versions by API key; an API that the release does not support is ``NONE``.

    ``release`` is, for example, ``"3.7"``; a third number is ignored. Raises ``OptionError`` for an unknown release.
    """
    name = ".".join(release.split(".")[:2])
    table = _table()
    if name not in table:
        reason = f"known are {', '.join(table)}"
        raise OptionError(source="BrokerConfig", option="release", value=release, reason=reason)
    return table[name]


def releases() -> tuple[str, ...]:
    """Return the supported releases, oldest first."""
    return tuple(_table())


@cache
def _table() -> dict[str, Mapping[int, VersionRange]]:
    text = (files("kafka_msgs.broker") / "releases.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {release: defaultdict(lambda: NONE, map(_entry, apis.split())) for release, apis in rows}


def _entry(text: str) -> tuple[int, VersionRange]:
    api_key, _, versions = text.partition(":")
    return int(api_key), VersionRange.parse(versions)
