"""Prometheus and promtool: the installed programs, or the Debian package, which is downloaded and unpacked once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.build_cache import made_once
from tests.support.skip_reasons import not_run

__all__ = ["prometheus_tool"]

_KEPT: Final = Path(__file__).parents[1] / "docs" / "target" / "prometheus"
_SECONDS: Final = 300


def prometheus_tool(name: str) -> str:
    """Return the path of ``prometheus`` or ``promtool``. Without them and without apt, the test is not run."""
    found = shutil.which(name)
    if found is not None:
        return found
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        not_run(f"{name} not found, and no apt to download it")
    return str(made_once(_KEPT, _download) / "usr" / "bin" / name)


def _download(directory: Path) -> None:
    directory.mkdir(parents=True)
    command = ["apt-get", "download", "-o", "APT::Sandbox::User=root", "prometheus"]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_SECONDS)
    if result.returncode:
        not_run(f"prometheus cannot be downloaded: {result.stderr.strip()}")
    (package,) = directory.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(directory)], check=True, timeout=_SECONDS)
    package.unlink()
