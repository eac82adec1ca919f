"""The states of classic groups: the table, and what it allows."""

from __future__ import annotations

from itertools import product

import pytest

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.membership import Membership
from kafka_msgs.groups.classic.states import PREVIOUS_STATES, REBALANCE_FROM, ClassicState


@pytest.mark.parametrize(("before", "after"), list(product(ClassicState, repeat=2)))
def test_a_group_moves_only_as_the_table_says(before: ClassicState, after: ClassicState) -> None:
    live = Membership(None)
    live.state = before

    if before in PREVIOUS_STATES[after]:
        live.move(after, 5)
        assert (live.previous, live.state, live.since) == (before, after, 5)
    else:
        with pytest.raises(GroupError) as raised:
            live.move(after, 5)
        assert raised.value.error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert live.state is before


def test_each_state_is_reached_and_all_but_the_last_are_left() -> None:
    assert set(PREVIOUS_STATES) == set(ClassicState)
    left = {
        state for after, previous in PREVIOUS_STATES.items() if after is not ClassicState.DEAD for state in previous
    }
    assert left == set(ClassicState) - {ClassicState.DEAD}
    assert ClassicState.PREPARING_REBALANCE not in REBALANCE_FROM
