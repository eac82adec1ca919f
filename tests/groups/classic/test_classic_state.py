"""The states of classic groups and their valid transitions."""

from __future__ import annotations

from itertools import product

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import CAN_REBALANCE, VALID_PREVIOUS_STATES, ClassicGroupState


@pytest.mark.parametrize(("before", "after"), list(product(ClassicGroupState, repeat=2)))
def test_a_group_moves_only_as_the_table_says(before: ClassicGroupState, after: ClassicGroupState) -> None:
    live = LiveGroup(None)
    live.state = before

    if before in VALID_PREVIOUS_STATES[after]:
        live.transition_to(after, 5)
        assert (live.previous, live.state, live.since) == (before, after, 5)
    else:
        with pytest.raises(GroupError) as raised:
            live.transition_to(after, 5)
        assert raised.value.error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert live.state is before


def test_each_state_is_reached_and_all_but_the_last_are_left() -> None:
    assert set(VALID_PREVIOUS_STATES) == set(ClassicGroupState)
    left = {
        state
        for after, previous in VALID_PREVIOUS_STATES.items()
        if after is not ClassicGroupState.DEAD
        for state in previous
    }
    assert left == set(ClassicGroupState) - {ClassicGroupState.DEAD}
    assert ClassicGroupState.PREPARING_REBALANCE not in CAN_REBALANCE
