"""A proxy between Kafka clients and brokers that shows and records what they say, and changes nothing for them.

``address_rewriting`` knows which fields of responses hold addresses of brokers. ``frame_forwarder`` has the memory of
one direction, and ``connection`` decides which of its bytes go on and finds the exchanges; both do no input or output.
``listeners`` has the address that stands for each broker. ``relay`` moves the bytes, ``backlog`` reports what was seen,
and ``proxy`` brings them together, with asyncio. Exchanges are those of ``kafka_msgs.capture``.
"""

from kafka_msgs.tap.address_rewriting import ADDRESS_FIELDS, rewrite_addresses
from kafka_msgs.tap.connection import ForwardResult, TapConfig, TapConnection
from kafka_msgs.tap.proxy import Tap

__all__ = ["ADDRESS_FIELDS", "ForwardResult", "Tap", "TapConfig", "TapConnection", "rewrite_addresses"]
