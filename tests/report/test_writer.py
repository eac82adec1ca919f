"""The files of a report: each replaces an earlier one completely, the metrics last."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.report import Report, Table, write_report

REPORT = Report("Lags", (Table("Lags", ("group",), (("a",),)),), {})


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def test_a_file_is_replaced_and_never_written_in_place(tmp_path: Path) -> None:
    write_report(REPORT, tmp_path)
    kept = (tmp_path / "report.prom").open()
    before = kept.read()
    write_report(REPORT, tmp_path)
    # A reader that opened the earlier file still has all of it.
    kept.seek(0)
    assert kept.read() == before
    assert (tmp_path / "report.prom").stat().st_ino != Path(f"/proc/self/fd/{kept.fileno()}").stat().st_ino
    kept.close()
    assert names(tmp_path) == ["report.html", "report.json", "report.prom"]


@pytest.mark.parametrize("failing", ["report.html", "report.json", "report.prom"])
def test_a_failed_report_leaves_the_metrics_of_the_last_one(
    tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(REPORT, tmp_path)
    (tmp_path / "report.prom").write_text("earlier")
    replace = Path.replace

    def refused(path: Path, target: Path) -> Path:
        if target.name == failing:
            raise OSError(28, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(OSError, match="No space"):
        write_report(REPORT, tmp_path)
    assert (tmp_path / "report.prom").read_text() == "earlier"
    assert names(tmp_path) == ["report.html", "report.json", "report.prom"]
