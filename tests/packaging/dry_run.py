"""A release on this machine: built, checked, uploaded to an index on loopback, and installed from it.

    python -m tests.packaging.dry_run [--python PYTHON ...] [--dist DIRECTORY]

Needs the dependency group ``release``, git, and access to a package index. Each step prints its duration and its
figures; the first failure ends the run with status 1 and the output of the failed command. Each ``--python`` is an
interpreter or a version that uv finds; the default is the running one. ``--dist`` keeps the distributions and the SBOM.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from attrs import field, frozen

from tests.packaging.loopback_index import loopback_index
from tests.packaging.requirements import Requirement, page_requirements

ROOT: Final = Path(__file__).parents[2]
CHECK: Final = ROOT / "tests/packaging/check_install.py"
IMPORT_ALL: Final = ROOT / "tests/packaging/import_public_modules.py"
WARM_SECONDS: Final = 10
"""The limit for a command that uv has run before."""

SUITES: Final = (
    *("-n", "auto", "--dist", "loadfile", "-m", "not oracle and not slow and not system"),
    "--ignore=tests/codec/test_new_primitive.py",  # compiles a changed copy of the sources
    *(f"tests/{part}" for part in ("codec", "columns", "instances", "messages", "records", "wire")),
)
"""The tests that run with every interpreter."""

INSTALLATIONS: Final[Mapping[str, tuple[str, dict[str, str]]]] = {
    "wheel": ("c", {"PIP_ONLY_BINARY": "kafka-msgs"}),
    "sdist": ("c", {"PIP_NO_BINARY": "kafka-msgs"}),
    "sdist without a compiler": ("python", {"PIP_NO_BINARY": "kafka-msgs", "PIP_NO_CACHE_DIR": "1", "CC": "false"}),
}
"""The backend of each kind of installation, and pip's environment for it."""

ENVIRONMENT: Final = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("KAFKA_MSGS_", "PYTHON")) and name != "VIRTUAL_ENV"
}


class FailedCommandError(Exception):
    """A command that failed, with its output."""


def run(*command: object, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """Run a command and return its standard output; raises `FailedCommandError`."""
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, env=ENVIRONMENT | dict(env or {}), capture_output=True, text=True)
    if done.returncode:
        raise FailedCommandError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def tool(name: str, *arguments: object, env: Mapping[str, str] | None = None) -> str:
    """Run a program of the dependency group ``release``."""
    beside = Path(sys.executable).parent
    path = f"{beside}{os.pathsep}{ENVIRONMENT.get('PATH', '')}"
    return run(beside / name, *arguments, env={"PATH": path, **(env or {})})


@frozen
class DryRun:
    """The directory of a run, and the interpreters it installs the release for."""

    work: Path
    pythons: tuple[str, ...]
    index: str = field(default="")

    @property
    def dist(self) -> Path:
        return self.work / "dist"

    def wheels(self) -> list[Path]:
        return sorted(self.dist.glob("*.whl"))

    def sdist(self) -> Path:
        (found,) = self.dist.glob("*.tar.gz")
        return found

    def use_index(self) -> dict[str, str]:
        """Return the environment that makes pip and uv install from the index of this run."""
        url = f"{self.index}simple/"
        return {"PIP_INDEX_URL": url, "UV_DEFAULT_INDEX": url, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}

    def new_environment(self, name: str, python: str) -> Path:
        """Create an environment with pip, and return its interpreter."""
        tool("uv", "venv", "--quiet", "--seed", "--python", python, self.work / name)
        return self.work / name / ("Scripts" if os.name == "nt" else "bin") / "python"


def build(release: DryRun) -> str:
    """Build the sdist, and a wheel from it, twice: copies of the sources in other places give the same bytes."""
    epoch = run("git", "log", "-1", "--format=%ct").strip()
    builds = []
    for number in ("first", "second"):
        source = _copy_of_sources(release.work / number / "source")
        to = release.work / number / "dist"
        tool("python", "-m", "build", "--installer", "uv", "--outdir", to, source, env={"SOURCE_DATE_EPOCH": epoch})
        builds.append({path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(to.iterdir())})
    if builds[0] != builds[1]:
        raise FailedCommandError(f"two builds differ: {builds}")
    shutil.copytree(release.work / "first" / "dist", release.dist)
    for python in release.pythons:
        tool(
            "uv",
            "build",
            "--quiet",
            "--no-create-gitignore",
            "--wheel",
            "--python",
            python,
            "--out-dir",
            release.dist,
            release.sdist(),
        )
    return f"{len(builds[0])} files twice, with the same bytes"


def check(release: DryRun) -> str:
    """Check metadata and contents; on Linux, tag the wheels with the platform of their linked libraries."""
    tool("twine", "check", "--strict", *release.dist.iterdir())
    for wheel in release.wheels():
        tool("check-wheel-contents", wheel)
        if sys.platform == "linux":
            tool("auditwheel", "repair", "--wheel-dir", release.dist, wheel)
            wheel.unlink()
    return ", ".join(f"{path.name}: {path.stat().st_size:,} bytes" for path in sorted(release.dist.iterdir()))


def upload(release: DryRun) -> str:
    """Upload all distributions, as to PyPI."""
    tool("twine", "upload", "-u", "x", "-p", "x", "--repository-url", release.index, *release.dist.iterdir())
    return f"{len([*release.dist.iterdir()])} files"


def install(release: DryRun) -> str:
    """Install the wheel, and the sdist with and without a compiler, and check every message on its backend."""
    figures = []
    for number, python in enumerate(release.pythons):
        for kind, (backend, settings) in INSTALLATIONS.items():
            interpreter = release.new_environment(f"{number}-{kind.replace(' ', '-')}", python)
            start = time.monotonic()
            run(interpreter, "-m", "pip", "install", "kafka-msgs[arrow]", env=release.use_index() | settings)
            seconds = time.monotonic() - start
            checked = run(interpreter, CHECK, backend, cwd=release.work)
            figures.append(f"{python}, {kind} ({seconds:.0f} s): {checked.strip()}")
    return "\n".join(figures)


def no_extras(release: DryRun) -> str:
    """Import all public modules without any extra: a module works, or its error names the extra."""
    interpreter = release.new_environment("bare", release.pythons[0])
    run(interpreter, "-m", "pip", "install", "kafka-msgs", env=release.use_index())
    return run(interpreter, IMPORT_ALL, ROOT / "docs/reference/public-api.md", cwd=release.work).strip()


def sbom(release: DryRun) -> str:
    """Write the bill of materials of an installation without extras."""
    bare, file = release.work / "bare", release.work / "sbom.cdx.json"
    run(bare / "bin" / "python", "-m", "pip", "uninstall", "--yes", "--quiet", "pip")
    options = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "--output-reproducible", "--validate")
    tool("cyclonedx-py", "environment", *options, "--output-file", file, bare)
    return f"{file.stat().st_size:,} bytes"


def pages(release: DryRun) -> str:
    """Run every install command of the pages in a separate environment."""
    commands = sorted(page_requirements())
    for number, requirements in enumerate(commands):
        interpreter = release.new_environment(f"page-{number}", release.pythons[0])
        words = [str(requirement) for requirement in requirements]
        tool("uv", "pip", "install", "--quiet", "--python", interpreter, *words, env=release.use_index())
        tool("uv", "pip", "check", "--quiet", "--python", interpreter)
        run(interpreter, "-c", _extras_exist(requirements), cwd=release.work)
        shutil.rmtree(interpreter.parents[1])
    return f"{len(commands)} different commands"


def readme(release: DryRun) -> str:
    """Run the examples of the README against the release, in an empty directory."""
    interpreter, copy = _environment_for_tests(release, release.pythons[0])
    (release.work / "empty").mkdir()
    words = ("-m", "tests.support.page_runner", copy / "README.md")
    run(interpreter, *words, cwd=release.work / "empty", env=_path_of(interpreter) | {"PYTHONPATH": str(copy)})
    return "every example prints what the README shows"


def suites(release: DryRun) -> str:
    """Run the tests of the codec and of everything below it against the release, with each interpreter."""
    results = []
    for python in release.pythons:
        interpreter, copy = _environment_for_tests(release, python)
        printed = run(interpreter, "-m", "pytest", *SUITES, cwd=copy, env=_path_of(interpreter))
        results.append(f"{python}: {printed.strip().splitlines()[-1]}")
    return "\n".join(results)


def _environment_for_tests(release: DryRun, python: str) -> tuple[Path, Path]:
    """Install the release with the group ``test``; return the interpreter, and a copy of the tree without packages."""
    copy = release.work / "without-packages"
    if not copy.exists():
        _copy_of_sources(copy)
        for package in ("kafka_msgs", "generator"):
            shutil.rmtree(copy / package)
    shutil.rmtree(release.work / "tests", ignore_errors=True)
    interpreter = release.new_environment("tests", python)
    group = f"{copy / 'pyproject.toml'}:test"
    tool("uv", "pip", "install", "--quiet", "--python", interpreter, "--group", group, env=release.use_index())
    return interpreter, copy


def _path_of(interpreter: Path) -> dict[str, str]:
    return {"PATH": f"{interpreter.parent}{os.pathsep}{ENVIRONMENT['PATH']}"}


def command(release: DryRun) -> str:
    """Run the command by uvx, as a newcomer does: the second time within `WARM_SECONDS`."""
    durations = []
    for _ in range(2):
        start = time.monotonic()
        words = ("--python", release.pythons[0], "--from", "kafka-msgs[cli]", "kafka-msgs", "--version")
        printed = tool("uvx", *words, env=release.use_index())
        durations.append(time.monotonic() - start)
    if durations[1] > WARM_SECONDS:
        raise FailedCommandError(f"uvx took {durations[1]:.1f} s with a warm cache")
    return f"{printed.strip()}: {durations[0]:.1f} s, then {durations[1]:.1f} s"


BEFORE_UPLOAD: Final = (build, check)
FROM_INDEX: Final = (upload, install, no_extras, sbom, pages, readme, command, suites)


def _copy_of_sources(to: Path) -> Path:
    """Copy the versioned files of the working tree."""
    for name in run("git", "ls-files", "-z").split("\0"):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def _extras_exist(requirements: tuple[Requirement, ...]) -> str:
    extras = {extra for requirement in requirements for extra in requirement.extras if requirement.name == "kafka-msgs"}
    return (
        "from importlib.metadata import metadata; import kafka_msgs\n"
        f"missing = {extras} - set(metadata('kafka-msgs').get_all('Provides-Extra'))\n"
        "assert not missing, f'the package has no extras {missing}'"
    )


def _take(steps: tuple[Callable[[DryRun], str], ...], release: DryRun) -> None:
    for step in steps:
        start = time.monotonic()
        figures = step(release)
        print(f"{step.__name__} ({time.monotonic() - start:.0f} s): {figures}", flush=True)


def main() -> int:
    """Run all steps; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--dist", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-dry-run-") as directory:
        release = DryRun(Path(directory), tuple(options.python or [sys.executable]))
        try:
            _take(BEFORE_UPLOAD, release)
            (release.work / "packages").mkdir()
            with loopback_index(release.work / "packages") as url:
                _take(FROM_INDEX, DryRun(release.work, release.pythons, url))
        except FailedCommandError as error:
            print(f"FAILED: {error}", file=sys.stderr)
            return 1
        if options.dist:
            shutil.copytree(release.dist, options.dist, dirs_exist_ok=True)
            shutil.copy(release.work / "sbom.cdx.json", options.dist)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
