"""Captured network traffic: the requests and responses of clients and brokers in pcap and pcapng files.

``read_exchanges`` yields requests with their responses, and a fault for everything else. Files are read with dpkt
(extra ``capture``). ``tcp_streams`` reorders the bytes of a connection. ``resync`` splits them into frames, even if
bytes are missing. ``exchange_builder`` builds exchanges from the frames. ``conversations`` combines these three. They
do no input or output. ``recording`` stores exchanges in a file. ``kafka_msgs.wire`` matches responses to requests.
"""

from kafka_msgs.capture.connections import CapturedConnection, Endpoint
from kafka_msgs.capture.conversations import CaptureLimits
from kafka_msgs.capture.exchanges import CapturedPayload, Exchange, FieldError, Problem
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.capture.reader import DEFAULT_PORTS, read_exchanges
from kafka_msgs.capture.recording import is_recording, read_recording, recording_line, recording_start

__all__ = [
    "DEFAULT_PORTS",
    "CaptureFault",
    "CaptureLimits",
    "CapturedConnection",
    "CapturedPayload",
    "Endpoint",
    "Exchange",
    "FaultKind",
    "FieldError",
    "Problem",
    "is_recording",
    "read_exchanges",
    "read_recording",
    "recording_line",
    "recording_start",
]
