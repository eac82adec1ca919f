"""Section: the lag of every group, from a broker's files, in one process."""

from __future__ import annotations

from docs.demo.presenter import Stage, columns

__all__ = ["show"]


def show(stage: Stage) -> None:
    """Write the sample included in the package, and read its groups."""
    stage.section(
        "Ask a log directory",
        "A small log directory of a real broker comes with the package. Its groups, empty ones included, take less "
        "than a second; `kafka-msgs lag --log-dirs` prints the same.",
    )
    stage.run(
        """
        from pathlib import Path
        from tempfile import mkdtemp
        from kafka_msgs.analysis.groups import read_groups
        from kafka_msgs.log.partition_discovery import partitions_in
        from kafka_msgs.samples import write_sample

        logs = Path(mkdtemp(prefix="kafka-msgs-demo-")) / "kafka-logs"
        write_sample(logs)
        found = read_groups(partitions_in([logs]))
        """
    )
    rows = columns("group", "kind", "state", "members", "lag", numbers=("members", "lag"))
    for group in stage.names["found"].groups:
        described = group.description
        lag = "" if group.lag is None else str(group.lag)
        rows.add_row(described.group_id, described.kind, described.state, str(len(described.members)), lag)
    stage.table(rows)
