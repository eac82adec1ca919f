"""A proxy between Kafka clients and brokers that shows and records what they say, and changes nothing for them.

``addresses`` knows which fields of responses hold addresses of brokers. ``connection`` decides which bytes go on, and
finds the exchanges; it does no input or output. ``listeners`` has the address that stands for each broker. ``proxy``
moves the bytes, with asyncio. Exchanges are those of ``kafka_msgs.capture``.
"""

from kafka_msgs.tap.addresses import ADDRESS_FIELDS, translate_addresses
from kafka_msgs.tap.connection import TapConnection, TapRules
from kafka_msgs.tap.proxy import Tap

__all__ = ["ADDRESS_FIELDS", "Tap", "TapConnection", "TapRules", "translate_addresses"]
