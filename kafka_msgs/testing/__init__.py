"""Utilities for testing Kafka protocol code.

``broker_helpers`` works with topics, groups and records of an embedded broker (extra ``broker``), and ``pytest_plugin``
provides the fixtures. ``cassettes`` record a real cluster once and replay it. ``strategies`` provides Hypothesis
strategies for the generated classes (extra ``testing``). ``random_values`` generates values from a seeded random
generator, without any extra. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.testing.broker_helpers import KafkaTestCase, committed_offsets, new_group, new_topic, topic_records
    from kafka_msgs.testing.cassettes import Cassette
    from kafka_msgs.testing.random_values import random_message
    from kafka_msgs.testing.strategies import messages, struct
else:
    __getattr__, __dir__ = lazy_module_attributes(
        __name__,
        {
            "Cassette": "cassettes",
            "KafkaTestCase": "broker_helpers",
            "committed_offsets": "broker_helpers",
            "messages": "strategies",
            "new_group": "broker_helpers",
            "new_topic": "broker_helpers",
            "random_message": "random_values",
            "struct": "strategies",
            "topic_records": "broker_helpers",
        },
    )

__all__ = [
    "Cassette",
    "KafkaTestCase",
    "committed_offsets",
    "messages",
    "new_group",
    "new_topic",
    "random_message",
    "struct",
    "topic_records",
]
