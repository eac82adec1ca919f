"""Codecs: compiled once, cached, readable in tracebacks, shared by threads."""

from __future__ import annotations

import linecache
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafka_msgs import OffsetFetchRequest, backend
from kafka_msgs._backend import BACKENDS
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions, DecodeBudget, codec_for
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.schema import field
from tests.support.codecs import Codecs, message_class, struct_class


def test_every_backend_has_its_executor() -> None:
    assert set(EXECUTORS) == set(BACKENDS)
    assert backend() in EXECUTORS


def test_a_codec_is_made_once_for_a_class_a_version_and_options() -> None:
    codec = codec_for(OffsetFetchRequest, 2)
    assert codec_for(OffsetFetchRequest, 2) is codec
    assert codec_for(OffsetFetchRequest, 3) is not codec
    views = CodecOptions(memoryview_records=True)
    assert codec_for(OffsetFetchRequest, 2, views) is not codec
    assert codec_for(OffsetFetchRequest, 2, views) is codec_for(
        OffsetFetchRequest, 2, CodecOptions(memoryview_records=True)
    )


def test_a_codec_knows_what_it_was_made_for() -> None:
    codec = codec_for(OffsetFetchRequest, 2)
    assert (codec.plan.name, codec.plan.version, codec.options) == ("OffsetFetchRequest", 2, DEFAULT_OPTIONS)


def test_a_version_that_the_message_lacks_has_no_codec() -> None:
    with pytest.raises(UnsupportedVersionError):
        codec_for(OffsetFetchRequest, 11)


def test_threads_may_ask_for_the_same_codec_at_once() -> None:
    for version in OffsetFetchRequest.INFO.versions:
        options = CodecOptions(budget=DecodeBudget(depth=20 + version))
        with ThreadPoolExecutor(8) as pool:
            codecs = set(pool.map(lambda _, v=version, o=options: codec_for(OffsetFetchRequest, v, o), range(32)))
        assert len(codecs) == 1


@pytest.mark.parametrize("errors", ["ignore", "", None])
def test_options_are_checked(errors: Any) -> None:
    with pytest.raises(ValueError, match="utf8_errors"):
        CodecOptions(utf8_errors=errors)


class Interrupting:
    """A value whose conversion to a number raises ``KeyboardInterrupt``."""

    def __index__(self) -> int:
        raise KeyboardInterrupt


def generated_frame(message: Any) -> traceback.FrameSummary:
    """Return the generated line that was interrupted while the Python executor encoded a message at version 0."""
    with pytest.raises(KeyboardInterrupt) as caught:
        Codecs("python").encode(message, 0)
    (frame,) = (frame for frame in traceback.extract_tb(caught.tb) if "kafka_msgs encode" in frame.filename)
    linecache.checkcache()
    assert linecache.getline(frame.filename, frame.lineno or 0).strip() == frame.line
    return frame


def test_a_traceback_shows_the_generated_lines() -> None:
    cls = message_class("Shown", versions="0-1", later=field("Later", "int8", versions="1+", default=0))
    frame = generated_frame(cls(later=Interrupting()))
    assert frame.filename == "<kafka_msgs encode Shown v0>"
    assert "differs_later(" in (frame.line or "")


def test_messages_of_one_name_show_their_own_lines() -> None:
    first = message_class("Alike", versions="0-1", a=field("A", "int8", versions="1+", default=0))
    second = message_class("Alike", versions="0-1", b=field("B", "int8", versions="1+", default=0))
    Codecs("python").encode(first(), 0)
    Codecs("python").encode(second(), 0)
    assert "differs_a(" in (generated_frame(first(a=Interrupting())).line or "")
    assert "differs_b(" in (generated_frame(second(b=Interrupting())).line or "")


@pytest.mark.parametrize("depth", range(1, 19))
def test_different_structs_may_share_a_name(codecs: Codecs, depth: int) -> None:
    first: Any = struct_class("Same", a=field("A", "int8", default=0))
    second: Any = struct_class("Same", b=field("B", "int16", default=0))
    one, two = first(a=1), second(b=2)
    for level in range(depth - 1):
        first = struct_class(f"L{level}", below=field("Below", first.__name__, default=one, struct=first))
        second = struct_class(f"R{level}", below=field("Below", second.__name__, default=two, struct=second))
        one, two = first(below=one), second(below=two)
    cls = message_class(
        "Twins",
        one=field("One", first.__name__, default=one, struct=first),
        two=field("Two", second.__name__, default=two, struct=second),
    )
    assert codecs.encode(cls(), 0).hex() == "010002"
    assert codecs.decode(cls, "010002", 0) == cls()
