"""A transparent proxy between Kafka clients and brokers that displays and records their traffic.

``address_rewriting`` lists the response fields that contain broker addresses. ``frame_forwarder`` manages the buffer of
one direction, and ``connection`` decides which bytes to forward and finds the exchanges; both do no input or output.
``addons`` are hooks of users, and ``addon_files`` loads them. ``listeners`` assigns an address to each broker.
``relay`` forwards the bytes, ``backlog`` reports exchanges, and ``proxy`` combines them, with asyncio. Exchanges are
the exchanges of ``kafka_msgs.capture``.
"""

from kafka_msgs.tap.addon_files import load_addons
from kafka_msgs.tap.addons import Addon, TapExchange
from kafka_msgs.tap.address_rewriting import ADDRESS_FIELDS, rewrite_addresses
from kafka_msgs.tap.connection import ForwardResult, TapConfig, TapConnection
from kafka_msgs.tap.listeners import ListenerLimits
from kafka_msgs.tap.proxy import Tap

__all__ = [
    "ADDRESS_FIELDS",
    "Addon",
    "ForwardResult",
    "ListenerLimits",
    "Tap",
    "TapConfig",
    "TapConnection",
    "TapExchange",
    "load_addons",
    "rewrite_addresses",
]
