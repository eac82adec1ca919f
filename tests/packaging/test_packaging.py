"""The package built with a compiler, without a compiler, and without the C file, all without downloads."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import kafka_msgs

ROOT = Path(__file__).parents[2]
DIRECTORIES = ("kafka_msgs", "generator", "message_defs", "tests")
TEXTS = ("README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "LICENSE", "NOTICE", "SECURITY.md")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", *TEXTS)
LEFT_BEHIND = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info", "target")
BINARY = (".so", ".pyd")
COMPILER = os.environ.get("CC", "cc")


def compiles() -> bool:
    """Return whether a working C compiler is available."""
    command = shlex.split(COMPILER)
    return shutil.which(command[0]) is not None and not subprocess.call(
        [*command, "--version"], stdout=subprocess.DEVNULL
    )


with_compiler = pytest.mark.skipif(not compiles(), reason=f"no C compiler ({COMPILER})")


def copy_of_the_project(to: Path) -> Path:
    """Copy the project's versioned files, without any build output."""
    to.mkdir()
    for name in DIRECTORIES:
        shutil.copytree(ROOT / name, to / name, ignore=LEFT_BEHIND)
    for name in FILES:
        shutil.copy(ROOT / name, to / name)
    return to


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command, in an environment without this project's settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_MSGS_")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def build(project: Path, what: str, compiler: str) -> Path:
    """Build a wheel or an sdist of a project, and return its path."""
    code = f"from setuptools import build_meta; build_meta.build_{what}('dist')"
    done = run(sys.executable, "-c", code, cwd=project, CC=compiler)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (project / "dist").glob("*.whl" if what == "wheel" else "*.tar.gz")
    return built


def install(wheel: Path, to: Path) -> Path:
    """Install a wheel alone into a directory."""
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", to)
    done = run(sys.executable, "-m", "pip", "install", *options, wheel, cwd=to.parent)
    assert done.returncode == 0, done.stderr
    return to


def cores(project: Path) -> list[Path]:
    """Return the C files of a project."""
    return sorted((project / "kafka_msgs/_core").glob("*.c"))


def extensions(installed: Path) -> list[str]:
    """Return the extensions of an installation, without the platform-dependent part of their names."""
    found = (path for path in installed.rglob("*") if path.suffix in BINARY)
    return sorted(str(path.relative_to(installed)).partition(".")[0] for path in found)


def run_installed(installed: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, *arguments, cwd=installed, PYTHONPATH=str(installed), **environment)


def wheel_test() -> list[str]:
    """Return the Python arguments that test every wheel before publication."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    python, *arguments = shlex.split(settings["test-command"].replace("{project}", str(ROOT)))
    assert python == "python"
    return arguments


@pytest.fixture(scope="module")
def without_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation built without a compiler."""
    root = tmp_path_factory.mktemp("without_compiler")
    return install(build(copy_of_the_project(root / "project"), "wheel", compiler="false"), root / "installed")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked sdist."""
    root = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(copy_of_the_project(root / "project"), "sdist", COMPILER)) as archive:
        archive.extractall(root / "unpacked", filter="data")
    (unpacked,) = (root / "unpacked").iterdir()
    return unpacked


def test_without_a_compiler_the_library_is_installed_and_works(without_compiler: Path) -> None:
    assert extensions(without_compiler) == []
    done = run_installed(without_compiler, ROOT / "tests/packaging/check_install.py", "python")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("python: ")


def test_an_installation_has_the_sample_and_answers_from_it(without_compiler: Path, tmp_path: Path) -> None:
    """The tutorial's first steps, without the repository."""
    logs = tmp_path / "kafka-logs"
    assert run_installed(without_compiler, "-m", "kafka_msgs", "sample", logs).returncode == 0
    done = run_installed(without_compiler, "-m", "kafka_msgs", "lag", "--log-dirs", logs, "audit", "--output", "jsonl")
    assert done.stdout.count('"lag": 6') == 2, done.stderr


def test_asking_for_the_c_core_where_it_is_not_built_is_an_import_error(without_compiler: Path) -> None:
    done = run_installed(without_compiler, "-c", "import kafka_msgs", KAFKA_MSGS_BACKEND="c")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        "ImportError: KAFKA_MSGS_BACKEND=c: the backends here are auto, python, reference"
    )


def test_a_wheel_without_the_c_core_fails_its_test(without_compiler: Path) -> None:
    done = run_installed(without_compiler, *wheel_test())
    assert (done.returncode, done.stderr) == (1, "this installation runs python, not c\n")


def test_an_sdist_holds_what_builds_the_package_and_its_generated_code_and_no_more(sdist: Path) -> None:
    names = {path.relative_to(sdist).as_posix() for path in sdist.rglob("*") if path.is_file()}
    assert names >= {
        *("setup.py", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "SECURITY.md", "message_defs/SOURCE.toml"),
        *(path.relative_to(ROOT).as_posix() for path in (ROOT / "kafka_msgs/_core").glob("*.[ch]")),
        *("kafka_msgs/_core/extension.pyi", "kafka_msgs/py.typed", "generator/kafka_msgs_generator/py.typed"),
        "generator/kafka_msgs_generator/templates/message.py.j2",
        *("kafka_msgs/viewer/assets/panel.html", "kafka_msgs/viewer/assets/main.js"),
    }
    directories = {name.split("/")[0] for name in names if "/" in name}
    assert directories == {"kafka_msgs", "kafka_msgs.egg-info", "generator", "message_defs", "tests"}


@with_compiler
def test_a_wheel_from_the_sdist_has_the_c_core_and_passes_its_test(sdist: Path, tmp_path: Path) -> None:
    wheel = build(sdist, "wheel", COMPILER)
    names = ZipFile(wheel).namelist()
    needed = {"kafka_msgs/py.typed", "kafka_msgs/_core/extension.pyi", "kafka_msgs/samples/log-directory.zip"}
    needed |= {f"kafka_msgs/viewer/assets/{name}" for name in ("panel.html", "panel.css", "main.js", "decode.js")}
    assert needed <= set(names)
    assert not [name for name in names if name.endswith((".c", ".h"))]
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"kafka_msgs", "kafka_msgs_generator"}
    installed = install(wheel, tmp_path / "installed")
    assert extensions(installed) == ["kafka_msgs/_core/extension"]
    done = run_installed(installed, *wheel_test())
    assert done.returncode == 0, done.stderr


def test_without_the_c_files_the_library_is_installed_and_its_tests_pass(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path / "project")
    for file in cores(project):
        file.unlink()
    installed = install(build(project, "wheel", COMPILER), tmp_path / "installed")
    assert extensions(installed) == []
    names = ("codec/test_encodings.py", "codec/test_rules.py", "wire/test_payloads.py", "records/test_batch.py")
    selection = [project / "tests" / name for name in names]
    done = run_installed(installed, "-m", "pytest", "--rootdir", project, *selection)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("source", [None, "https://github.com/tea/kafka-msgs"])
def test_links_of_the_readme_are_absolute_if_the_address_of_the_repository_is_known(
    source: str | None, tmp_path: Path
) -> None:
    project = copy_of_the_project(tmp_path / "project")
    if source is not None:
        settings = project / "pyproject.toml"
        text = settings.read_text(encoding="utf-8")
        settings.write_text(f'{text}\n[project.urls]\nSource = "{source}"\n', encoding="utf-8")
    code = "from setuptools import build_meta; print(build_meta.prepare_metadata_for_build_wheel('.'))"
    done = run(sys.executable, "-c", code, cwd=project)
    (metadata,) = project.glob("*.dist-info/METADATA")
    headers, _, shown = metadata.read_text(encoding="utf-8").partition("\n\n")
    assert "Description-Content-Type: text/markdown" in headers, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if source is None:
        assert shown.strip() == readme.strip()
        return
    release = f"v{kafka_msgs.__version__}"
    assert f"]({source}/raw/{release}/docs/images/annotated-bytes.svg)" in shown
    assert f"[LICENSE]({source}/blob/{release}/LICENSE)" in shown
    assert re.findall(r"\]\((?!https://)[^)]*\)", shown) == []
    assert len(re.findall(r"\]\(", shown)) == len(re.findall(r"\]\(", readme))
