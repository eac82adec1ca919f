"""The API versions that brokers and clients of each Kafka release support.

Since 2.2 the definitions contain the versions (``kafka_msgs.message_history``). ``EARLIER_VERSIONS`` adds the
releases before 2.2, and the times when APIs had other names. Unstable versions, which a release defines and does not
enable, count as supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from attrs import frozen

from kafka_msgs.catalog import CLIENTS
from kafka_msgs.errors import OptionError
from kafka_msgs.messages import API_KEYS, RELEASE, _history
from kafka_msgs.upgrade.earlier_versions import EARLIER_VERSIONS, RETIRED_APIS
from kafka_msgs.versions import VersionRange

__all__ = ["KafkaRelease", "api_name", "api_versions", "known_releases", "parse_release", "version_span"]

_RELEASE: Final = re.compile(r"\d{1,3}(\.\d{1,3}){1,3}", re.ASCII)


@frozen(order=True)
class KafkaRelease:
    """A release of Kafka, such as 4.4 or 0.10.2; compares by age."""

    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


_RETIREMENT: Final = KafkaRelease((4, 0))
"""The release without the retired APIs."""


def parse_release(text: str) -> KafkaRelease:
    """Return the release of a text such as ``4.4`` or ``3.9.1``.

    Raises ``OptionError`` for other texts and for releases outside of ``known_releases``.
    """
    first, last = known_releases()
    if not _RELEASE.fullmatch(text):
        raise OptionError(source="parse_release", option="release", value=text, reason="expected a release such as 4.4")
    release = KafkaRelease(tuple(map(int, text.split("."))))
    if not first <= release or release.numbers[:2] > last.numbers[:2]:
        reason = f"the known releases are {first} to {last}"
        raise OptionError(source="parse_release", option="release", value=text, reason=reason)
    return release


def known_releases() -> tuple[KafkaRelease, KafkaRelease]:
    """Return the first and the last known release."""
    return _release(_EARLIEST), _release(RELEASE or _EARLIEST)


def api_versions(release: KafkaRelease) -> Mapping[int, VersionRange]:
    """Return the request versions of each API at a release, by API key."""
    return {key: versions for key in _spans() if (versions := _versions_at(key, release)) is not None}


def version_span(api_key: int, version: int) -> tuple[KafkaRelease, KafkaRelease | None] | None:
    """Return the first release with a request version and the release that removed it; None for unknown versions."""
    return _spans().get(api_key, {}).get(version)


def api_name(api_key: int) -> str:
    """Return the name of an API, or its key as text."""
    name = API_KEYS.get((CLIENTS, "request", api_key))
    return RETIRED_APIS.get(api_key, str(api_key)) if name is None else name.removesuffix("Request")


def _versions_at(key: int, release: KafkaRelease) -> VersionRange | None:
    found = [
        version
        for version, (since, removed) in _spans()[key].items()
        if since <= release and (removed is None or release < removed)
    ]
    return VersionRange(min(found), max(found)) if found else None


_Span = tuple[KafkaRelease, KafkaRelease | None]


@cache
def _spans() -> dict[int, dict[int, _Span]]:
    """Return the span of each request version, by API key."""
    spans: dict[int, dict[int, _Span]] = {}
    for (origin, kind, key), name in API_KEYS.items():
        if (origin, kind) == (CLIENTS, "request"):
            spans[key] = dict(_recorded_spans(key, _history.VERSIONS.get(name, {})))
    for key in RETIRED_APIS:
        spans[key] = {version: (_release(since), _RETIREMENT) for version, since in _earlier_versions(key)}
    return spans


def _recorded_spans(key: int, recorded: Mapping[str, str]) -> Iterator[tuple[int, _Span]]:
    """Yield the spans in the history, with the first releases from ``EARLIER_VERSIONS``."""
    earlier = {version: _release(since) for version, since in _earlier_versions(key)}
    for versions, span in recorded.items():
        since, _, removed = span.partition("-")
        for version in VersionRange.parse(versions):
            first = min(earlier.get(version, _release(since)), _release(since))
            yield version, (first, _release(removed) if removed else None)


def _earlier_versions(key: int) -> Iterator[tuple[int, str]]:
    for text in EARLIER_VERSIONS.get(key, "").split():
        versions, _, since = text.partition("@")
        for version in VersionRange.parse(versions):
            yield version, since


def _release(text: str) -> KafkaRelease:
    """Return a recorded release. The first patch release stands for its minor release."""
    short = text.removesuffix(".0") if text.count(".") > 1 else text
    return KafkaRelease(tuple(map(int, short.split("."))))


_EARLIEST: Final = "0.9"
