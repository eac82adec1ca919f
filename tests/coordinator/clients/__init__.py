"""Simulated clients of groups: each asks what a real client would ask next, given the answers it got so far.

They are not always good: they revoke late, fall silent, leave and come back, and change their minds.
"""

from tests.coordinator.clients.base import Client
from tests.coordinator.clients.classic import ClassicClient
from tests.coordinator.clients.consumer import ConsumerClient
from tests.coordinator.clients.epochs import EpochClient
from tests.coordinator.clients.offsets import OffsetsClient
from tests.coordinator.clients.share import ShareClient
from tests.coordinator.clients.streams import StreamsClient

__all__ = ["ClassicClient", "Client", "ConsumerClient", "EpochClient", "OffsetsClient", "ShareClient", "StreamsClient"]
