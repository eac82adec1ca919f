"""Profiles for differences between KIP-1071 and the release, and quirks for bugs of the release.

The code supports both behaviours. Each difference is a field of ``Profile``, and its docstring has both behaviours and
the reason. ``SHIPPED`` is Kafka 4.4.0, which real clients talk to. ``KIP_1071_PAGE`` is the document (KIP-1071) as a
superset. A handler checks a field, never a profile. A bug of the release is a field of ``Quirks``.
"""

from __future__ import annotations

from typing import Final

from attrs import field, fields, frozen

__all__ = ["KIP_1071_PAGE", "SHIPPED", "Profile", "Quirks", "StreamsRules"]


@frozen(kw_only=True)
class StreamsRules:
    """The options for streams groups. Each is False for ``shipped`` and True for ``page``."""

    source_patterns: bool = False
    """Shipped: a pattern of source topics is refused with INVALID_REQUEST. Page: patterns in RE2 syntax are resolved
    against the topics, and an invalid pattern gives STREAMS_INVALID_TOPOLOGY. The release does not implement patterns
    yet."""

    generates_member_ids: bool = False
    """Shipped: an empty member id is refused. Page: the coordinator generates an id for a member that joins without
    one. The document contains both behaviours; this is the one in its request validation, and clients that generate ids
    get the same service."""

    complete_joins: bool = False
    """Shipped: a first heartbeat may have a rebalance timeout of 0, and a topology without subtopologies. Page: the
    timeout must be larger than 0, and an empty topology gives INVALID_REQUEST, because the schema calls it invalid."""

    disjoint_roles: bool = False
    """Shipped: a task may be in two roles of one heartbeat. Page: INVALID_REQUEST."""

    checks_topics: bool = False
    """Shipped: an internal topic may have several roles, and an unresolvable topology gives STREAMS_INVALID_TOPOLOGY
    when topics are configured. Page: all rules for the topics of a topology are checked first."""

    topology_updates: bool = False
    """Shipped: an older topology epoch joins and gets status 0, another topology gives INVALID_REQUEST. Page: the epoch
    of a member that joins is compared with the group's epoch. An older epoch gives STREAMS_TOPOLOGY_FENCED, the next
    epoch updates the topology, and any other difference gives STREAMS_INVALID_TOPOLOGY_EPOCH. Topologies that differ
    only in order are equal. The release does not implement updates yet."""

    tolerates_old_topologies: bool = False
    """Shipped: a task outside the current topology gives INVALID_REQUEST. Page: a member with an older topology epoch
    is not checked, since the check would break rolling upgrades; it keeps its tasks and gets no new ones."""

    fencing_removes_member: bool = False
    """Shipped: a heartbeat at a wrong epoch is refused, and the member stays. Page: the member is removed."""

    bumps_for_assignment_only: bool = False
    """Shipped: each change in the report of a dynamic member increases the group epoch. Page: only a change of its
    topology epoch, rack, client tags or process does."""

    reports_status_changes_only: bool = False
    """Shipped: each response has the status list. Page: the list is null if it equals the member's previous list."""

    shutdown_on_leave: bool = False
    """Shipped: the shutdown flag takes effect in each heartbeat. Page: it is ignored unless the member leaves."""

    assigns_without_delay: bool = False
    """Shipped: the first assignment of a group and later ones are delayed (status 5). Page: assignments are not
    delayed, and the status does not exist."""

    chooses_assignor: bool = False
    """Shipped: the coordinator's first assignor, sticky, if the group names none. Page: highly_available if a
    subtopology has state, otherwise sticky, and a group may name either."""

    limits_topic_creation: bool = False
    """Shipped: each heartbeat requests missing internal topics, and the broker limits attempts. Page: one attempt at a
    time, with a growing back-off, none without the permission, and the status detail reports the attempt."""

    ignores_internal_topic_changes: bool = False
    """Shipped: a change of any topic of the topology increases the group epoch. Page: only a change of a topic that is
    read does. Changelog topics still determine whether the group is ready."""

    online_migration: bool = False
    """Shipped: only an empty group changes between the classic and the streams protocol. Page: a member of the streams
    protocol turns a classic group of Streams applications into a streams group, whose existing members continue with
    the classic protocol; when only these remain, the group becomes a classic group again. They must send user data of
    version 12, which has the inputs of an assignment. The release does not implement it."""

    shares_offsets: bool = False
    """Shipped: each member has the task offsets that it reported. Page: members of a process share their state on disk,
    so the latest offset that any of them reported applies."""

    requires_group_version: bool = False
    """Shipped: the protocol needs level 1 of the feature ``streams.version``. Page: level 2 of ``group.version``, the
    level after KIP-848. The release introduced a separate feature for the protocol."""

    stricter_permissions: bool = False
    """Shipped: a heartbeat needs DESCRIBE on the topics of its topology, and a description DESCRIBE on the group. Page:
    DESCRIBE_CONFIGS on the topics, and READ on the group."""

    ends_caught_up_warmups: bool = False
    """Shipped: no warm-up task is ever assigned, so none catches up. Page: the group epoch increases when a member
    reports that a warm-up task has caught up, so that the next assignment changes the role of the task."""


@frozen(kw_only=True)
class Profile:
    """The options of a coordinator."""

    name: str
    """The name of the profile in documents and tests."""

    streams: StreamsRules = StreamsRules()
    """The options for streams groups."""


SHIPPED: Final = Profile(name="shipped")
"""The behaviour of Kafka 4.4.0."""

KIP_1071_PAGE: Final = Profile(name="page", streams=StreamsRules(**{each.name: True for each in fields(StreamsRules)}))
"""The behaviour of the document."""


def _quirk() -> bool:
    """A field of ``Quirks``: a bug that is off by default."""
    made: bool = field(default=False)
    return made


@frozen(kw_only=True)
class Quirks:
    """Bugs of Kafka 4.4.0. Each is off, except in a comparison with Kafka itself.

    ``from_release`` enables all of them.
    """

    commit_makes_group: bool = _quirk()
    """A commit from outside a group creates the group before the offsets are validated.

    If no offset is stored, the group has no record. It exists until the partition is loaded again.
    """

    consumer_assignors_draw: bool = _quirk()
    """Two assignors have equally many requests from members of a consumer group. The coordinator decides by the order
    of a table, and before the request by the order of another table. So heartbeats of one member may increase the group
    epoch each time, and the group never becomes Stable. Without the quirk: the first of them in
    ``group.consumer.assignors``."""

    failed_append_stops_timers: bool = _quirk()
    """A timer that an operation cancelled stays cancelled when the append of the operation fails. A member that left,
    or that revoked partitions, is in the group as before, but no timer removes it if it stops sending heartbeats. Its
    group may never become Stable. Without the quirk: the timer is restored with its deadline."""

    consumer_regex_matches_nothing: bool = _quirk()
    """A member of a consumer group changes its regular expression to one that matches no topic. The group epoch stays.
    So the partitions that the member revokes have no owner until another change. Without the quirk: the first topics of
    a regular expression increase the group epoch, even if the list of topics is empty."""

    failed_append_repeats: bool = _quirk()
    """Reads list the changes of a failed append more than once, until the next commit.

    A snapshot of Kafka's tables keeps the entries that it restored. Without the quirk: each entry is listed once.
    """

    fetch_needs_member_id: bool = _quirk()
    """OffsetFetch with a member epoch and without a member id gives UNKNOWN_SERVER_ERROR. Without the quirk:
    UNKNOWN_MEMBER_ID."""

    versions_unread: bool = _quirk()
    """The coordinator ignores fields that old versions of JoinGroup and LeaveGroup lack: in Kafka the broker handles
    them outside the coordinator, and the comparison is with the coordinator alone. Without the quirk: each version gets
    its response."""

    rejoin_counts_twice: bool = _quirk()
    """A member of a consumer group that takes over the instance id of another member counts twice in that heartbeat:
    its previous subscription, partitions and target count as an additional member. Without the quirk: once."""

    late_join_forgets_group: bool = _quirk()
    """JoinGroup with a member id, to an empty consumer or streams group, is refused, and the group disappears until the
    partition is loaded again. Without the quirk: the group does not change."""

    timers_outlive_leadership: bool = _quirk()
    """A shard resigns from a partition while a record is not committed. The handling of the failure schedules timers,
    and they stay. They expire later without an effect. Without the quirk: they are cancelled."""

    offset_metadata_in_characters: bool = _quirk()
    """``offset.metadata.max.bytes`` limits the UTF-16 units of the metadata of an offset. Without the quirk: its bytes
    in UTF-8, as the config name states."""

    streams_unchecked_input: bool = _quirk()
    """A copartition index out of range, a name that is listed twice, and a negative topology epoch give
    UNKNOWN_SERVER_ERROR. Without the quirk: STREAMS_INVALID_TOPOLOGY or INVALID_REQUEST."""

    streams_join_relabels_first: bool = _quirk()
    """A static member that may not join takes over the kept assignment of the member that holds its instance id, which
    then loses its tasks for a while. Without the quirk: the kept assignment moves only with the instance id."""

    streams_endpoint_needs_topology: bool = _quirk()
    """A heartbeat of a member with an endpoint fails with UNKNOWN_SERVER_ERROR while topics of its tasks are missing.
    Without the quirk: its response lists no partitions of these topics for endpoints."""

    streams_first_join_forgets: bool = _quirk()
    """Unrecorded data of a group's first heartbeat is lost: the endpoint epoch, task offsets, and a request to shut
    down. Without the quirk: it is kept."""

    streams_load_forgets_counts: bool = _quirk()
    """After a partition was loaded, a streams group describes its internal topics with 0 partitions, until its next
    record is committed. Without the quirk: with the numbers derived from the topics."""

    streams_not_ready_apart: bool = _quirk()
    """ListGroups finds streams groups in the state NotReady by the filter ``not_ready`` only. Without the quirk: by the
    state name in its response, as for every other state."""

    @classmethod
    def from_release(cls) -> Quirks:
        """Return all bugs of Kafka 4.4.0."""
        return cls(**{each.name: True for each in fields(cls)})
