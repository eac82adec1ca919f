"""The ACL index finds the same ACLs for each resource as a linear search."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.broker.security.acls import AclIndex, matches_resource
from kafka_msgs.enums import PatternType, ResourceType
from kafka_msgs.messages.access_control_entry_record import AccessControlEntryRecord

NAMES = st.sampled_from(["*", "a", "ab", "abc", "b", "abd", "\u00e9", "\u00e9a"])
KINDS = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
ACLS = st.builds(
    AccessControlEntryRecord,
    id=st.integers(1, 12).map(lambda number: UUID(int=number)),
    resource_type=KINDS,
    resource_name=NAMES,
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)


@given(st.lists(st.tuples(ACLS, st.booleans()), max_size=40), KINDS, NAMES)
def test_the_index_finds_what_a_look_at_all_finds(
    changes: list[tuple[AccessControlEntryRecord, bool]], kind: ResourceType, name: str
) -> None:
    index, known = AclIndex(), dict[UUID, AccessControlEntryRecord]()
    for acl, added in changes:
        if added:
            index.add(acl)
            known[acl.id] = acl
        else:
            index.remove(acl.id)
            known.pop(acl.id, None)
    expected = {acl.id for acl in known.values() if acl.resource_type == kind and matches_resource(acl, name)}
    found = [acl.id for acl in index.about(kind, name)]
    assert (set(found), len(found)) == (expected, len(expected))
