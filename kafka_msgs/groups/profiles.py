"""What a coordinator does where the document and the release differ, and which bugs of the release it has.

There is one code for both. Each difference is a field of ``Profile``, and its docstring has both behaviours and the
reason. ``SHIPPED`` is Kafka 4.4.0, which real clients talk to. ``KIP_1071_PAGE`` is the document (KIP-1071) as a
superset. A handler asks for a field, never for a profile. A bug of the release is a field of ``Quirks``.
"""

from __future__ import annotations

from typing import Final

from attrs import field, fields, frozen

__all__ = ["KIP_1071_PAGE", "SHIPPED", "Profile", "Quirks", "StreamsRules"]


@frozen(kw_only=True)
class StreamsRules:
    """The choices for streams groups. Each is False for ``shipped`` and True for ``page``."""

    source_patterns: bool = False
    """Shipped: a pattern of source topics is refused with INVALID_REQUEST. Page: patterns in RE2 syntax are resolved
    against the topics, and a bad one gives STREAMS_INVALID_TOPOLOGY. The release has not built it yet."""

    generates_member_ids: bool = False
    """Shipped: an empty member id is refused. Page: the coordinator gives an id to a member that joins without one.
    The document says both; we take what is in its request validation, and clients that make ids are served alike."""

    complete_joins: bool = False
    """Shipped: a first heartbeat may have a rebalance timeout of 0, and a topology without subtopologies. Page: the
    timeout must be larger than 0, and an empty topology gives INVALID_REQUEST, because the schema calls it wrong."""

    disjoint_roles: bool = False
    """Shipped: a task may be in two roles of one heartbeat. Page: INVALID_REQUEST."""

    checks_topics: bool = False
    """Shipped: an internal topic may have several roles, and what cannot be resolved gives STREAMS_INVALID_TOPOLOGY
    when topics are configured. Page: all rules for topics of a topology are checked before."""

    topology_updates: bool = False
    """Shipped: an older topology epoch joins and gets status 0, another topology gives INVALID_REQUEST. Page: the
    epoch of a member that joins is compared with the group's. Older gives STREAMS_TOPOLOGY_FENCED, the next one updates
    the topology, and all else that differs gives STREAMS_INVALID_TOPOLOGY_EPOCH. Topologies that differ only in order
    are the same. The release has not built updates yet."""

    tolerates_old_topologies: bool = False
    """Shipped: a task that the present topology does not have gives INVALID_REQUEST. Page: a member with an older
    topology epoch is not checked, since a rolling upgrade would break; it keeps tasks and gets no new ones."""

    fencing_removes_member: bool = False
    """Shipped: a heartbeat at a wrong epoch is refused, and the member stays. Page: the member is removed."""

    bumps_for_assignment_only: bool = False
    """Shipped: each change of what a dynamic member reports increases the group epoch. Page: only a change of its
    topology epoch, rack, client tags or process does."""

    reports_status_changes_only: bool = False
    """Shipped: each answer has the status list. Page: it is null if the member got the same list before."""

    shutdown_on_leave: bool = False
    """Shipped: the shutdown flag counts in each heartbeat. Page: only in the one that leaves; else it is ignored."""

    assigns_without_delay: bool = False
    """Shipped: the first assignment of a group and later ones are delayed (status 5). Page: nothing is delayed, and
    there is no such status."""

    chooses_assignor: bool = False
    """Shipped: the first assignor of the coordinator, sticky, if the group names none. Page: highly_available if a
    subtopology has state, else sticky, and a group may name each of them."""

    limits_topic_creation: bool = False
    """Shipped: each heartbeat asks for missing internal topics, and the broker limits attempts. Page: one attempt at
    a time, with a growing back-off, none without the permission, and the status detail tells about it."""

    ignores_internal_topic_changes: bool = False
    """Shipped: a change of any topic of the topology increases the group epoch. Page: a change of a topic that is
    read. Changelog topics still count for whether the group is ready."""

    online_migration: bool = False
    """Shipped: only an empty group changes between the classic and the streams protocol. Page: a member of the streams
    protocol turns a classic group of Streams applications into a streams group, whose other members go on with the
    classic protocol; when only these are left, the group is a classic one again. They must send user data of version
    12, which has what an assignment needs. The release has not built it."""

    shares_offsets: bool = False
    """Shipped: each member has the task offsets that it reported. Page: members of a process have the same state on
    disk, so the offset of a task is the one that any of them reported last."""

    requires_group_version: bool = False
    """Shipped: the protocol needs level 1 of the feature ``streams.version``. Page: level 2 of ``group.version``, the
    one after the level of KIP-848. The release gave the protocol a feature of its own."""

    stricter_permissions: bool = False
    """Shipped: a heartbeat needs DESCRIBE on the topics of its topology, and a description DESCRIBE on the group. Page:
    DESCRIBE_CONFIGS on the topics, and READ on the group."""

    ends_caught_up_warmups: bool = False
    """Shipped: no warm-up task is ever assigned, so none catches up. Page: the group epoch increases when a member
    reports that a warm-up task has caught up, so that the next assignment gives the task another role."""


@frozen(kw_only=True)
class Profile:
    """The choices of a coordinator."""

    name: str
    """The name of the profile in documents and tests."""

    streams: StreamsRules = StreamsRules()
    """The choices for streams groups."""


SHIPPED: Final = Profile(name="shipped")
"""What Kafka 4.4.0 does."""

KIP_1071_PAGE: Final = Profile(name="page", streams=StreamsRules(**{each.name: True for each in fields(StreamsRules)}))
"""What the document says."""


def _quirk() -> bool:
    """A field of ``Quirks``: a bug that is off by default."""
    made: bool = field(default=False)
    return made


@frozen(kw_only=True)
class Quirks:
    """Bugs of Kafka 4.4.0. Each is off, except in a comparison with Kafka itself.

    ``from_release`` switches all on.
    """

    commit_makes_group: bool = _quirk()
    """A commit from outside a group makes the group before it looks at the offsets.

    If no offset is stored, no record tells of the group. It is there until the partition is loaded again.
    """

    consumer_assignors_draw: bool = _quirk()
    """Members of a consumer group ask for two assignors equally often. The coordinator decides by the order of a table,
    and by another table's before the request. So heartbeats of one member may increase the group epoch each time, and
    the group never becomes Stable. Without the quirk: the assignor that ``group.consumer.assignors`` has first."""

    failed_append_stops_timers: bool = _quirk()
    """A timer that a step cancelled stays cancelled when the append of the step fails. A member that left, or that gave
    partitions up, is in the group as before, but nothing removes it if it falls silent. Its group may never become
    Stable. Without the quirk: the timer is back, at its moment."""

    consumer_regex_matches_nothing: bool = _quirk()
    """A member of a consumer group changes its regular expression to one that matches no topic. The group epoch stays.
    So the partitions that the member gives up have no owner until something else changes. Without the quirk: the first
    topics of a regular expression increase the group epoch, also if there are none."""

    failed_append_repeats: bool = _quirk()
    """What a failed append would have changed is listed more than once by reads, until the next commit.

    A snapshot of Kafka's tables keeps the entries that it gave back. Without the quirk: each entry is listed once.
    """

    fetch_needs_member_id: bool = _quirk()
    """OffsetFetch with a member epoch and without a member id gives UNKNOWN_SERVER_ERROR. Without the quirk:
    UNKNOWN_MEMBER_ID."""

    versions_unread: bool = _quirk()
    """The coordinator does not look at what old versions of JoinGroup and LeaveGroup lack: a broker of Kafka does that
    around it, and the comparison is with the coordinator alone. Without the quirk: each version gets its answer."""

    rejoin_counts_twice: bool = _quirk()
    """A member of a consumer group that takes over the instance id of another member counts twice in that heartbeat:
    what it subscribed to, owned and was to get before counts as that of one member more. Without the quirk: once."""

    late_join_forgets_group: bool = _quirk()
    """JoinGroup with a member id, to an empty consumer or streams group, is refused, and the group is gone until the
    partition is loaded again. Without the quirk: the group stays as it is."""

    timers_outlive_leadership: bool = _quirk()
    """A partition is given up while a record is not committed. What follows the failure schedules timers, and they
    stay. They expire later without an effect. Without the quirk: they are cancelled."""

    offset_metadata_in_characters: bool = _quirk()
    """``offset.metadata.max.bytes`` limits the UTF-16 units of the metadata of an offset. Without the quirk: its bytes
    in UTF-8, as the setting says."""

    streams_unchecked_input: bool = _quirk()
    """A copartition index out of range, a name that is listed twice, and a negative topology epoch give
    UNKNOWN_SERVER_ERROR. Without the quirk: STREAMS_INVALID_TOPOLOGY or INVALID_REQUEST."""

    streams_join_relabels_first: bool = _quirk()
    """A static member that may not join takes over the kept assignment of the member that holds its instance id, which
    then loses its tasks for a while. Without the quirk: the kept assignment moves only with the instance id."""

    streams_endpoint_needs_topology: bool = _quirk()
    """A heartbeat of a member with an endpoint fails with UNKNOWN_SERVER_ERROR while topics of its tasks are missing.
    Without the quirk: its answer has no partitions of these for endpoints."""

    streams_first_join_forgets: bool = _quirk()
    """What is not recorded of the first heartbeat of a group is lost: the endpoint epoch, task offsets, and a request
    to shut down. Without the quirk: it is kept."""

    streams_load_forgets_counts: bool = _quirk()
    """After a partition was loaded, a streams group describes its internal topics with 0 partitions, until its next
    record is committed. Without the quirk: with the numbers that follow from the topics."""

    streams_not_ready_apart: bool = _quirk()
    """ListGroups finds streams groups in the state NotReady by the filter ``not_ready`` only. Without the quirk: by the
    name that it answers, as in every other state."""

    @classmethod
    def from_release(cls) -> Quirks:
        """Return all bugs of Kafka 4.4.0."""
        return cls(**{each.name: True for each in fields(cls)})
