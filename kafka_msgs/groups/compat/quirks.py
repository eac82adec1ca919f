"""Bugs of Kafka 4.4.0 that its coordinator's answers show. A comparison with Kafka enables them."""

from __future__ import annotations

from attrs import fields, frozen

__all__ = ["Quirks"]


@frozen(kw_only=True)
class Quirks:
    """Bugs of Kafka 4.4.0. Each is off, except in a comparison with Kafka itself.

    ``from_release`` enables all of them.
    """

    commit_makes_group: bool = False
    """A commit from outside a group creates the group before the offsets are validated.

    If no offset is stored, the group has no record. It exists until the partition is loaded again.
    """

    consumer_assignors_draw: bool = False
    """Two assignors have equally many requests from members of a consumer group. The coordinator decides by the order
    of a table, and before the request by the order of another table. So heartbeats of one member may increase the group
    epoch each time, and the group never becomes Stable. Without the quirk: the first of them in
    ``group.consumer.assignors``."""

    failed_append_stops_timers: bool = False
    """A timer that an operation cancelled stays cancelled when the append of the operation fails. A member that left,
    or that revoked partitions, is in the group as before, but no timer removes it if it stops sending heartbeats. Its
    group may never become Stable. Without the quirk: the timer is restored with its deadline."""

    consumer_regex_matches_nothing: bool = False
    """A member of a consumer group changes its regular expression to one that matches no topic. The group epoch stays.
    So the partitions that the member revokes have no owner until another change. Without the quirk: the first topics of
    a regular expression increase the group epoch, even if the list of topics is empty."""

    fetch_needs_member_id: bool = False
    """OffsetFetch with a member epoch and without a member id gives UNKNOWN_SERVER_ERROR. Without the quirk:
    UNKNOWN_MEMBER_ID."""

    versions_unread: bool = False
    """The coordinator ignores fields that old versions of JoinGroup and LeaveGroup lack: in Kafka the broker handles
    them outside the coordinator, and the comparison is with the coordinator alone. Without the quirk: each version gets
    its response."""

    rejoin_counts_twice: bool = False
    """A member of a consumer group that takes over the instance id of another member counts twice in that heartbeat:
    its previous subscription, partitions and target count as an additional member. Without the quirk: once."""

    late_join_forgets_group: bool = False
    """JoinGroup with a member id, to an empty consumer or streams group, is refused, and the group disappears until the
    partition is loaded again. Without the quirk: the group does not change."""

    timers_outlive_leadership: bool = False
    """A shard resigns from a partition while a record is not committed. The handling of the failure schedules timers,
    and they stay. They expire later without an effect. Without the quirk: they are cancelled."""

    offset_metadata_in_characters: bool = False
    """``offset.metadata.max.bytes`` limits the UTF-16 units of the metadata of an offset. Without the quirk: its bytes
    in UTF-8, as the config name states."""

    streams_unchecked_input: bool = False
    """A copartition index out of range, a name that is listed twice, and a negative topology epoch give
    UNKNOWN_SERVER_ERROR. Without the quirk: STREAMS_INVALID_TOPOLOGY or INVALID_REQUEST."""

    streams_join_relabels_first: bool = False
    """A static member that may not join takes over the kept assignment of the member that holds its instance id, which
    then loses its tasks for a while. Without the quirk: the kept assignment moves only with the instance id."""

    streams_endpoint_needs_topology: bool = False
    """A heartbeat of a member with an endpoint fails with UNKNOWN_SERVER_ERROR while topics of its tasks are missing.
    Without the quirk: its response lists no partitions of these topics for endpoints."""

    streams_first_join_forgets: bool = False
    """Unrecorded data of a group's first heartbeat is lost: the endpoint epoch, task offsets, and a request to shut
    down. Without the quirk: it is kept."""

    streams_load_forgets_counts: bool = False
    """After a partition was loaded, a streams group describes its internal topics with 0 partitions, until its next
    record is committed. Without the quirk: with the numbers derived from the topics."""

    streams_not_ready_apart: bool = False
    """ListGroups finds streams groups in the state NotReady by the filter ``not_ready`` only. Without the quirk: by the
    state name in its response, as for every other state."""

    @classmethod
    def from_release(cls) -> Quirks:
        """Return all bugs of Kafka 4.4.0."""
        return cls(**{each.name: True for each in fields(cls)})
