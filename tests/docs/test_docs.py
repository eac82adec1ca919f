"""The documentation is correct: examples run and print the output on the pages, and links resolve."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
from pyarrow import fs

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.cli.command_group import command as messages_command
from kafka_msgs.samples import write_sample
from kafka_msgs_generator.cli import command as generator_command
from tests.support.cluster_topics import wait_for_topics
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.markdown_pages import ROOT, Block, anchors, blocks, code_spans, links, pages
from tests.support.page_runner import TARGETS, run_block, run_page
from tests.support.s3_server import S3Server, s3_server

PAGES = {str(page.relative_to(ROOT)): page for page in pages()}
GROUPS = {"kafka-msgs": messages_command, "kafka-msgs-generator": generator_command}

_BROKER: Final = "localhost:9092"
"""The broker address on the pages."""
_BUCKETS: Final = "localhost:9000"
"""The S3 server on the pages; its bucket ``backup`` contains a log directory, ``kafka-logs``."""
_BUILT: Final = {
    ROOT / "docs" / folder: {
        f"{up}messages/{name}.md" for name in ("index", "by-key", "by-error", "by-kip", "by-release")
    }
    for folder, up in ((".", ""), ("reference", "../"), ("tutorial", "../"), ("how-to", "../"))
}
"""Links to pages that the site adds, by the folder of the page."""
_README_WORDS: Final = 900


@pytest.fixture
def _empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a new directory on Python's import path; unload the imported modules at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def buckets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A loopback server for the S3 protocol, with the keys on the pages."""
    sample = tmp_path_factory.mktemp("sample")
    write_sample(sample)
    with s3_server() as server:
        store = server.store()
        store.create_dir("backup")
        fs.copy_files(str(sample), "backup/kafka-logs", fs.LocalFileSystem(), store)
        yield server


def _runnable(needed: str | None = None) -> Iterator[Any]:
    """Yield the names of the runnable pages that need this address, or no address.

    Examples that start Spark need Java; examples that import a release need Maven, as the oracle does.
    """
    for name, page in PAGES.items():
        text = "".join(block.text for block in blocks(page))
        if next((address for address in (_BROKER, _BUCKETS) if address in text), None) == needed:
            on_spark = any(re.search(r"pyspark|kafka-msgs pipeline", block.text) for block in blocks(page))
            marks = [pytest.mark.spark] if on_spark else []
            yield pytest.param(name, marks=[pytest.mark.oracle] if "import --release" in text else marks)


@pytest.mark.usefixtures("_empty_directory")
@pytest.mark.parametrize("name", tuple(_runnable()))
def test_the_examples_of_a_page_run_and_print_what_it_shows(name: str) -> None:
    """The examples run from top to bottom, in an empty directory, as for a reader."""
    run_page(PAGES[name])


@pytest.mark.usefixtures("_empty_directory")
@pytest.mark.parametrize("name", tuple(_runnable(_BROKER)))
def test_the_examples_of_a_page_run_with_real_brokers(
    name: str, kafka_cluster: ClusterAddresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker of the test cluster replaces the address on the pages.

    Readers have one broker, which has a topic's metadata once it has created it. Here all three brokers need the
    metadata before the page continues.
    """
    create = Admin.create_topics

    def known_everywhere(admin: Admin, topics: Iterable[NewTopic], **options: Any) -> Any:
        made = create(admin, [*topics], **options)
        wait_for_topics(kafka_cluster, made.ok)
        return made

    monkeypatch.setattr(Admin, "create_topics", known_everywhere)
    run_page(PAGES[name], _BROKER, kafka_cluster.bootstrap_servers.split(",")[0])


@pytest.mark.usefixtures("_empty_directory")
@pytest.mark.parametrize("name", tuple(_runnable(_BUCKETS)))
def test_the_examples_of_a_page_run_with_a_bucket(name: str, buckets: S3Server) -> None:
    """The server of the test replaces the address on the pages."""
    run_page(PAGES[name], _BUCKETS, buckets.endpoint)
    assert buckets.sent
    assert not buckets.refused


@pytest.mark.parametrize("name", PAGES)
def test_the_links_of_a_page_lead_somewhere(name: str) -> None:
    """Every relative link names a file of the repository, and every fragment a heading in it."""
    page = PAGES[name]
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, fragment = link.partition("#")
        if path in _BUILT.get(page.parent, ()):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name} links to {link}"
        assert target.is_relative_to(ROOT), f"{name} links outside the repository: {link}"
        assert not fragment or fragment in anchors(target), f"{name} links to {link}, but there is no such heading"


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_in_sentences_exist(name: str) -> None:
    """Blocks are run; commands in sentences must have a valid name, subcommand and options."""
    for words in map(str.split, code_spans(PAGES[name])):
        if words[0] == "make" and len(words) > 1:
            assert words[1] in TARGETS, f"{name} speaks of {' '.join(words)}"
        group = GROUPS.get(words[0].removeprefix(".venv/bin/"))
        if group is None or len(words) == 1 or words[1] == "--help":
            continue
        command: click.Command | None = group
        for word in words[1:]:
            if not isinstance(command, click.Group) or word.startswith("-"):
                break
            command = command.get_command(click.Context(command), word)
        assert command is not None, f"{name} speaks of {' '.join(words)}"
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words[2:] if word.startswith("--")} <= known, f"{name} speaks of {' '.join(words)}"


@pytest.mark.parametrize(
    "block",
    [
        Block(1, "python", {}, ">>> 1 + 1\n3\n"),
        Block(1, "python", {}, "assert False\n"),
        Block(1, "console", {}, "$ python -c 'print(1)'\n2\n"),
        Block(1, "console", {}, "$ python -c 'raise SystemExit(1)'\n"),
        Block(1, "console", {"fails": ""}, "$ python -c 'print(1)'\n"),
        Block(1, "console", {}, "$ rm -r something\n"),
        Block(1, "console", {}, "$ make nothing-of-this-name\n"),
    ],
    ids=lambda block: block.text.strip().replace("\n", " / "),
)
def test_an_example_that_is_wrong_is_noticed(block: Block) -> None:
    with pytest.raises(AssertionError):
        run_block("page", block, {})


def test_every_page_is_reachable_from_the_readme() -> None:
    """Readers cannot find a page without links to it."""
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in found:
            continue
        found.add(page)
        targets = ((page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link)
        waiting += [target for target in targets if target.suffix == ".md" and target.is_file()]
    assert set(PAGES.values()) <= found


def test_the_readme_is_short() -> None:
    text = re.sub(r"<!--.*?-->|\]\([^)]*\)", "", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert sum(any(map(str.isalnum, word)) for word in text.split()) <= _README_WORDS
