"""Generate the documentation tables from the code: messages, errors, rules, drafts, methods, help of commands.

    python docs/tools/tables.py [--check]

Each table is in its page between two marker comments, and only the text between them is replaced; the surrounding text
is written by hand. With ``--check`` nothing is written, and the exit status is 1 if a table is out of date.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click
from attrs import fields_dict

from kafka_msgs import errors
from kafka_msgs.admin import Admin
from kafka_msgs.analysis.lag_status import STATUS_RULES
from kafka_msgs.broker.controller.config_defs import BROKER, CLIENT_METRICS, GROUP, TOPIC, config_keys
from kafka_msgs.capture import read_recording
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.cli.command_group import command
from kafka_msgs.cli.help import EXIT_STATUSES
from kafka_msgs.client import ClientConfig, ConsumerConfig, ProducerConfig
from kafka_msgs.client.property_table import SETTINGS, Role, Setting
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Message
from kafka_msgs.message_history import message_history
from kafka_msgs.messages import ORIGINS
from kafka_msgs.redaction import ALL_KINDS, RedactKind
from kafka_msgs.redaction.field_kinds import field_kinds
from kafka_msgs.redaction.messages import becomes, redacted_messages
from kafka_msgs.report.metric_definitions import DEFINITIONS
from kafka_msgs.schema import FieldInfo, Struct, fields
from kafka_msgs.upgrade import ClientUsage, Verdict, check_upgrade, parse_release
from kafka_msgs.upgrade.release_versions import api_name
from kafka_msgs_generator.atomic_write import write_atomically
from kafka_msgs_generator.evolution_rules import EVOLUTION_DEVIATIONS, EVOLUTION_RULES
from kafka_msgs_generator.rules import DEVIATIONS, RULES

ROOT: Final = Path(__file__).resolve().parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"

BYTES_ONLY: Final = frozenset({"SubscriptionInfoData"})
"""Messages for which Kafka has no JSON converter to compare with."""

_REGION = r"(<!-- table: {name} -->\n).*?(<!-- end of table -->)"


def main(arguments: Sequence[str]) -> int:
    """Update every page, or with ``--check`` list the ones that are out of date; return the exit status."""
    stale = [path for path, text in pages() if path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            print(f"{path.relative_to(ROOT)}: a table is not up to date; run python docs/tools/tables.py")
        return bool(stale)
    for path, text in pages():
        if path in stale:
            write_atomically(path, text)
            print(f"{path.relative_to(ROOT)}: written")
    return 0


def pages() -> Iterable[tuple[Path, str]]:
    """Yield each page with tables, and its up-to-date text."""
    for page, tables in TABLES.items():
        path = (REFERENCE / page).resolve()
        text = path.read_text(encoding="utf-8")
        for name, make in tables.items():
            text = _replaced(text, name, make())
        yield path, text


def _replaced(text: str, name: str, table: str) -> str:
    replaced, count = re.subn(
        _REGION.format(name=re.escape(name)), lambda match: f"{match[1]}{table}{match[2]}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"the table {name!r} has {count} places, not one")
    return replaced


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def messages_table() -> str:
    """Return the table of every message of the release."""
    head = ("message", "origin", "kind", "key", "versions", "flexible", "deprecated", "since Kafka", "compared by")
    return markdown(head, (_message_row(cls) for cls in iter_message_classes()))


def _message_row(cls: type[Message]) -> tuple[object, ...]:
    info = cls.INFO
    key = "" if info.api_key is None else info.api_key
    flexible = info.flexible.intersect(info.versions)
    deprecated = "" if info.deprecated.empty else info.deprecated
    return (
        info.name,
        ORIGINS[info.name],
        info.kind,
        key,
        info.versions,
        flexible,
        deprecated,
        _since(cls),
        _compared(cls),
    )


def _since(cls: type[Message]) -> str:
    """Return the first release, followed by the releases of later versions and of removals."""
    history = message_history(cls)
    if history is None:
        return ""
    later = [f"{span.versions}: {span.since}" for span in history.versions if span.since != history.since]
    gone = [f"{span.versions} removed in {span.removed}" for span in history.versions if span.removed is not None]
    return ", ".join([history.since, *later, *gone])


def _compared(cls: type[Message]) -> str:
    if cls.INFO.name in BYTES_ONLY:
        return "bytes"
    return "bytes, JSON without records" if _has_records(cls) else "bytes, JSON"


def _has_records(cls: type[Struct]) -> bool:
    return any(info.type == "records" or (info.struct and _has_records(info.struct)) for info in fields(cls))


def origins_table() -> str:
    """Return the table of the numbers of messages, by origin."""
    rows = []
    for origin in sorted(set(ORIGINS.values())):
        classes = [cls for cls in iter_message_classes() if ORIGINS[cls.INFO.name] == origin]
        rows.append((origin, len(classes), _pairs(classes)))
    everything = list(iter_message_classes())
    rows.append(("**all**", len(everything), _pairs(everything)))
    return markdown(("origin", "messages", "(message, version) pairs"), rows)


def _pairs(classes: Iterable[type[Message]]) -> int:
    return sum(len(list(cls.INFO.versions)) for cls in classes)


def releases_table() -> str:
    """Return the table of the Kafka releases of the definitions, by origin."""
    source = tomllib.loads((ROOT / "message_defs" / "SOURCE.toml").read_text(encoding="utf-8"))
    rows = ((origin, facts["release"], facts["artifact"]) for origin, facts in sorted(source["origins"].items()))
    return markdown(("origin", "Apache Kafka", "read from"), rows)


def settings_table() -> str:
    """Return the table of all client properties: Kafka's name, our keywords, the unit, the default, other names."""
    head = ("Kafka's name", "keyword", "of", "unit", "default", "other names")
    return markdown(head, (_setting_row(setting) for setting in SETTINGS))


def _setting_row(setting: Setting) -> tuple[object, ...]:
    keywords: dict[str, list[Role]] = {}
    for role in CONFIGS:
        if (keyword := setting.keyword(role)) is not None:
            keywords.setdefault(_SHOWN_AS.get(keyword, keyword), []).append(role)
    shown = ", ".join(f"`{keyword}`" for keyword in keywords)
    roles = ", ".join(dict.fromkeys(role for each in keywords.values() for role in each))
    aliases = ", ".join(f"`{each}`" for each in setting.aliases)
    return f"`{setting.name}`", shown, roles, setting.unit.name, _defaults(setting), aliases


def _defaults(setting: Setting) -> str:
    """Return the default of each keyword, in the unit of the property."""
    found = []
    for role, cls in CONFIGS.items():
        field = fields_dict(cls).get(setting.keyword(role) or "")
        if field is not None and setting.unit.name != "security":
            default = getattr(cls(**REQUIRED.get(role, {})), field.name) if field.name != "bootstrap_servers" else ""
            factor = {"ms": 1000, "KB": 1 / 1024}.get(setting.unit.name, 1)
            if isinstance(default, int | float) and not isinstance(default, bool | Enum):
                found.append(f"{default * factor:,.0f}")
            else:
                found.append(_shown_default(default))
    return ", ".join(dict.fromkeys(filter(None, found)))


def _shown_default(default: object) -> str:
    if isinstance(default, Enum):
        return default.name.lower()
    if isinstance(default, bool):
        return str(default).lower()
    return ", ".join(default) if isinstance(default, tuple) else str(default or "")


CONFIGS: Final[Mapping[Role, Any]] = {"client": ClientConfig, "consumer": ConsumerConfig, "producer": ProducerConfig}
REQUIRED: Final[Mapping[str, Mapping[str, Any]]] = {"client": {"bootstrap_servers": "localhost:9092"}}
_SHOWN_AS: Final = {"heartbeat_interval": "heartbeat_frequency"}
"""Keywords that a parser derives from other properties."""


def rules_table() -> str:
    """Return the table of every rule of the compiler."""
    rows = ((number, rule, DEVIATIONS.get(number, "")) for number, rule in RULES.items())
    return markdown(("rule", "what it asks for", "where this compiler knowingly differs"), rows)


def evolution_table() -> str:
    """Return the table of every rule for the evolution of definitions."""
    rows = ((number, rule, EVOLUTION_DEVIATIONS.get(number, "")) for number, rule in EVOLUTION_RULES.items())
    return markdown(("rule", "requirement", "difference from Kafka's checker"), rows)


def old_clients_table() -> str:
    """Return the table of recorded old clients: the findings of upgrade-check, and the outcome after the upgrade."""
    recording = ROOT / "tests" / "recordings" / "old_clients.jsonl"
    with recording.open("rb") as file:
        outcomes: Mapping[str, str] = list(json.loads(next(file))["outcomes"].values())[-1]
    usage = ClientUsage()
    with recording.open("rb") as file:
        usage.add_all(read_recording(file))
    sent: dict[str | None, list[str]] = {}
    for each in check_upgrade(parse_release("4.4"), usage).versions:
        if each.verdict is Verdict.BLOCKED:
            sent.setdefault(each.use.client.client_id, []).append(f"{api_name(each.use.api_key)} {each.use.version}")
    rows = ((name, ", ".join(sent.get(name, ())), _outcome(outcome)) for name, outcome in outcomes.items())
    return markdown(("client", "removed versions in the recording", "the same client with Kafka 4.4"), rows)


def _outcome(text: str) -> str:
    return "works" if text == "ok" else "cannot commit" if text.startswith("committed") else "fails"


def draft_table(draft: str) -> Callable[[], str]:
    """Return a function that generates the table of one draft's messages."""

    def make() -> str:
        about = tomllib.loads((ROOT / "message_defs" / "drafts" / draft / "draft.toml").read_text(encoding="utf-8"))
        package = import_module(f"kafka_msgs.drafts.{draft}")
        classes = [getattr(package, name) for name in package.__all__]
        return markdown(
            ("message", "kind", "key", "versions", "how the release differs"),
            (_draft_row(cls, about["differs"]) for cls in classes),
        )

    return make


def _draft_row(cls: type[Message], differs: Mapping[str, str]) -> tuple[object, ...]:
    info = cls.INFO
    key = "" if info.api_key is None else info.api_key
    difference = " ".join(differs.get(info.name, "Not at all: the same bytes and defaults.").split())
    return info.name, info.kind, key, info.versions, difference


def command_help(section: str) -> str:
    """Return the help of the commands of a section, each under its heading, as on a terminal with 100 columns."""
    found = (each for each in _commands(command, ()) if each[0][:1] and each[0][0] in command.sections[section])
    return "\n" + "\n".join(f"## {' '.join(words)}\n\n{_help_of(words, each)}" for words, each in found) + "\n"


def outermost_help() -> str:
    """Return the help of ``kafka-msgs`` itself."""
    return f"\n{_help_of((), command)}\n"


def _help_of(words: tuple[str, ...], found: click.Command) -> str:
    context = click.Context(found, info_name=" ".join(("kafka-msgs", *words)), terminal_width=100)
    context.help_option_names = command.context_settings["help_option_names"]
    return f"```text\n{found.get_help(context)}\n```\n"


def broker_configs(*effects: str) -> str:
    """Return the table of the broker, topic, group and client metrics configs with one of the effects."""
    rows = (
        (f"`{each.name}`", resource, "" if each.default is None else f"`{each.default}`" if each.default else "")
        for resource in (BROKER, TOPIC, GROUP, CLIENT_METRICS)
        for each in config_keys(resource).values()
        if each.effect in effects and not each.internal
    )
    return markdown(("config", "resource", "Kafka's default"), rows)


def replaced_configs() -> str:
    """Return the table of the broker configs that attributes replace."""
    rows = ((f"`{each.name}`", f"`{each.effect}`") for each in config_keys(BROKER).values() if each.replaced)
    return markdown(("config", "attribute"), rows)


def metrics_table(prefix: str) -> str:
    """Return the table of the metrics whose names start with a prefix."""
    rows = (
        (f"`{each.name}`", each.type, ", ".join(f"`{label}`" for label in each.labels), each.help)
        for each in DEFINITIONS.values()
        if each.name.startswith(prefix)
    )
    return markdown(("metric", "type", "labels", "meaning"), rows)


def lag_rules_table() -> str:
    """Return the table of the status rules, in the order in which they are checked."""
    rows = ((f"`{rule.status.name}`", int(rule.status), rule.condition) for rule in STATUS_RULES)
    return markdown(("status", "number", "condition"), rows)


def statuses_table() -> str:
    """Return the table of the exit statuses of commands."""
    return markdown(("status", "meaning"), EXIT_STATUSES.items())


def _commands(group: click.Group, above: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], click.Command]]:
    yield above, group
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _commands(found, (*above, name))
        elif found is not None:
            yield (*above, name), found


def exceptions_table() -> str:
    """Return the table of every exception, with its meaning and the action."""
    return markdown(("exception", "meaning", "action"), map(_exception_row, sorted(_error_guide()["exceptions"])))


def _exception_row(name: str) -> tuple[str, str, str]:
    paragraph = (getattr(errors, name).__doc__ or "").split("\n\n")[0]
    meaning = " ".join(paragraph.split()).partition(" Attribute")[0].replace("``", "`")
    return f"`{name}`", meaning, _error_guide()["exceptions"][name]


def codes_table() -> str:
    """Return the table of every error code, with its meaning and the action."""
    guide = _error_guide()["codes"]
    head = ("code", "name", "retriable", "meaning", "action")
    rows = ((code.value, code.name, "yes" if code.retriable else "no", *guide[code.name]) for code in ErrorCode)
    return markdown(head, rows)


@cache
def _error_guide() -> Mapping[str, Any]:
    return tomllib.loads((ROOT / "docs" / "tools" / "error_guide.toml").read_text(encoding="utf-8"))


def operations_table() -> str:
    """Return the table of every administration method."""
    found = {name: getattr(Admin, name) for name in dir(Admin) if not name.startswith("_") and name != "close"}
    return markdown(("method", "value", "what it does"), (_operation_row(*each) for each in found.items()))


def _operation_row(name: str, operation: Callable[..., object]) -> tuple[str, str, str]:
    signature = inspect.signature(operation)
    names = [each for each in signature.parameters if each not in {"self", "timeout"}]
    summary = " ".join(str(operation.__doc__).split("\n\n")[0].split()).replace("``", "`")
    return f"`{name}({', '.join(names)})`", f"`{signature.return_annotation}`", summary


def redaction_table() -> str:
    """Return the table of every field with text or bytes, and its form after redaction."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for root in redacted_messages():
        for struct, field in _texts(root):
            kinds = field_kinds(struct, field)
            hidden = "every kind except `sasl`" if kinds == ALL_KINDS - {RedactKind.SASL} else ""
            hidden = "every kind" if kinds == ALL_KINDS else hidden or ", ".join(f"`{kind}`" for kind in sorted(kinds))
            row = found.setdefault((field.attribute, hidden or "none", becomes(struct, field)), [])
            if root.INFO.name not in row:
                row.append(root.INFO.name)
    head = ("field", "messages", "hidden by", "becomes")
    return markdown(head, ((f"`{name}`", _few(roots), *rest) for (name, *rest), roots in sorted(found.items())))


def _texts(cls: type[Struct]) -> Iterable[tuple[type[Struct], FieldInfo]]:
    for field in fields(cls):
        if field.struct is not None:
            yield from _texts(field.struct)
        elif field.element_type in ("string", "bytes", "records"):
            yield cls, field


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


COMMAND_PAGES: Final = {
    "messages": "Messages",
    "cluster": "Cluster",
    "files": "Files",
    "traffic": "Traffic",
    "tests": "Tests",
    "shell": "Shell",
}
"""The page of each section of commands."""

TABLES: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "clients.md": {"settings": settings_table},
    "admin.md": {"operations": operations_table},
    "command-line.md": {"statuses": statuses_table, "commands": outermost_help},
    **{f"cli-{page}.md": {"commands": partial(command_help, section)} for page, section in COMMAND_PAGES.items()},
    "metrics.md": {
        "rules": lag_rules_table,
        **{
            name: partial(metrics_table, f"kafka_{prefix}")
            for name, prefix in {
                "groups": "group_",
                "topics": "topic_",
                "partitions": "partition_",
                "brokers": "broker_",
                "clients": "client_",
                "own": "msgs_",
            }.items()
        },
    },
    "messages.md": {"releases": releases_table, "origins": origins_table, "messages": messages_table},
    "troubleshooting.md": {"exceptions": exceptions_table, "codes": codes_table},
    "../how-to/upgrade-brokers.md": {"old-clients": old_clients_table},
    "redaction.md": {"fields": redaction_table},
    "rules.md": {"rules": rules_table, "evolution": evolution_table},
    "broker-configs.md": {
        "effective": partial(broker_configs, "yes", "telemetry"),
        "start": partial(broker_configs, "start"),
        "replaced": replaced_configs,
        "none": partial(broker_configs, "none"),
    },
    "drafts.md": {draft: draft_table(draft) for draft in ("kafka_0_9", "kip_1071", "kip_1071_migration", "kip_88")},
}
"""The tables in each page, by name."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
