"""Captured network traffic: the requests and responses of clients and brokers in pcap and pcapng files.

``read_exchanges`` yields requests with their responses, and a fault for everything else. Files are read with dpkt
(extra ``capture``). ``tcp_streams`` puts the bytes of a connection in order. ``resync`` cuts them into frames, even if
bytes are missing. ``exchange_builder`` makes exchanges of the frames. ``conversations`` combines these three. They do
no input or output. ``recording`` keeps exchanges in a file of their own. ``kafka_msgs.wire`` knows which response
answers which request.
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
