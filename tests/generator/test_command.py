"""The command: its files, its output, and its exit status."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafka_msgs_generator import cli, importer
from kafka_msgs_generator.evolution_rules import EVOLUTION_RULES
from kafka_msgs_generator.importer import ImportReport
from kafka_msgs_generator.rules import RULES

KEYS = '"apiKey": 1000, "validVersions": "0-1", "flexibleVersions": "1+"'
PING = (
    f'{{"name": "PingRequest", "type": "request", {KEYS}, "fields": ['
    '{"name": "Hops", "type": "[]Hop", "versions": "0+", "fields": ['
    '{"name": "Host", "type": "string", "versions": "0+"}, {"name": "Port", "type": "uint16", "versions": "1+"}]}]}'
)
PONG = f'{{"name": "PingResponse", "type": "response", {KEYS}}}'


def run(*arguments: str | Path) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(cli.command, [str(argument) for argument in arguments])


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    """A directory with a request and its response."""
    directory = tmp_path / "defs"
    directory.mkdir()
    (directory / "PingRequest.json").write_text(PING)
    (directory / "PingResponse.json").write_text(PONG)
    return directory


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The output directory of a package importable as ``my_messages``."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "my_messages"
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_messages"]:
        del sys.modules[name]


def test_anybodys_definitions_become_a_package_of_their_own(definitions: Path, package: Path) -> None:
    result = run("compile", definitions, "--out", package)
    assert (result.exit_code, result.output) == (0, f"{package}: 4 files written, 0 removed\n")
    messages = importlib.import_module("my_messages")
    assert messages.__all__ == ["PingRequest", "PingResponse"]
    assert "my_messages.ping_request" not in sys.modules
    hop = importlib.import_module("my_messages.ping_request").Hop
    value = messages.PingRequest(hops=(hop(host="a", port=9092), hop(host="b")))
    for version in (0, 1):
        sent = value if version else messages.PingRequest(hops=(hop(host="a"), hop(host="b")))
        assert messages.PingRequest.decode(sent.encode(version=version), version=version) == sent
    assert value.encode(version=1).hex() == "03" + "0261" + "2384" + "00" + "0262" + "0000" + "00" + "00"
    index = importlib.import_module("my_messages._index")
    assert index.API_KEYS == {("defs", "request", 1000): "PingRequest", ("defs", "response", 1000): "PingResponse"}
    assert index.RELEASE is None


def test_a_second_run_changes_nothing_and_check_agrees(definitions: Path, package: Path) -> None:
    run("compile", definitions, "--out", package)
    assert run("compile", definitions, "--out", package).output == f"{package}: 0 files written, 0 removed\n"
    result = run("compile", definitions, "--out", package, "--check")
    assert (result.exit_code, result.output) == (0, "the generated files are up to date\n")


def test_check_lists_drift_and_writes_nothing(definitions: Path, package: Path) -> None:
    run("compile", definitions, "--out", package)
    (definitions / "Extra.json").write_text(PONG.replace("PingResponse", "Extra").replace("response", "data"))
    (definitions / "PingRequest.json").write_text(PING.replace("uint16", "int32"))
    before = {path: path.read_bytes() for path in package.iterdir() if path.is_file()}
    result = run("compile", definitions, "--out", package, "--check")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{package}: changed  __init__.py (+2 -1 lines)",
        f"{package}: changed  _index.py (+3 -3 lines)",
        f"{package}: missing  extra.py",
        f"{package}: changed  ping_request.py (+1 -1 lines)",
    ]
    assert result.stderr == "Error: the generated files do not match the definitions; generate them again\n"
    assert {path: path.read_bytes() for path in package.iterdir() if path.is_file()} == before


def test_a_definition_that_goes_takes_its_module_along(definitions: Path, package: Path) -> None:
    run("compile", definitions, "--out", package)
    (package / "mine.py").write_text("mine = True\n")
    (definitions / "PingResponse.json").unlink()
    result = run("compile", definitions, "--out", package, "--partial")
    assert result.output == f"{package}: 3 files written, 1 removed\n"
    assert {path.name for path in package.iterdir()} == {"__init__.py", "_index.py", "ping_request.py", "mine.py"}


def test_bad_definitions_are_listed_without_a_traceback(definitions: Path, package: Path) -> None:
    (definitions / "A.json").write_text('{\n  "name": }')
    (definitions / "B.json").write_text(PONG.replace("response", "Response"))
    result = run("compile", definitions, "--out", package)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0] == "Error: defs/A.json:2:11: expected a value, found '}' [V3]"
    assert lines[1].startswith("Error: defs/B.json:1:34: PingResponse: type is 'Response', not one of request,")
    assert len(lines) == 2
    assert not package.exists()


def test_a_lone_request_needs_to_be_called_partial(definitions: Path, package: Path) -> None:
    result = run("compile", definitions / "PingRequest.json", "--out", package)
    assert result.exit_code == 1
    assert "no response has the key 1000 of this request [V70]" in result.stderr
    assert run("compile", definitions / "PingRequest.json", "--out", package, "--partial").exit_code == 0


def test_a_directory_without_definitions_is_an_error(tmp_path: Path, package: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("compile", tmp_path / "empty", "--out", package)
    assert result.exit_code == 1
    assert "no definitions (*.json) here" in result.stderr


def test_a_foreign_file_in_the_way_is_an_error(definitions: Path, package: Path) -> None:
    package.mkdir()
    (package / "__init__.py").write_text("mine = True\n")
    result = run("compile", definitions, "--out", package)
    assert result.exit_code == 1
    assert "__init__.py was not written by the generator; move it away first" in result.stderr
    assert [path.name for path in package.iterdir()] == ["__init__.py"]


def test_a_page_compiles_with_its_placeholders_bound_by_file(definitions: Path, package: Path) -> None:
    (definitions / "PingRequest.json").write_text(PING.replace("1000", "TBD"))
    (definitions / "PingResponse.json").write_text(PONG.replace("1000", "TBD").replace(", ", ",\N{NO-BREAK SPACE}"))
    page = ("compile", definitions, "--out", package)
    assert "TBD is not JSON; bind it with --lenient --bind TBD=VALUE" in run(*page).stderr
    assert "TBD is not bound" in run(*page, "--lenient", "--bind", "*Request:TBD=7").stderr
    result = run(*page, "--lenient", "--bind", "TBD=7", "--bind", "PingResponse:TBD=8")
    assert "no response has the key 7" in result.stderr
    assert run(*page, "--lenient", "--bind", "TBD=7").exit_code == 0
    assert importlib.import_module("my_messages").PingResponse.INFO.api_key == 7


def test_documentation_comes_from_a_glossary(definitions: Path, package: Path, tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "ping.toml").write_text('[PingRequest]\nmessage = "Asks."\n"hops.port" = "A port."\n')
    assert run("compile", definitions, "--out", package, "--glossary", tmp_path / "words").exit_code == 0
    text = (package / "ping_request.py").read_text()
    assert '    """Asks.\n\n    API key 1000, versions 0-1, flexible from version 1.\n    """' in text
    assert '    """A port. In version 1 only."""' in text


def test_about_texts_of_a_definition_become_docstrings(package: Path, tmp_path: Path) -> None:
    definition = {
        "name": "Ping", "type": "data", "validVersions": "0-1", "flexibleVersions": "none",
        "about": "Asks\n  for a pong.",
        "fields": [
            {"name": "Hops", "type": "[]Hop", "versions": "1+", "about": 'Says \\ and """, \x00 and "so"'},
            {"name": "Plain", "type": "int8", "versions": "0+"},
            {"name": "Long", "type": "int8", "versions": "0+", "about": "\\\\x" * 100},
        ],
        "commonStructs": [{"name": "Hop", "versions": "1+", "about": "One hop.", "fields": [
            {"name": "Host", "type": "string", "versions": "1+", "about": "Where it goes."}]}],
    }  # fmt: skip
    (tmp_path / "Ping.json").write_text(json.dumps(definition))
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "ping.toml").write_text('[Ping]\nplain = "Ours."\n[Ping.structs.Hop]\nhost = "Our host."\n')
    assert run("compile", tmp_path / "Ping.json", "--out", package, "--glossary", tmp_path / "words").exit_code == 0
    tree = {
        node.name: node for node in ast.parse((package / "ping.py").read_text()).body if isinstance(node, ast.ClassDef)
    }
    said = {
        name: [ast.literal_eval(part.value) for part in node.body if isinstance(part, ast.Expr)]
        for name, node in tree.items()
    }
    assert said["Ping"][0].startswith("Asks for a pong.\n\n")
    assert said["Ping"][1:] == ["Says \\ and ''', and \"so\". In version 1 only.", "Ours.", "\\\\x" * 100 + "\n    "]
    assert said["Hop"][0].startswith("One hop.\n\n")
    assert said["Hop"][1:] == ["Our host."]


def test_documentation_gives_the_versions_of_a_field_once(definitions: Path, package: Path, tmp_path: Path) -> None:
    numbers = ("1+", "0", "1-2", "0-3", "2", "3+")
    fields = [f'{{"name": "F{i}", "type": "int8", "versions": "{text}"}}' for i, text in enumerate(numbers)]
    (definitions / "Frame.json").write_text(
        '{"name": "Frame", "type": "data", "validVersions": "0-3", "flexibleVersions": "none", '
        f'"fields": [{", ".join(fields)}]}}'
    )
    (tmp_path / "words").mkdir()
    entries = [f'f{i} = "A number."\n' for i in range(5)]
    (tmp_path / "words" / "frame.toml").write_text(f'[Frame]\n{"".join(entries)}f5 = "A number, from version 3."\n')
    assert run("compile", definitions, "--out", package, "--glossary", tmp_path / "words").exit_code == 0
    docs = [line.strip(' "') for line in (package / "frame.py").read_text().splitlines() if '"""A number' in line]
    assert docs == [
        "A number. From version 1.",
        "A number. In version 0 only.",
        "A number. In versions 1 to 2.",
        "A number.",
        "A number. In version 2 only.",
        "A number, from version 3.",
    ]


def test_what_the_glossary_lacks_is_listed(definitions: Path, tmp_path: Path) -> None:
    (tmp_path / "all" / "kafka").mkdir(parents=True)
    definitions.rename(tmp_path / "all" / "kafka" / "clients")
    (tmp_path / "all" / "glossary").mkdir()
    (tmp_path / "all" / "glossary" / "ping.toml").write_text('[PingRequest]\nmessage = "Asks."\nhops = "Hops."\n')
    counts = "1 of 2 messages are documented\n1 of 3 fields are documented\n"
    assert run("glossary", "--definitions", tmp_path / "all").output == counts
    assert run("glossary", "--missing", "--definitions", tmp_path / "all").output == (
        "PingRequest: hops.host (string, 0+)\nPingRequest: hops.port (uint16, 1+)\nPingResponse: message\n" + counts
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compile", "nowhere", "--out", "x"), "Path 'nowhere' does not exist"),
        (("compile", "--out", "x"), "Missing argument"),
        (("compile", "."), "Missing option '--out'"),
        (("compile", ".", "--out", "x", "--bind", "TBD=1"), "--bind needs --lenient"),
        (("compile", ".", "--out", "x", "--lenient", "--bind", "TBD"), "'TBD' does not read [FILES:]WORD=VALUE"),
        (("import",), "give either --release or --from"),
        (("import", "--release", "4.4.0", "--from", "."), "give either --release or --from"),
        (("unknown",), "No such command"),
    ],
)
def test_a_wrong_call_ends_with_status_two(arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_the_rules_are_listed_with_what_differs() -> None:
    lines = run("rules").output.splitlines()
    assert lines[0] == f"V1   {RULES['V1']}"
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [*RULES, *EVOLUTION_RULES]
    assert "     (a key that is repeated with another value is rejected; Kafka lets the last one win)" in lines


def test_the_projects_own_code_is_up_to_date() -> None:
    result = run("generate", "--check")
    assert (result.exit_code, result.stdout) == (0, "the generated files are up to date\n")


def test_generate_writes_messages_drafts_error_codes_and_the_c_header(tmp_path: Path) -> None:
    result = run("generate", "--package", tmp_path / "kafka_msgs")
    assert result.exit_code == 0
    for path in (
        "messages/offset_fetch_request.py",
        "drafts/kip_1071/_index.py",
        "error_codes.py",
        "_core/ops.h",
        "_core/layouts.h",
    ):
        assert (tmp_path / "kafka_msgs" / path).read_bytes() == (Path("kafka_msgs") / path).read_bytes()


def test_an_import_reports_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = ImportReport(
        release="9.9.9",
        counts={"clients": 2},
        kept={"raft": "9.9.8", "streams": None},
        added=("clients/New",),
        changed=(),
        removed=("clients/Old",),
        errors=137,
    )
    monkeypatch.setattr(importer, "import_release", lambda release, into: report)
    result = run("import", "--release", "9.9.9", "--into", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "clients: 2 definitions",
        "raft: not in this release; the definitions of 9.9.8 stay",
        "streams: not in this release",
        "error codes: 137",
        "added clients/New",
        "removed clients/Old",
    ]
    assert result.stderr == "fetching Kafka 9.9.9 through Maven\n"


def test_a_directory_is_imported_under_its_origin(definitions: Path, tmp_path: Path) -> None:
    result = run("import", "--from", definitions, "--origin", "mine", "--into", tmp_path / "into")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "mine: 2 definitions"
    assert (tmp_path / "into" / "kafka" / "mine" / "PingRequest.json").is_file()


def test_progress_shows_only_when_a_run_takes_long(
    definitions: Path, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("compile", definitions, "--out", package).stderr == ""
    monkeypatch.setattr(cli, "_PATIENCE", 0.0)
    result = run("compile", definitions, "--out", package)
    assert result.stderr.splitlines() == ["compiled 1 of 2 definitions", "compiled 2 of 2 definitions"]


@pytest.mark.parametrize(
    ("missing", "arguments", "package"),
    [("click", ["rules"], "click"), ("jinja2", ["generate", "--check"], "Jinja2")],
)
def test_a_missing_package_is_named_with_its_extra(missing: str, arguments: list[str], package: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['generator', *{arguments!r}];"
        "from kafka_msgs_generator.__main__ import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"PYTHONPATH": ".:generator"}
    )
    assert result.returncode == 1
    assert f"the generator needs {package}: pip install 'kafka-msgs[generator]'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_directory_is_read_with_all_below_it(definitions: Path, package: Path) -> None:
    below = definitions / "more" / "deep"
    below.mkdir(parents=True)
    (below / "Note.json").write_text(
        '{"name": "Note", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": []}'
    )
    result = run("compile", definitions, "--out", package)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (package / "note.py").is_file()
    assert (package / "ping_request.py").is_file()


def test_a_page_with_a_request_and_its_response_is_one_file(tmp_path: Path, package: Path) -> None:
    (tmp_path / "page.json").write_text(f"# Both:\n{PING}\n{PONG}")
    assert run("compile", tmp_path / "page.json", "--out", package).exit_code == 1
    result = run("compile", tmp_path / "page.json", "--out", package, "--lenient")
    assert (result.exit_code, result.stderr) == (0, "")
    assert importlib.import_module("my_messages").PingResponse.INFO.api_key == 1000


def test_a_name_that_no_file_can_have_is_refused_before_anything_is_written(definitions: Path, package: Path) -> None:
    long = "N" + "a" * 299
    (definitions / "Long.json").write_text(
        f'{{"name": "{long}", "type": "data", "validVersions": "0", "flexibleVersions": "none", "fields": []}}'
    )
    result = run("compile", definitions, "--out", package)
    assert result.exit_code == 1
    assert "is too long to name a message: its module needs a file name [V25]" in result.stderr
    assert not package.exists()
    (definitions / "Long.json").unlink()
    assert run("compile", definitions, "--out", package).exit_code == 0


def test_a_directory_that_was_left_half_written_is_finished(definitions: Path, package: Path) -> None:
    assert run("compile", definitions, "--out", package).exit_code == 0
    index = package / "_index.py"
    index.write_text(index.read_text().replace('"ping_request.py"', f'"{"x" * 300}.py"'))
    (package / "ping_request.py").unlink()
    assert run("compile", definitions, "--out", package).exit_code == 0
    assert (package / "ping_request.py").is_file()
