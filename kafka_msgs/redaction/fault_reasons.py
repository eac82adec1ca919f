"""Redaction of the free text of faults: only the words of our own messages and numbers remain."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

__all__ = ["redact_reason"]

_WORDS: Final = frozenset(
    re.findall(
        r"[a-z_]+",
        """
    a about above access accept account across addon address addresses after all allowed already and another answer
    answered any api are as at attempt bad be before being block broker brokers but by bytes can cannot captured cast
    change check client clients close closed code command connect connected connection connections correlation
    could cut damaged datagram described descriptor descriptors device differ direction directory does each earlier
    element empty encrypted end ended ends error exceeded exchange exchanges exist expected failed few field file
    files first for format forwarded fragment frame frames from from_client gap had has have header held here hook host
    id identified if in integer interface interfaces interrupted invalid ip is it its json kafka key kind known least
    length limit line link list listener long looked lost magic many microseconds minimum missing modified more most
    name named neither network no nodename none nor not number numbers object of off on one open operation options
    or order other out packet packets passed pcap pcapng peer permitted pipe port ports possible protocol provided
    reach reached read reason reasons recognised refused remaining request requests reset response responses route
    same section sequence servname service set size sizes small socket source states supported support system taken
    tcp than that the there they this time timed timeout tls to token too type unanswered unchanged unexpected unit
    unknown unread unreachable valid value version was were what which whole whose with within without wrong
    yet resolution temporary failure left text tries up use used user
        """,
    )
)
"""The words of our messages and of the system's messages for failed connections."""

_ADDRESS: Final = re.compile(r"[\w.%-]*(?::+[0-9A-Fa-f.%]*){2,}")
"""An IPv6 address, possibly with a port. Its parts may look like numbers."""
_TOKEN: Final = re.compile(r"[^\s;:,()\[\]'\"<>|]+")


def redact_reason(reason: str, mask: Callable[[str], str], hosts: Collection[str]) -> str:
    """Return the reason of a fault with all words masked that are not our own, and with all ``hosts`` masked."""

    def hide(match: re.Match[str]) -> str:
        word = match[0]
        kept = word.isdecimal() or (word.lower().strip(".") in _WORDS and word not in hosts)
        return word if kept or not any(map(str.isalnum, word)) else mask(word)

    return _TOKEN.sub(hide, _ADDRESS.sub(lambda match: mask(match[0]), reason))
