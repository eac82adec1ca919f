"""``python -m tests.campaigns.fuzz TARGET FOLDER [libFuzzer options]``: runs the fuzzer, like ``make fuzz``.

The folder contains the inputs with new coverage (``corpus``), the seeds, and the failing inputs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tests.support.instrumented  # noqa: F401 - first, so that the instrumented C core is the one that is loaded

import atheris  # isort: skip

from kafka_msgs.codec.executors import EXECUTORS  # isort: skip
from kafka_msgs._backend import backend  # isort: skip
from tests.campaigns.fuzz import seeds  # isort: skip
from tests.campaigns.fuzz.targets import TARGETS  # isort: skip


def main() -> None:
    """Run until the time limit, or until an input breaks the property; the fuzzer saves that input in the folder."""
    assert "c" in EXECUTORS, "the instrumented C core cannot be loaded"
    assert backend() == "c", "another backend was chosen"
    target, folder = TARGETS[sys.argv[1]], Path(sys.argv[2])
    print(f"{seeds.write(folder / 'seeds', target.seeds(), target.MAX_SIZE)} seeds", file=sys.stderr)
    (folder / "corpus").mkdir(exist_ok=True)
    options = [
        f"-artifact_prefix={folder}/",
        f"-max_len={target.MAX_SIZE}",
        *sys.argv[3:],
        str(folder / "corpus"),
        str(folder / "seeds"),
    ]
    atheris.Setup([sys.argv[0], *options], target.check, enable_python_coverage=False)
    atheris.Fuzz()


main()
