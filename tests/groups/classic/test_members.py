"""Members of a classic group are ordered like a Java hash table, which depends on its maximum size so far."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.groups.assignors.java_hash_order import DEFAULT_CAPACITY, grown, hash_map_order
from kafka_msgs.groups.classic.members import ClassicGroupMember, MemberTable


def _member(member_id: str) -> ClassicGroupMember:
    return ClassicGroupMember(
        member_id=member_id,
        instance_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=0,
        session_timeout_ms=0,
        protocol_type="consumer",
        protocols=(),
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60).map("member-{}".format)), max_size=120))
def test_members_are_in_the_order_of_a_java_table_of_their_greatest_number(steps: list[tuple[bool, str]]) -> None:
    table, ids, peak = MemberTable(), dict[str, None](), 0
    for adds, member_id in steps:
        if adds and member_id not in ids:
            table.put(_member(member_id))
            ids[member_id] = None
        elif not adds:
            removed = table.pop(member_id)
            assert (removed is None) == (member_id not in ids)
            ids.pop(member_id, None)
        peak = max(peak, len(ids))

        assert [member.member_id for member in table] == hash_map_order(ids, capacity=grown(DEFAULT_CAPACITY, peak))
        assert len(table) == len(ids)
        assert all(member_id in table for member_id in ids)
