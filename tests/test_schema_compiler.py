"""Classes compiled at run time work, and document themselves, like generated ones."""

from __future__ import annotations

import gc
import inspect
import linecache
import pickle
import re
import sys
import weakref
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import cattrs
import pytest

from kafka_msgs import Message, OffsetFetchRequest, SchemaError, compile_schema, fields
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.columns import arrow_type
from kafka_msgs.schema_compiler import compile_schemas

DEFINITIONS = Path(__file__).parents[1] / "message_defs" / "kafka" / "clients"
PARCEL = """{
  "name": "Parcel", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    {"name": "Label", "type": "string", "versions": "0+"},
    {"name": "Stops", "type": "[]Stop", "versions": "0+", "fields": [
      {"name": "City", "type": "string", "versions": "0+"}
    ]}
  ]
}"""


def parcel(cls: Any) -> Message:
    stop = inspect.getmodule(cls).Stop  # type: ignore[union-attr]
    made: Message = cls(label="a", stops=(stop(city="Bo"),))
    return made


@pytest.mark.parametrize(
    ("version", "data"), [(0, "0001 61 00000001 0002 426f"), (1, "02 61 02 03 426f 00 00")], ids=["classic", "flexible"]
)
def test_compiled_text_encodes_and_decodes(version: int, data: str) -> None:
    message = parcel(compile_schema(PARCEL))
    assert message.encode(version) == bytes.fromhex(data)
    assert type(message).decode(bytes.fromhex(data), version) == message


def test_compiled_file_gives_the_same_class(tmp_path: Path) -> None:
    path = tmp_path / "Parcel.json"
    path.write_text(PARCEL)
    assert parcel(compile_schema(path)).encode(1) == parcel(compile_schema(PARCEL)).encode(1)
    assert compile_schema(str(path)).INFO == compile_schema(PARCEL).INFO


def test_compiled_class_shows_its_source() -> None:
    source = inspect.getsource(compile_schema(PARCEL))
    assert 'label: str = field("Label", "string", "0+"' in source


def test_compiled_values_survive_pickling() -> None:
    message = parcel(compile_schema(PARCEL))
    assert pickle.loads(pickle.dumps(message)) == message


def test_one_definition_compiled_twice_gives_two_classes() -> None:
    first, second = compile_schema(PARCEL), compile_schema(PARCEL)
    assert first is not second
    assert parcel(first) != parcel(second)


def test_wrong_definition_is_refused_with_its_place() -> None:
    with pytest.raises(SchemaError, match=r"^4:\d+: Parcel\.Label: ") as refused:
        compile_schema(PARCEL.replace('"string", "versions": "0+"},', '"strng", "versions": "0+"},'))
    assert (refused.value.line, refused.value.source) == (4, None)


def structured(cls: type[Any], value: Any) -> Any:
    """Create instances of attrs classes from plain data by their type hints, as libraries for structured data do."""
    if get_origin(cls) is UnionType:
        return structured(get_args(cls)[0], value)
    if get_origin(cls) is tuple:
        return tuple(structured(get_args(cls)[0], item) for item in value)
    if not attrs.has(cls):
        return cls(value)
    hints = get_type_hints(cls)
    return cls(**{name: structured(hints[name], item) for name, item in value.items()})


def test_type_hints_are_those_of_released_classes() -> None:
    """Compiled at run time, a released definition has the same hints, but with its own nested structs."""
    cls = compile_schema(DEFINITIONS / "OffsetFetchRequest.json")
    assert names_of(get_type_hints(cls)) == names_of(get_type_hints(OffsetFetchRequest))
    for ours, theirs in zip(fields(cls), fields(OffsetFetchRequest), strict=True):
        if ours.struct and theirs.struct:
            assert names_of(get_type_hints(ours.struct)) == names_of(get_type_hints(theirs.struct))


def names_of(hints: dict[str, Any]) -> dict[str, str]:
    return {name: re.sub(r"[\w.]*\.", "", str(hint)) for name, hint in hints.items()}


def test_type_hints_lead_to_the_nested_classes() -> None:
    cls = compile_schema(PARCEL)
    stop = inspect.getmodule(cls).Stop  # type: ignore[union-attr]
    assert get_args(get_type_hints(cls)["stops"]) == (stop, ...)
    assert get_args(attrs.fields(attrs.resolve_types(cls)).stops.type) == (stop, ...)
    assert attrs.fields(attrs.resolve_types(stop)).city.type is str


def test_libraries_for_structured_data_make_compiled_classes() -> None:
    plain = {"label": "a", "stops": [{"city": "Bo"}]}
    message = parcel(compile_schema(PARCEL))
    assert structured(type(message), plain) == message
    assert cattrs.structure(plain, type(message)) == message
    assert cattrs.structure(cattrs.unstructure(message), type(message)) == message
    request = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": [1]}]}
    assert cattrs.structure(request, OffsetFetchRequest) == structured(OffsetFetchRequest, request)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_class_that_nobody_needs_goes_with_all_that_was_kept_for_it(executor: str) -> None:
    def used(number: int) -> weakref.ref[type[Message]]:
        cls = compile_schema(PARCEL.replace('"Parcel"', f'"Parcel{number}"'))
        codec: Codec[Any] = Codec(compile_plan(cls, 1), executor=EXECUTORS[executor])
        message = codec.decode(codec.encode(cls()))
        assert message == cls() == pickle.loads(pickle.dumps(cls()))
        assert hash(message) == hash(cls())
        assert cls.from_json(message.to_json(1), 1) == message
        assert f"class Parcel{number}(" in inspect.getsource(cls)
        assert arrow_type(cls, 1).num_fields > len(fields(cls))
        assert cls.__module__ in sys.modules
        assert get_type_hints(attrs.resolve_types(cls))["label"] is str
        return weakref.ref(cls)

    used(0)
    gc.collect()
    modules, sources = len(sys.modules), len(linecache.cache)
    references = [used(number) for number in range(1, 20)]
    gc.collect()
    assert [reference() for reference in references] == [None] * 19
    # Objects of earlier tests may be freed meanwhile, so the counts may drop.
    assert len(sys.modules) <= modules
    assert len(linecache.cache) <= sources


def test_a_class_lives_as_long_as_one_of_its_values_or_structs() -> None:
    value = compile_schema(PARCEL)()
    gc.collect()
    assert pickle.loads(pickle.dumps(value)) == value
    assert sys.modules[type(value).__module__].Parcel is type(value)


def test_all_definitions_of_a_text_or_a_file_are_compiled(tmp_path: Path) -> None:
    other, gone = (
        PARCEL.replace('"Parcel"', '"Letter"'),
        PARCEL.replace('"validVersions": "0-1"', '"validVersions": "none"'),
    )
    text = "\n".join((PARCEL, gone.replace('"1+"', '"none"', 1), other))
    path = tmp_path / "page.json"
    path.write_text(text)
    for source in (text, path, str(path)):
        assert [cls.INFO.name for cls in compile_schemas(source, lenient=True)] == ["Parcel", "Letter"]
    assert [cls.INFO.name for cls in compile_schemas(PARCEL)] == ["Parcel"]
    with pytest.raises(SchemaError, match="several definitions"):
        compile_schemas(text)
