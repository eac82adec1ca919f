"""The parts of streams groups that only the document has: this module is a ``StreamsExtension``."""

from kafka_msgs.groups.page.classic_members import CLASSIC_SUPPORT
from kafka_msgs.groups.page.migration import downgrade, may_downgrade, upgrade
from kafka_msgs.groups.page.source_patterns import has_patterns, resolve

__all__ = ["CLASSIC_SUPPORT", "downgrade", "has_patterns", "may_downgrade", "resolve", "upgrade"]
