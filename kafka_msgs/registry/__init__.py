"""Schema registry payloads in Avro, Protobuf and JSON: bytes that reference their schema by id.

``schemas`` loads registered schemas from a file or from the registry's topic; ``registry_client`` requests them from a
registry. ``payload_decoding`` decodes columns of payloads to Arrow arrays; ``avro``, ``protobuf`` and ``json_schema``
implement the formats, each with a library of the extra ``registry``. ``serializers`` encodes and decodes single keys
and values, and ``json_values`` converts decoded values to JSON. ``record_filter`` selects records by their decoded
fields.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.registry.payload_decoding import PayloadReader, decode_payloads
    from kafka_msgs.registry.record_filter import RecordFilter
    from kafka_msgs.registry.registry_client import SchemaRegistryClient
    from kafka_msgs.registry.schemas import Reference, RegisteredSchema, SchemaResolver, StaticSchemas
    from kafka_msgs.registry.serializers import PayloadDeserializer, PayloadSerializer
else:
    _NAMES = {
        "payload_decoding": ("PayloadReader", "decode_payloads"),
        "record_filter": ("RecordFilter",),
        "registry_client": ("SchemaRegistryClient",),
        "schemas": ("Reference", "RegisteredSchema", "SchemaResolver", "StaticSchemas"),
        "serializers": ("PayloadDeserializer", "PayloadSerializer"),
    }
    __getattr__, __dir__ = lazy_module_attributes(
        __name__, {name: module for module, names in _NAMES.items() for name in names}
    )

__all__ = [
    "PayloadDeserializer",
    "PayloadReader",
    "PayloadSerializer",
    "RecordFilter",
    "Reference",
    "RegisteredSchema",
    "SchemaRegistryClient",
    "SchemaResolver",
    "StaticSchemas",
    "decode_payloads",
]
