"""The schema registry of the embedded broker, used by Confluent's client and serializers and by this library's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

import fastavro
import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.endpoints.avro_compatibility import incompatibilities, parse_avro
from kafka_msgs.registry import SchemaRegistryClient as OwnClient
from kafka_msgs.testing import topic_records

with warnings.catch_warnings():
    # Warnings by one of Confluent's dependencies about another dependency.
    warnings.simplefilter("ignore")
    import confluent_kafka
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.schema_registry.error import SchemaRegistryError
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

ORDER: Final = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
WITH_NOTE: Final = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, '
    '{"name": "note", "type": ["null", "string"], "default": null}]}'
)
WITH_PRICE: Final = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, '
    '{"name": "price", "type": "double"}]}'
)
POINT: Final = (
    '{"$schema": "http://json-schema.org/draft-07/schema#", "title": "P", "type": "object", '
    '"properties": {"x": {"type": "integer"}}}'
)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(registry_port=0, configs={"auto.create.topics.enable": "true"}) as broker:
        yield broker
        assert broker.problems == []


@contextmanager
def confluent_client(broker: EmbeddedBroker) -> Iterator[Any]:
    with SchemaRegistryClient({"url": broker.registry_url}) as client:
        yield client


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Any]:
    with confluent_client(broker) as client:
        yield client


def test_confluents_avro_serializer_and_deserializer(broker: EmbeddedBroker, client: Any) -> None:
    """A producer registers its schema. A consumer with a later schema finds the writer's by its id."""
    serialize = AvroSerializer(client, ORDER)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", serialize({"id": 7}, SerializationContext("orders", MessageField.VALUE)))
    assert producer.flush(30) == 0
    (record,) = topic_records(broker, "orders")
    context = SerializationContext("orders", MessageField.VALUE)
    with confluent_client(broker) as other:
        read = AvroDeserializer(other, WITH_NOTE)
        assert read(bytes(record.value or b""), context) == {"id": 7, "note": None}
    assert client.get_subjects() == ["orders-value"]


def test_confluents_json_serializer(client: Any) -> None:
    context = SerializationContext("points", MessageField.VALUE)
    payload = JSONSerializer(POINT, client)({"x": 3}, context)
    assert JSONDeserializer(POINT, schema_registry_client=client)(payload, context) == {"x": 3}


def test_this_library_reads_the_schemas(broker: EmbeddedBroker, client: Any) -> None:
    number = client.register_schema("orders-value", Schema(ORDER, "AVRO"))
    own = OwnClient(broker.registry_url)
    assert json.loads(own.by_id(number).text) == json.loads(ORDER)
    assert own.latest("orders-value").version == 1


def test_subjects_versions_and_ids(client: Any) -> None:
    first, spaced, second = (client.register_schema("a", Schema(each)) for each in (ORDER, f" {ORDER} ", WITH_NOTE))
    assert (first, spaced, second) == (1, 1, 2)
    assert client.register_schema("b", Schema(WITH_NOTE)) == 2
    assert client.get_versions("a") == [1, 2]
    latest = client.get_latest_version("a")
    assert (latest.version, latest.schema_id) == (2, 2)
    assert json.loads(client.get_schema(1).schema_str) == json.loads(ORDER)
    assert client.lookup_schema("a", Schema(ORDER)).version == 1
    with pytest.raises(SchemaRegistryError, match="40403"):
        client.lookup_schema("a", Schema(POINT, "JSON"))
    assert client.delete_version("a", 1) == 1
    assert client.get_versions("a") == [2]
    assert client.delete_subject("a") == [2]
    assert client.get_subjects() == ["b"]
    assert client.register_schema("a", Schema(ORDER)) == 1
    assert client.get_versions("a") == [3]


def test_references(client: Any) -> None:
    client.register_schema("order", Schema(ORDER))
    orders = '{"type": "array", "items": "Order"}'
    batch = f'{{"type": "record", "name": "Batch", "fields": [{{"name": "orders", "type": {orders}}}]}}'
    with pytest.raises(SchemaRegistryError, match="the type Order is undefined"):
        client.register_schema("batch", Schema(batch))
    number = client.register_schema("batch", Schema(batch, references=[SchemaReference("Order", "order", 1)]))
    (used,) = client.get_schema(number).references
    assert (used.name, used.subject, used.version) == ("Order", "order", 1)


def test_an_incompatible_schema_is_refused(client: Any) -> None:
    client.register_schema("a", Schema(ORDER))
    assert client.test_compatibility("a", Schema(WITH_NOTE))
    assert not client.test_compatibility("a", Schema(WITH_PRICE))
    with pytest.raises(SchemaRegistryError, match="/price: the writer lacks the field") as caught:
        client.register_schema("a", Schema(WITH_PRICE))
    assert caught.value.http_status_code == 409
    assert client.set_compatibility("a", "FORWARD")
    assert client.get_compatibility("a") == "FORWARD"
    assert client.register_schema("a", Schema(WITH_PRICE)) == 2
    assert client.set_compatibility(level="NONE")
    assert client.get_compatibility() == "NONE"


def test_levels_without_an_implementation_are_refused(client: Any) -> None:
    client.register_schema("p", Schema(POINT, "JSON"))
    other = Schema(POINT.replace("integer", "string"), "JSON")
    with pytest.raises(SchemaRegistryError, match="the compatibility of JSON schemas is not checked here"):
        client.register_schema("p", other)
    client.set_compatibility("p", "NONE")
    assert client.register_schema("p", other) == 2


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [("{", "AVRO", 42201), ('"text"', "AVRO", 42201), ("[" * 5000, "JSON", 42201), ("{}", "XML", 42201)],
)
def test_invalid_schemas_are_refused(client: Any, text: str, kind: str, code: int) -> None:
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("a", Schema(text, kind))
    assert caught.value.error_code == code


def test_unknown_names_have_confluents_errors(client: Any) -> None:
    client.register_schema("a", Schema(ORDER))
    questions: list[tuple[Callable[[], object], int]] = [
        (lambda: client.get_schema(9), 40403),
        (lambda: client.get_versions("none"), 40401),
        (lambda: client.get_version("a", 9), 40402),
        (lambda: client.get_version("a", "x"), 42202),
        (lambda: client.set_compatibility("a", "MOST"), 42203),
    ]
    for ask, code in questions:
        with pytest.raises(SchemaRegistryError) as caught:
            ask()
        assert caught.value.error_code == code


def record(*fields: str, name: str = "R", **more: str) -> str:
    extra = "".join(f', "{key}": {value}' for key, value in more.items())
    return f'{{"type": "record", "name": "{name}", "fields": [{", ".join(fields)}]{extra}}}'


def field(name: str, kind: str, **more: str) -> str:
    extra = "".join(f', "{key}": {value}' for key, value in more.items())
    return f'{{"name": "{name}", "type": {kind}{extra}}}'


LIST: Final = record(field("next", '["null", "R"]'))
ENUM: Final = '{"type": "enum", "name": "E", "symbols": ["A", "B"]}'

PAIRS: Final[list[tuple[str, str, Any, bool]]] = [
    ('"long"', '"int"', 3, True),
    ('"int"', '"long"', 3, False),
    ('"double"', '"float"', 0.5, True),
    ('"string"', '"bytes"', b"a", True),
    ('["null", "long"]', '"int"', 3, True),
    ('["null", "string"]', '"int"', 3, False),
    ('"int"', '["int", "null"]', None, False),
    ('{"type": "array", "items": "long"}', '{"type": "array", "items": "int"}', [1], True),
    ('{"type": "map", "values": "int"}', '{"type": "map", "values": "string"}', {"a": "b"}, False),
    (record(field("a", '"int"', default="1")), record(), {}, True),
    (record(field("a", '"int"')), record(), {}, False),
    (record(), record(field("a", '"int"')), {"a": 1}, True),
    (record(field("b", '"int"', aliases='["a"]')), record(field("a", '"int"')), {"a": 1}, True),
    (record(name="S"), record(), {}, False),
    (record(name="S", aliases='["R"]'), record(), {}, True),
    (LIST, LIST, {"next": {"next": None}}, True),
    (ENUM.replace(', "B"', ""), ENUM, "B", False),
    (ENUM.replace(', "B"]', '], "default": "A"'), ENUM, "B", True),
    ('{"type": "fixed", "name": "F", "size": 2}', '{"type": "fixed", "name": "F", "size": 3}', b"abc", False),
]


@pytest.mark.parametrize(("reader", "writer", "value", "compatible"), PAIRS)
def test_compatible_schemas_are_those_that_fastavro_resolves(
    reader: str, writer: str, value: Any, compatible: bool
) -> None:
    """``value`` is written with the writer's schema. If the schemas are compatible, fastavro can read it."""
    theirs, ours = json.loads(reader), json.loads(writer)
    assert (not incompatibilities(parse_avro(theirs, {}), parse_avro(ours, {}))) == compatible
    data = BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(ours, {}), value)
    data.seek(0)
    try:
        fastavro.schemaless_reader(data, fastavro.parse_schema(ours, {}), fastavro.parse_schema(theirs, {}))
        assert compatible
    except (fastavro.read.SchemaResolutionError, ValueError):
        assert not compatible


def test_schemas_that_are_too_large_to_compare_are_refused() -> None:
    deep: Any = "int"
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_avro(deep, {})
    branches = [{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(400)]
    others = [{"type": "fixed", "name": f"G{number}", "size": 1} for number in range(400)]
    with pytest.raises(ValueError, match="too large"):
        incompatibilities(parse_avro(branches, {}), parse_avro(others, {}))
