"""The check of the repository's English notices its phrases and spellings, in prose alone."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.support.docs_tools import load_tool


@pytest.fixture(scope="module")
def english() -> ModuleType:
    """The script that checks the English."""
    return load_tool("english")


@pytest.mark.parametrize(
    "line",
    [
        "What follows the last step is left out.",
        "The header says it.",
        "Keys of requests are api keys; those of records are types.",
        "The group has not begun.",
        "Where a compiler exists, the core is built.",
        "A process of its own runs it.",
        "It takes three times as long.",
        "Let clients retry.",
        "Nothing is lost.",
    ],
)
def test_each_kind_of_phrase_is_found(english: ModuleType, line: str) -> None:
    assert english.phrases_in(line)


@pytest.mark.parametrize("line", ["What is a group?", "The header contains the version.", "The client retries."])
def test_other_sentences_pass(english: ModuleType, line: str) -> None:
    assert not english.phrases_in(line)


def test_prose_is_text_docstrings_comments_and_the_glossary(english: ModuleType) -> None:
    assert list(english.prose_of("a.md", "One `code` word.\n\n```\nNothing.\n```\n")) == [(1, "One X word."), (2, "")]
    assert list(english.prose_of("a.py", '"""Doc."""\n\nx = "text"  # Comment.\n')) == [(1, "Doc."), (3, "Comment.")]
    assert list(english.prose_of("a.c", "/* Why. */\nint x;\n")) == [(1, "/* Why. */")]
    assert list(english.prose_of("a.toml", '[Message]\nfield = "Meaning."\n')) == [(2, "Meaning.")]


def test_the_repository_passes(english: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert english.main([]) == 0, capsys.readouterr().out


def test_too_many_phrases_or_another_spelling_fail(
    english: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(english, "LIMIT", 0)
    assert english.main([]) == 1
    monkeypatch.undo()
    monkeypatch.setattr(english, "prose_of", lambda path, text: [(1, "the behavior of it")])
    assert english.main([]) == 1
    assert "other spelling: behavior" in capsys.readouterr().out
