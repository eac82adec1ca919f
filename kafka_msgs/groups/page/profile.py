"""The profile of the document, and its extension of streams groups."""

from __future__ import annotations

from typing import Final

from attrs import fields

from kafka_msgs.groups.profiles import Profile, StreamsRules

__all__ = ["KIP_1071_PAGE"]


def _load_extension() -> object:
    from kafka_msgs.groups.page.extension import PageExtension

    return PageExtension()


KIP_1071_PAGE: Final = Profile(
    name="page",
    streams=StreamsRules(**{each.name: True for each in fields(StreamsRules)}),
    load_streams_extension=_load_extension,
)
"""The behaviour of the document."""
