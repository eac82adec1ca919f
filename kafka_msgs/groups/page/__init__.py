"""Streams groups as the page of KIP-1071 describes them, beyond the release: the profile ``KIP_1071_PAGE``.

The rules of the document are fields of ``StreamsRules``. This package has the behaviour that no release has: online
migration between the classic and the streams protocol, and patterns of source topics. A coordinator loads it only if
its profile asks for it.
"""

from __future__ import annotations

from typing import Final

from attrs import fields

from kafka_msgs.groups.profiles import Profile, StreamsRules

__all__ = ["KIP_1071_PAGE"]


KIP_1071_PAGE: Final = Profile(
    name="page",
    streams=StreamsRules(**{each.name: True for each in fields(StreamsRules)}),
    streams_extension="kafka_msgs.groups.page.extension",
)
"""The behaviour of the document."""
