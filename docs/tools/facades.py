"""Generate the blocking public classes from the asyncio classes.

The asyncio classes are written by hand. The blocking classes are the same without ``async`` and ``await``, and with the
names in ``NAMES``. Comments in the source mark the few lines that differ:

    # blocking: CODE          this line is in the blocking class only
    CODE  # asyncio           this line is in the class for asyncio only
    # blocking doc: TEXT      after a docstring: replaces its last paragraph

``python docs/tools/facades.py`` writes the modules; ``--check`` fails if any of them is out of date.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.tools.admin_facade import async_admin

__all__ = ["FACADES", "blocking"]

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "kafka_msgs"

FACADES: Final = {
    "client/async_client.py": "client/client.py",
    "client/consumer/async_consumer.py": "client/consumer/consumer.py",
    "client/producer/async_producer.py": "client/producer/producer.py",
    "admin/async_admin.py": "admin/admin.py",
}
"""The handwritten modules, and the modules generated from them."""

NAMES: Final = {
    "AsyncClient": "Client",
    "AsyncConsumer": "Consumer",
    "AsyncDelivery": "Delivery",
    "AsyncFacade": "BlockingFacade",
    "AsyncIterator": "Iterator",
    "AsyncProducer": "Producer",
    "AsyncAdmin": "Admin",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "asynccontextmanager": "contextmanager",
    "async_client": "client",
    "async_consumer": "consumer",
    "async_producer": "producer",
}

_NAME: Final = re.compile(rf"\b({'|'.join(NAMES)})\b")
_ASYNC: Final = re.compile(r"\basync (?=def |with |for )|\bawait ")
_ONLY_ASYNCIO: Final = re.compile(r"^.*  # asyncio\n", re.MULTILINE)
_ONLY_BLOCKING: Final = re.compile(r"^( *)# blocking:(?: |$)", re.MULTILINE)
_DOC: Final = re.compile(
    r'\n\n(?P<last>(?:(?!\n\n|""").)*)\n(?P<indent> *)"""\n\n(?P<text>(?: *# blocking doc: [^\n]*\n)+)', re.DOTALL
)
_DOC_LINE: Final = re.compile(r"^ *# blocking doc: ", re.MULTILINE)
_HEADER: Final = '"""``{name}``, which blocks. Generated from ``{source}`` by docs/tools/facades.py: do not edit it."""'
_MODULE_DOCSTRING: Final = re.compile(r'\A""".*?"""', re.DOTALL)


def blocking(source: str, module: str) -> str:
    """Return the source of the blocking module for the source of an asyncio module."""
    text = _ONLY_ASYNCIO.sub("", source)
    text = _DOC.sub(_other_paragraph, text)
    text = _ONLY_BLOCKING.sub(r"\1", text)
    text = _NAME.sub(lambda found: NAMES[found[0]], _ASYNC.sub("", text))
    (name,) = re.findall(r"^class (\w+)", text, re.MULTILINE)
    text = _MODULE_DOCSTRING.sub(_HEADER.format(name=name, source=module), text)
    return _formatted(text)


def _other_paragraph(found: re.Match[str]) -> str:
    lines = _DOC_LINE.sub(found["indent"], found["text"])
    return f'\n\n{lines}{found["indent"]}"""\n'


def _formatted(text: str) -> str:
    for command in (
        ["check", "--fix", "--quiet", "--select", "I,F401", "--stdin-filename", "facade.py", "-"],
        ["format", "-"],
    ):
        ruff = [str(Path(sys.executable).with_name("ruff")), *command]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def modules() -> dict[str, str]:
    """Return the sources of all generated modules."""
    admin = _formatted(async_admin(PACKAGE / "admin"))
    made = {"admin/async_admin.py": admin}
    for source, target in FACADES.items():
        made[target] = blocking(made.get(source) or (PACKAGE / source).read_text(), Path(source).name)
    return made


def main(arguments: list[str]) -> int:
    """Write the modules, or check them. Return the exit status."""
    stale = []
    for target, text in modules().items():
        path = PACKAGE / target
        if path.exists() and path.read_text() == text:
            continue
        stale.append(target)
        if "--check" not in arguments:
            path.write_text(text)
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run python docs/tools/facades.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
