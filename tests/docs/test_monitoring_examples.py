"""The example alert rules, dashboard and unit: every metric, label and option exists, and Prometheus accepts them."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.cli.commands.lag import lag_command
from kafka_msgs.client import TopicPartition
from kafka_msgs.report.metric_definitions import DEFINITIONS, LagStatus
from kafka_msgs.report.model import metric
from kafka_msgs.report.prometheus import metrics_text
from kafka_msgs.report.sections.lag_metrics import lag_metrics
from kafka_msgs.testing import new_topic
from tests.support.free_ports import consecutive_free_ports
from tests.support.prometheus_tools import prometheus_tool

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "monitoring"
DASHBOARD: Any = json.loads((EXAMPLES / "dashboard.json").read_text(encoding="utf-8"))
ADDED_BY_PROMETHEUS = {"instance", "job"}


def strings(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


def expressions() -> list[str]:
    rules = re.findall(r"^ +expr: (.*)$", (EXAMPLES / "alerts.yml").read_text(encoding="utf-8"), re.MULTILINE)
    queries = [text for text in strings(DASHBOARD) if re.search(r"\bkafka_\w+", text)]
    return [*rules, *queries]


@pytest.mark.parametrize("expression", expressions())
def test_every_metric_and_label_exists(expression: str) -> None:
    names = re.findall(r"\bkafka_\w+", expression)
    assert names
    assert set(names) <= set(DEFINITIONS)
    known = {"cluster"}.union(*(DEFINITIONS[name].labels for name in names))
    used = {label for labels in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+) *=", labels)}
    used |= {label for labels in re.findall(r"\bby \(([^)]*)\)", expression) for label in re.findall(r"\w+", labels)}
    assert used <= known


def test_legends_and_summaries_use_labels_that_exist() -> None:
    known = {"cluster"}.union(*(each.labels for each in DEFINITIONS.values()))
    for text in strings(DASHBOARD):
        assert set(re.findall(r"\{\{(\w+)\}\}", text)) <= known
    assert set(re.findall(r"\$labels\.(\w+)", (EXAMPLES / "alerts.yml").read_text(encoding="utf-8"))) <= known


def test_the_statuses_on_the_dashboard_are_those_of_the_metric() -> None:
    (timeline,) = (panel for panel in DASHBOARD["panels"] if panel["type"] == "state-timeline")
    (mapping,) = timeline["fieldConfig"]["defaults"]["mappings"]
    assert {int(number): each["text"] for number, each in mapping["options"].items()} == {
        int(each): each.name for each in LagStatus
    }


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_command_of_the_unit_is_valid() -> None:
    unit = (EXAMPLES / "kafka-msgs-lag.service").read_text(encoding="utf-8")
    (started,) = re.findall("^ExecStart=(.*)$", unit, re.MULTILINE)
    program, command, *arguments = shlex.split(started)
    assert (Path(program).name, command) == ("kafka-msgs", "lag")
    context = lag_command.make_context("lag", arguments)
    assert context.params["listen"] == ("127.0.0.1", 9308)


ROW = {
    "group": "g", "topic": "t", "partition": 0, "committedOffset": 4, "endOffset": 10, "lag": 6, "ahead": 0,
    "lagSeconds": 1.5, "status": "OK", "clientId": "c", "clientHost": "h",
}  # fmt: skip


@pytest.mark.system
def test_promtool_accepts_the_rules_and_the_metrics() -> None:
    """Its only objection is the suffix ``_sum``, which it reserves for histograms."""
    promtool = prometheus_tool("promtool")
    for arguments in (("check", "config", "prometheus.yml"), ("test", "rules", "alerts_test.yml")):
        subprocess.run([promtool, *arguments], cwd=EXAMPLES, check=True, capture_output=True, timeout=60)
    text = metrics_text([*lag_metrics([ROW]), *(metric(name, []) for name in DEFINITIONS)], {"cluster": "c"})
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    objections = checked.stderr.splitlines()
    assert all(line.split()[0].endswith("_sum") and '"_sum" suffix' in line for line in objections), objections


@pytest.mark.system
def test_prometheus_scrapes_the_exporter_and_evaluates_the_rules(tmp_path: Path) -> None:
    prometheus, port = prometheus_tool("prometheus"), consecutive_free_ports(2)
    config = (EXAMPLES / "prometheus.yml").read_text(encoding="utf-8").replace(": 30s", ": 1s")
    (tmp_path / "prometheus.yml").write_text(config.replace("localhost:9308", f"127.0.0.1:{port}"), encoding="utf-8")
    (tmp_path / "alerts.yml").write_bytes((EXAMPLES / "alerts.yml").read_bytes())
    with EmbeddedBroker() as broker, Admin(broker.bootstrap_servers) as admin:
        topic = new_topic(broker, "orders")
        admin.alter_group_offsets("scraped", {TopicPartition(topic, 0): 3}).all()
        lag = ["lag", "-b", broker.bootstrap_servers, "--listen", f":{port}", "--refresh", "1s", "--cluster-name", "c"]
        address = f"127.0.0.1:{port + 1}"
        server = [
            prometheus, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address={address}", "--log.level=error",
        ]  # fmt: skip
        with (
            subprocess.Popen([sys.executable, "-m", "kafka_msgs", *lag], stdout=subprocess.DEVNULL) as exporter,
            subprocess.Popen(server) as scraper,
        ):
            try:
                found = until_found(address, 'kafka_group_ahead_records_sum{group="scraped"}')
                pending = until_found(address, 'ALERTS{alertname="KafkaGroupAhead"}')
            finally:
                for process in (exporter, scraper):
                    process.send_signal(signal.SIGTERM)
    assert (found["metric"]["cluster"], found["value"][1]) == ("c", "3")
    assert pending["metric"]["alertstate"] == "pending"


def until_found(address: str, query: str) -> Any:
    """Return the only result of a query, once it exists."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with urlopen(f"http://{address}/api/v1/query?{urlencode({'query': query})}", timeout=10) as response:
                results = json.loads(response.read())["data"]["result"]
            if results:
                return results[0]
        except URLError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"no result of {query}")
