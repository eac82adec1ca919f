"""Check the English of the repository: phrases that need decoding, and the spelling of words with two forms.

    python docs/tools/english.py [--list]

Prose is the text of Markdown pages outside code, the docstrings and comments of Python, the comments of C, and the
glossary. The exit status is 1 if there are more than ``LIMIT`` phrases per 1,000 words, or a word with the other
spelling: British, with -ize. ``--list`` prints each phrase.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

__all__ = ["LIMIT", "PHRASES", "SPELLING", "main", "phrases_in", "prose_of"]

ROOT: Final = Path(__file__).resolve().parents[2]
LIMIT: Final = 0.6

PHRASES: Final[Mapping[str, str]] = {
    "name the thing in place of a clause": r"(?:^|[.:;(] ?)(?:What|Who|Whoever|Whose) [a-z`]+ (?!.*\?)"
    r"|\bof what\b|\bwhoever\b",
    "a text contains, lists or reports": r"\b(?:page|table|field|file|header|report|column|section|it)"
    r" (?:says|said|tells|told|knows)\b",
    "repeat the noun": r"\b(?:that|those) of\b|\bof others\b|\b(?:ours|theirs)\b|\bthe (?:other|rest)[.,;:]",
    "use a verb, or 'exists'": r"\b(?:has|have) not\b(?! been)|\bare (?:not )?there[.,;]",
    "use if or when": r"(?:^|[,;:] )[Ww]here (?:there|it|a|an|the|no|this|they|one|many|all)\b",
    "a false friend": r"\b(?:beside|anew|at hand|for ever|by chance|from nothing|by halves|of its own|as a whole|kin)\b"
    r"|, too[.;,]",
    "state the ratio as N times faster": r"\btimes as (?:long|fast|many|much)\b"
    r"|\btakes? (?:a|two) (?:half|thirds?|fifths?|seventh|tenth)\b",
    "begin with the verb of the change": r"^(?:Let|Say|Tell) ",
    "state what happens": r"(?:^|[.:;] )(?:Nothing|Nobody|No one|None of) ",
}
"""Patterns of phrases, by the remedy."""

SPELLING: Final[Mapping[str, str]] = {
    "behavior": "behaviour",
    "canceled": "cancelled",
    "center": "centre",
    "colored": "coloured",
    "favor": "favour",
    "honor": "honour",
    "initialise": "initialize",
    "labeled": "labelled",
    "modeled": "modelled",
    "neighbor": "neighbour",
    "normalise": "normalize",
    "optimise": "optimize",
    "organise": "organize",
    "recognise": "recognize",
    "serialise": "serialize",
    "summarise": "summarize",
    "synchronise": "synchronize",
    "unrecognised": "unrecognized",
}
"""The spelling of the repository, by the other one; words that begin with it count as well."""

_COMPILED: Final = {remedy: re.compile(pattern) for remedy, pattern in PHRASES.items()}
_OTHER_SPELLING: Final = re.compile(rf"\b(?:{'|'.join(SPELLING)})\w*", re.IGNORECASE)
_GLOSSARY: Final = re.compile(r'^\S+ = "(.*)"$')
_CODE: Final = re.compile(r"``[^`]*``|`[^`]*`")
_NOT_OURS: Final = re.compile(
    r"^(?:kafka_msgs/(?:messages|drafts)|tests/(?:recordings|vectors/messages))/|^docs/tools/english\.py$"
)


def main(arguments: Sequence[str]) -> int:
    """Check every file of the repository; return the exit status."""
    words, phrases, spellings = 0, [], []
    for path in _files():
        for number, line in prose_of(path, (ROOT / path).read_text(encoding="utf-8")):
            words += len(line.split())
            phrases += [f"{path}:{number}: {remedy}: {line[:100]}" for remedy in phrases_in(line)]
            spellings += [f"{path}:{number}: other spelling: {word}" for word in _OTHER_SPELLING.findall(line)]
    rate = 1000 * len(phrases) / words
    if "--list" in arguments or rate > LIMIT:
        print(*phrases, sep="\n")
    print(*spellings, f"{len(phrases)} phrases in {words:,} words: {rate:.2f} per 1,000, at most {LIMIT}", sep="\n")
    return int(rate > LIMIT or bool(spellings))


def phrases_in(line: str) -> list[str]:
    """Return the remedies for the phrases in a line."""
    return [remedy for remedy, pattern in _COMPILED.items() if pattern.search(line)]


def _files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.c", "*.h", "message_defs/glossary/*.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.splitlines() if not _NOT_OURS.search(path) and (ROOT / path).exists()]


def prose_of(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of prose in a file with their numbers, without inline code."""
    lines = _PARTS[Path(path).suffix](text)
    yield from ((number, _CODE.sub("X", line).strip()) for number, line in sorted(lines.items()))


def _markdown(text: str) -> dict[int, str]:
    found, fenced = {}, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            found[number] = line
    return found


def _python(text: str) -> dict[int, str]:
    lines = text.splitlines()
    found = {number: line.split("# ", 1)[1] for number, line in enumerate(lines, 1) if re.search(r"(?:^|\s)# ", line)}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    found[number] = lines[number - 1].strip().strip('"')
    return found


def _c(text: str) -> dict[int, str]:
    lines = enumerate(text.splitlines(), 1)
    return {number: line for number, line in lines if line.lstrip().startswith(("/*", "*", "//"))}


def _toml(text: str) -> dict[int, str]:
    lines = enumerate(text.splitlines(), 1)
    return {number: found[1] for number, line in lines if (found := _GLOSSARY.match(line)) is not None}


_PARTS: Final = {".md": _markdown, ".py": _python, ".c": _c, ".h": _c, ".toml": _toml}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
