"""Encoding and decoding of any generated message class, at any of its versions.

``codec_for`` gives the ``Codec`` of a class and version, made at first use and kept. Importing this package loads
none of the machinery behind it; the first codec does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kafka_msgs.codec.options import DEFAULT_BUDGET, DEFAULT_OPTIONS, Buffer, CodecOptions, DecodeBudget
from kafka_msgs.schema import Described

if TYPE_CHECKING:
    from kafka_msgs.codec.codec import Codec

__all__ = [
    "DEFAULT_BUDGET",
    "DEFAULT_OPTIONS",
    "Buffer",
    "CodecOptions",
    "DecodeBudget",
    "codec_for",
]

M = TypeVar("M", bound=Described)

_codecs: dict[tuple[Any, ...], Codec[Any]] = {}


def codec_for(cls: type[M], version: int, options: CodecOptions = DEFAULT_OPTIONS) -> Codec[M]:
    """Return the codec of a message class at a version; raises ``UnsupportedVersionError``.

    The first call for a class and version takes about a millisecond a struct; later ones are a dictionary look-up.
    """
    key = (cls, version) if options is DEFAULT_OPTIONS else (cls, version, options)
    return _codecs.get(key) or _make(key, cls, version, options)


def _make(key: tuple[Any, ...], cls: type[M], version: int, options: CodecOptions) -> Codec[M]:
    from kafka_msgs.codec.codec import Codec
    from kafka_msgs.codec.plan import compile_plan

    # Two threads may both make it; either result is as good, and setdefault picks one.
    return _codecs.setdefault(key, Codec(compile_plan(cls, version), options))
