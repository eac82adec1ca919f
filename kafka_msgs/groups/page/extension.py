"""The parts of streams groups that only the document has, as the coordinator calls them."""

from __future__ import annotations

from kafka_msgs.groups.page.classic_members import CLASSIC_SUPPORT
from kafka_msgs.groups.page.migration import downgrade, may_downgrade, upgrade
from kafka_msgs.groups.page.source_patterns import has_patterns, resolve

__all__ = ["PageExtension"]


class PageExtension:
    """Online migration, and patterns of source topics: a ``StreamsExtension``."""

    classic_support = CLASSIC_SUPPORT
    upgrade = staticmethod(upgrade)
    may_downgrade = staticmethod(may_downgrade)
    downgrade = staticmethod(downgrade)
    has_patterns = staticmethod(has_patterns)
    resolve = staticmethod(resolve)
