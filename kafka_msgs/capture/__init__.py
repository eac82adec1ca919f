"""Captured network traffic: what clients and brokers said to each other, out of pcap and pcapng files.

``read_exchanges`` yields requests with their responses, and faults for all that is not an exchange. Files are read
through dpkt (extra ``capture``); putting streams in order, cutting them into frames where bytes may be missing, and
making exchanges of these are done here, without input or output: ``streams``, ``resync`` and ``exchange_builder``, in
``conversations``. Which response answers which request, ``kafka_msgs.wire`` knows.
"""

from kafka_msgs.capture.connections import Connection, Endpoint
from kafka_msgs.capture.conversations import Limits
from kafka_msgs.capture.exchanges import Exchange, FieldError, Problem, Sent
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.capture.reading import DEFAULT_PORTS, read_exchanges

__all__ = [
    "DEFAULT_PORTS",
    "CaptureFault",
    "Connection",
    "Endpoint",
    "Exchange",
    "FaultKind",
    "FieldError",
    "Limits",
    "Problem",
    "Sent",
    "read_exchanges",
]
