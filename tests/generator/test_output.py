"""Written files: only changes, only the generator's own files, each complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_msgs_generator.atomic_write import write_atomically
from kafka_msgs_generator.emit import MARK
from kafka_msgs_generator.output import ForeignFileError, apply, plan, summary

HEAD = f"{MARK}; do not edit.\n"


def package(*names: str) -> dict[str, str]:
    """Return the files of a package with these modules, and its index."""
    files = {name: f"{HEAD}name = {name!r}\n" for name in names}
    listed = "".join(f"    {name!r},\n" for name in (*names, "_index.py"))
    return files | {"_index.py": f"{HEAD}FILES: tuple[str, ...] = (\n{listed})\n"}


def contents(root: Path) -> dict[str, str]:
    """Return every file below a directory."""
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_files_appear_with_their_directories(tmp_path: Path) -> None:
    apply(plan(tmp_path / "new" / "package", package("a.py", "sub/b.py")))
    assert contents(tmp_path / "new" / "package") == package("a.py", "sub/b.py")


def test_what_is_right_is_not_written_again(tmp_path: Path) -> None:
    apply(plan(tmp_path, package("a.py", "b.py")))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    (tmp_path / "b.py").write_text(f"{HEAD}name = 'edited'\n")
    changes = plan(tmp_path, package("a.py", "b.py"))
    assert list(changes.written) == ["b.py"]
    apply(changes)
    assert (tmp_path / "a.py").stat().st_mtime_ns == before[tmp_path / "a.py"]
    assert not plan(tmp_path, package("a.py", "b.py"))


def test_only_what_the_last_run_wrote_is_removed(tmp_path: Path) -> None:
    apply(plan(tmp_path, package("a.py", "gone.py", "sub/gone.py", "taken_over.py")))
    (tmp_path / "foreign.py").write_text("mine = True\n")
    (tmp_path / "sub" / "foreign.py").write_text("mine = True\n")
    (tmp_path / "taken_over.py").write_text("mine = True\n")
    (tmp_path / "marked.py").write_text(f"{HEAD}mine = True\n")
    changes = plan(tmp_path, package("a.py"))
    assert changes.removed == ("gone.py", "sub/gone.py")
    apply(changes)
    assert set(contents(tmp_path)) == {
        *("a.py", "_index.py", "foreign.py", "taken_over.py", "marked.py"),
        "sub/foreign.py",
    }


def test_a_directory_that_is_left_empty_goes_too(tmp_path: Path) -> None:
    apply(plan(tmp_path, package("a.py", "sub/b.py")))
    (tmp_path / "sub" / "__pycache__").mkdir()
    (tmp_path / "sub" / "__pycache__" / "b.cpython-311.pyc").write_bytes(b"")
    apply(plan(tmp_path, package("a.py")))
    assert not (tmp_path / "sub").exists()


@pytest.mark.parametrize("listed", ["../outside.py", "/outside.py", "sub/../../outside.py"])
def test_an_index_cannot_point_outside(tmp_path: Path, listed: str) -> None:
    root = tmp_path / "package"
    root.mkdir()
    (tmp_path / "outside.py").write_text(HEAD)
    (root / "_index.py").write_text(f"{HEAD}FILES: tuple[str, ...] = ({listed!r},)\n")
    assert plan(root, {}).removed == ()


@pytest.mark.parametrize(
    "index", ["", "FILES: tuple[str, ...] = ('a.py',)", f"{HEAD}FILES = (", f"{HEAD}FILES: int = 3"]
)
def test_an_index_that_is_not_the_generators_owns_nothing(tmp_path: Path, index: str) -> None:
    (tmp_path / "a.py").write_text(HEAD)
    (tmp_path / "_index.py").write_text(index)
    assert plan(tmp_path, {}).removed == ()


def test_a_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("mine = True\n")
    with pytest.raises(ForeignFileError, match=r"a\.py was not written by the generator"):
        plan(tmp_path, package("a.py"))
    (tmp_path / "a.py").write_bytes(b"\xff\xfe not text")
    with pytest.raises(ForeignFileError):
        plan(tmp_path, package("a.py"))


def test_an_empty_file_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    apply(plan(tmp_path, package("__init__.py")))
    assert contents(tmp_path) == package("__init__.py")


def test_the_summary_counts_lines(tmp_path: Path) -> None:
    apply(plan(tmp_path, package("a.py", "gone.py")))
    (tmp_path / "a.py").write_text(f"{HEAD}one\ntwo\n")
    assert summary(plan(tmp_path, package("a.py", "new.py"))) == [
        "changed  _index.py (+1 -1 lines)",
        "changed  a.py (+1 -2 lines)",
        "missing  new.py",
        "orphaned gone.py",
    ]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.py"
    write_atomically(target, "old")

    def refuse(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no space"):
        write_atomically(target, "new")
    assert contents(tmp_path) == {"a.py": "old"}
    assert target.stat().st_mode & 0o777 == 0o644
