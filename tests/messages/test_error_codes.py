"""Error codes, those that the release names and those that it does not."""

from __future__ import annotations

import copy
import pickle

import pytest

from kafka_msgs import ErrorCode


@pytest.mark.parametrize(
    ("number", "name"), [(999, "UNKNOWN_999"), (32767, "UNKNOWN_32767"), (-32768, "UNKNOWN_MINUS_32768")]
)
def test_a_number_that_the_release_does_not_name_is_an_unknown_error(number: int, name: str) -> None:
    error = ErrorCode(number)
    assert isinstance(error, ErrorCode)
    assert (error, error.value, error.name) == (number, number, name)
    assert (error.known, error.retriable) == (False, False)
    assert repr(error) == f"<ErrorCode.{name}: {number}>"
    assert error == ErrorCode(number)
    assert hash(error) == hash(number)
    assert pickle.loads(pickle.dumps(error)) == copy.deepcopy(error) == error
    assert type(pickle.loads(pickle.dumps(error))) is ErrorCode
    assert ErrorCode.from_code(number) is None


def test_nothing_remembers_an_unknown_error() -> None:
    before = (len(ErrorCode), len(ErrorCode._value2member_map_), set(dir(ErrorCode)))
    for number in range(1000, 3000):
        ErrorCode(number)
    assert (len(ErrorCode), len(ErrorCode._value2member_map_), set(dir(ErrorCode))) == before
    assert ErrorCode(1000) is not ErrorCode(1000)
    assert 1000 not in list(ErrorCode)


@pytest.mark.parametrize("value", [2**15, -(2**15) - 1, "NONE", 1.5, None])
def test_what_is_not_an_int16_is_not_an_error_code(value: object) -> None:
    with pytest.raises(ValueError, match="is not a valid ErrorCode"):
        ErrorCode(value)  # type: ignore[arg-type]


def test_a_number_that_the_release_names_is_that_error() -> None:
    assert ErrorCode(16) is ErrorCode.NOT_COORDINATOR is ErrorCode.from_code(16)
    assert ErrorCode.NOT_COORDINATOR.known
    assert ErrorCode.NOT_COORDINATOR.retriable
    assert not ErrorCode.GROUP_AUTHORIZATION_FAILED.retriable
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
