"""Config changes that the recorded stories need. The release's jars do not include Kafka's own config tool."""

from __future__ import annotations

from kafka_msgs.admin import Admin, ConfigChange, ConfigResource, ConfigResourceType

__all__ = ["limit_producers", "share_from_earliest"]


def share_from_earliest(bootstrap: str, group: str) -> None:
    """Make a share group start at the earliest offset."""
    change = ConfigChange("share.auto.offset.reset", "earliest")
    with Admin(bootstrap) as admin:
        admin.alter_configs({ConfigResource(ConfigResourceType.GROUP, group): [change]}).all()


def limit_producers(bootstrap: str, *, client_id: str, bytes_per_second: int) -> None:
    """Set the quota of producers with a client id."""
    entity = frozenset({("client-id", client_id)})
    with Admin(bootstrap) as admin:
        admin.alter_client_quotas({entity: {"producer_byte_rate": float(bytes_per_second)}}).all()
