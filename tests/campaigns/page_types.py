"""The types of the page's JavaScript modules, which their JSDoc comments declare: TypeScript checks them strictly.

    python -m tests.campaigns.page_types

Requires npm, which downloads TypeScript. The exit status is 1 if TypeScript finds an error.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support.markdown_pages import ROOT

ASSETS: Final = ROOT / "kafka_msgs" / "viewer" / "assets"
TYPESCRIPT: Final = "typescript@5.6.3"
OPTIONS: Final = (
    *("--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--module", "es2022"),
    *("--lib", "es2023,dom,dom.iterable"),
)


def main() -> int:
    """Check the modules and return the exit status."""
    with tempfile.TemporaryDirectory() as home:
        install = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", home, TYPESCRIPT)
        subprocess.run(install, check=True, timeout=300)
        compiler = Path(home) / "node_modules/typescript/bin/tsc"
        return subprocess.run(["node", str(compiler), *OPTIONS, str(ASSETS / "main.js")], timeout=300).returncode


if __name__ == "__main__":
    sys.exit(main())
