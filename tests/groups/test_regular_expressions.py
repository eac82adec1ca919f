"""Regular expressions for topics, with expected results from RE2/J 1.8, which Kafka's coordinator uses."""

from __future__ import annotations

import pytest

from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex

_NAMES = ("", "a", "b", "ab", "aab", "a-b", "a.b", "A", "abc", "x1", "foo", "zZ")


@pytest.mark.parametrize(
    ("regex", "matched"),
    [
        ("", {""}),
        ("a*b", {"b", "ab", "aab"}),
        ("a.b", {"aab", "a-b", "a.b"}),
        (r"a\.b", {"a.b"}),
        (r"a\Q.\Eb", {"a.b"}),
        ("(?i)a", {"a", "A"}),
        ("(?i:A)|b", {"a", "A", "b"}),
        ("[[:alpha:]]{2,3}", {"ab", "aab", "abc", "foo", "zZ"}),
        (r"\pL\d", {"x1"}),
        (r"[^\w]?", {""}),
        (r"a{,2}", set()),
        (r"(?P<first>a|ab)(?P<rest>c|b)", {"ab", "abc"}),
        (r"^a\bb?.*$", {"a", "a-b", "a.b"}),
        (r"\x61|\142", {"a", "b"}),
        (r"a|\é|[\Ω]", {"a"}),
    ],
)
def test_what_matches(regex: str, matched: set[str]) -> None:
    matches = compile_regex(regex)
    assert {name for name in _NAMES if matches(name)} == matched


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("(", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<n>a)(?P<n>b)", "duplicate capture group name"),
        ("(?P<-n>a)", "invalid named capture"),
        (r"\1", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
    ],
)
def test_what_is_refused(regex: str, reason: str) -> None:
    with pytest.raises(InvalidRegexError) as raised:
        compile_regex(regex)
    assert str(raised.value) == reason


def test_repetitions_multiply_up_to_a_bound() -> None:
    """RE2/J accepts any product. The bound keeps the work for each character small."""
    compile_regex("(a{10}){100}")
    with pytest.raises(InvalidRegexError, match="invalid repeat count"):
        compile_regex("(a{10}){101}")


def test_a_regular_expression_that_others_take_long_for() -> None:
    # A backtracking search would try about 2^200 alternatives here.
    assert not compile_regex("(a*)*(a*)*b")("a" * 200)


@pytest.mark.parametrize(("opening", "closing"), [("(a|", ")"), ("(?:x", ")*"), ("((?:a|", ")?)")])
def test_groups_nest_up_to_the_bound(opening: str, closing: str) -> None:
    depth = 998 // opening.count("(")
    assert compile_regex(opening * depth + "b" + closing * depth)("x" * depth + "b") is (opening == "(?:x")
    with pytest.raises(InvalidRegexError, match="expression nests too deeply"):
        compile_regex(opening * 1000 + "b" + closing * 1000)
