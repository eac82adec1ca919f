"""The C cores, which the build leaves out where it cannot compile them. Everything else stands in pyproject.toml."""

import sys
from glob import glob

from setuptools import Extension, setup

FLAGS = {"linux": ["-O3", "-fno-plt"]}
"""Linux: the same level whatever CPython was built with, and calls into CPython without a stub in between."""

PARTS = ("codec", "records", "columns", "log")
"""The packages that have a core; their headers are shared."""


def core(part: str) -> Extension:
    """Return the extension of one package."""
    return Extension(
        f"kafka_msgs.{part}._speedups",
        [f"kafka_msgs/{part}/_speedups.c"],
        depends=sorted(glob("kafka_msgs/*/_*.h")),
        extra_compile_args=FLAGS.get(sys.platform, []),
        optional=True,
    )


setup(ext_modules=[core(part) for part in PARTS])
