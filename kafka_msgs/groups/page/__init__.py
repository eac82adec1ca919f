"""Streams groups as the page of KIP-1071 describes them, beyond the release: the profile ``KIP_1071_PAGE``.

The rules of the document are fields of ``StreamsRules``. This package has the behaviour that no release has: online
migration between the classic and the streams protocol, and patterns of source topics. A coordinator loads it only if
its profile asks for it.
"""

from kafka_msgs.groups.page.profile import KIP_1071_PAGE

__all__ = ["KIP_1071_PAGE"]
