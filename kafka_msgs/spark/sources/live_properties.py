"""The options ``kafka.*`` of ``kafka-live``: Kafka's client properties, each one used or refused.

A property that would have no effect is an error, because a job that relies on it would read or write other data than
intended. Offsets are Spark's: its checkpoint has the position of a stream, and a group receives a copy on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from kafka_msgs.client.consumer.config import parse_consumer_properties
from kafka_msgs.client.producer.config import parse_producer_properties
from kafka_msgs.client.property_parsing import resolve_names
from kafka_msgs.client.property_table import UNSUPPORTED, find_setting, is_ignored
from kafka_msgs.spark.sources.options import Options

__all__ = ["choose", "keywords", "progress_group"]

_USED: Final[Mapping[str, frozenset[str]]] = {
    "consumer": frozenset(
        ["buffer_max_bytes", "check_crc", "client_rack", "fetch_max_bytes", "fetch_max_wait", "fetch_min_bytes",
         "isolation_level", "partition_max_bytes"]
    ),
    "producer": frozenset(
        ["acks", "batch_size", "buffer_memory", "compression", "compression_level", "delivery_timeout", "idempotence",
         "linger", "max_block", "max_in_flight", "max_request_size", "request_timeout", "retry_backoff",
         "retry_backoff_max", "transaction_timeout"]
    ),
}  # fmt: skip
"""The keywords that concern reading a partition from one offset to another, and writing rows."""
_PARSERS: Final = {"consumer": parse_consumer_properties, "producer": parse_producer_properties}


def keywords(options: Options, properties: Mapping[str, str], client: str) -> dict[str, Any]:
    """Return the keywords of a ``consumer`` or ``producer`` in properties.

    Raises ``OptionError`` for a property without an effect.
    """
    for name in properties:
        setting = find_setting(name)
        is_used = setting is not None and (setting.client or getattr(setting, client) in _USED[client])
        if not is_used and (setting is not None or is_ignored(name) or name in UNSUPPORTED):
            options.refuse(f"kafka.{name}", "this property of Kafka has no effect in this source")
    return _PARSERS[client](resolve_names(properties))


def progress_group(options: Options, properties: dict[str, str]) -> str | None:
    """Return the group that stores the progress of a stream, or None; take its name out of the properties.

    The name is ``kafka.group.id``, or ``groupIdPrefix`` with a digest of the subscription, which is the same in every
    run. Raises ``OptionError`` for names without an effect.
    """
    prefix, is_used = options.text("groupIdPrefix"), options.flag("commitOffsets", False)
    group = properties.pop("group.id", None) if is_used else None
    if prefix is not None and (group is not None or not is_used):
        options.refuse("groupIdPrefix", f"it has no effect with{' kafka.group.id' if group else 'out commitOffsets'}")
    if is_used and not (group or prefix):
        options.refuse("commitOffsets", "it needs the name of a group: kafka.group.id or groupIdPrefix")
    if prefix is None:
        return group
    topics = "\0".join(options.text(name, "") or "" for name in ("subscribe", "subscribePattern", "assign"))
    return f"{prefix}-{sha256(topics.encode()).hexdigest()[:16]}"


def choose(options: Options, name: str, keyword: Any, own: Any, default: Any) -> Any:
    """Return the value of an option that Kafka also has as a property.

    ``own`` is the value of the option called ``name``, and ``keyword`` is the value of the property, None if not given.
    Raises ``OptionError`` if they differ.
    """
    if own is not None and keyword is not None and own != keyword:
        options.refuse(name, f"it contradicts Kafka's property of the same meaning, {keyword}")
    found = keyword if own is None else own
    return default if found is None else found
