"""Cassettes: recorded client traffic of a real cluster, replayed without the cluster.

``request_content`` compares requests without values that differ between runs. ``recorded_exchanges`` finds the recorded
response to a request; ``recorded_fetches`` holds the recorded records of partitions, and ``recorded_topics`` the
recorded topic metadata. ``player`` responds to clients, and ``cassette`` records or replays.
"""

from kafka_msgs.testing.cassettes.cassette import Cassette

__all__ = ["Cassette"]
