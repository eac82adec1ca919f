"""Simulated group clients: each sends the next request of a real client, based on the responses so far.

They also misbehave: they revoke late, crash, leave and return, and change their subscriptions.
"""

from tests.coordinator.clients.base import Client
from tests.coordinator.clients.classic import ClassicClient
from tests.coordinator.clients.consumer import ConsumerClient
from tests.coordinator.clients.epochs import EpochClient
from tests.coordinator.clients.offsets import OffsetsClient
from tests.coordinator.clients.share import ShareClient
from tests.coordinator.clients.streams import StreamsClient

__all__ = ["ClassicClient", "Client", "ConsumerClient", "EpochClient", "OffsetsClient", "ShareClient", "StreamsClient"]
