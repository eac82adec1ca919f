"""Encoding and decoding of any generated message class, at any of its versions.

``codec_for`` gives the ``Codec`` of a class and version, made at first use and kept. Importing this package loads
none of the machinery behind it; the first codec does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

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


def codec_for(cls: type[M], version: int, options: CodecOptions = DEFAULT_OPTIONS) -> Codec[M]:
    """Return the codec of a message class at a version; raises ``UnsupportedVersionError``.

    The first call for a class and version takes about a millisecond a struct; later ones are a dictionary look-up. The
    class holds its codecs, so they live as long as it does.
    """
    key = version if options is DEFAULT_OPTIONS else (version, options)
    return cls._codecs.get(key) or _make(cls, version, options)


def _make(cls: type[M], version: int, options: CodecOptions) -> Codec[M]:
    from kafka_msgs.codec.codec import Codec
    from kafka_msgs.codec.plan import compile_plan

    plan = compile_plan(cls, version)
    key = plan.version if options is DEFAULT_OPTIONS else (plan.version, options)
    # Two threads may both make it; either result is as good, and setdefault picks one.
    codec: Codec[M] = cls._codecs.setdefault(key, Codec(plan, options))
    return codec
