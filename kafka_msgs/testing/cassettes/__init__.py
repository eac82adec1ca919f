"""Cassettes: what clients asked a real cluster, recorded once, and played back without it.

``content`` compares requests without what differs from run to run. ``tape`` finds the recorded answer to a request;
``fetches`` has the recorded records of partitions, and ``topics`` what was recorded about topics. ``player`` answers
clients, and ``cassette`` records or plays.
"""

from kafka_msgs.testing.cassettes.cassette import Cassette

__all__ = ["Cassette"]
