"""Cassettes: what clients asked a real cluster, recorded once, and played back without it.

``request_content`` compares requests without what differs from run to run. ``recorded_exchanges`` finds the recorded
answer to a request; ``recorded_fetches`` has the recorded records of partitions, and ``recorded_topics`` what was
recorded about topics. ``player`` answers clients, and ``cassette`` records or plays.
"""

from kafka_msgs.testing.cassettes.cassette import Cassette

__all__ = ["Cassette"]
