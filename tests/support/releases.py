"""The Kafka release that each part of the tests runs: the release of its definitions.

``SOURCE.toml`` lists the releases. Some releases lack artifacts on their publication day; the origin ``streams`` then
stays at an older release, and with it Kafka's tools, which are published together.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["maven_releases", "release_of"]

_SOURCE: Final = Path(__file__).resolve().parents[2] / "message_defs" / "SOURCE.toml"


@cache
def release_of(origin: str) -> str:
    """Return the Kafka release of an origin's definitions, such as ``"4.4.0"`` for ``"clients"``."""
    release: str = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))["origins"][origin]["release"]
    return release


def maven_releases() -> list[str]:
    """Return the options that pass the releases to this repository's Maven projects."""
    return [f"-Dkafka.version={release_of('clients')}", f"-Dkafka.streams.version={release_of('streams')}"]
