"""Payloads of a schema registry, in Avro, Protobuf and JSON: bytes that name their schema by an id.

``schemas`` has the registered schemas, from a file or from the registry's own topic; ``api`` asks a registry.
``decode`` reads columns of payloads as Arrow arrays; ``avro``, ``protobuf`` and ``json`` know the formats, each through
a library of the extra ``registry``. ``serializers`` encodes and decodes single keys and values.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.registry.api import SchemaRegistryClient
    from kafka_msgs.registry.decode import PayloadReader, decode_payloads
    from kafka_msgs.registry.schemas import Reference, RegisteredSchema, SchemaResolver, StaticSchemas
    from kafka_msgs.registry.serializers import PayloadDeserializer, PayloadSerializer
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "PayloadDeserializer": "serializers",
            "PayloadReader": "decode",
            "PayloadSerializer": "serializers",
            "Reference": "schemas",
            "RegisteredSchema": "schemas",
            "SchemaRegistryClient": "api",
            "SchemaResolver": "schemas",
            "StaticSchemas": "schemas",
            "decode_payloads": "decode",
        },
    )

__all__ = [
    "PayloadDeserializer",
    "PayloadReader",
    "PayloadSerializer",
    "Reference",
    "RegisteredSchema",
    "SchemaRegistryClient",
    "SchemaResolver",
    "StaticSchemas",
    "decode_payloads",
]
