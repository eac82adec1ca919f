"""Help for testing code that speaks the Kafka protocol.

``strategies`` makes Hypothesis strategies from the generated classes (extra ``testing``). ``random_values`` makes
values from a seeded random generator, and does not need an extra. A name is imported when it is needed.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy import lazy_attributes

if TYPE_CHECKING:
    from kafka_msgs.testing.random_values import random_message
    from kafka_msgs.testing.strategies import messages, struct
else:
    __getattr__, __dir__ = lazy_attributes(
        __name__, {"messages": "strategies", "random_message": "random_values", "struct": "strategies"}
    )

__all__ = ["messages", "random_message", "struct"]
