"""A proxy between Kafka clients and brokers that shows and records what they say, and changes nothing for them.

``addresses`` knows which fields of responses hold addresses of brokers. ``inflow`` has the memory of one direction, and
``connection`` decides which of its bytes go on and finds the exchanges; both do no input or output. ``listeners`` has
the address that stands for each broker. ``pairs`` moves the bytes, ``backlog`` reports what was seen, and ``proxy``
brings them together, with asyncio. Exchanges are those of ``kafka_msgs.capture``.
"""

from kafka_msgs.tap.addresses import ADDRESS_FIELDS, rewrite_addresses
from kafka_msgs.tap.connection import ForwardResult, TapConfig, TapConnection
from kafka_msgs.tap.proxy import Tap

__all__ = ["ADDRESS_FIELDS", "ForwardResult", "Tap", "TapConfig", "TapConnection", "rewrite_addresses"]
