"""The C core, which the build leaves out where it cannot compile it. Everything else stands in pyproject.toml."""

import sys
from glob import glob

from setuptools import Extension, setup

FLAGS = {"linux": ["-O3", "-fno-plt", "-fvisibility=hidden", "-g0"]}
"""On Linux, every CPython builds with the same level, and calls go without a stub. Debug data would be four fifths of
the file."""

CORE = Extension(
    "kafka_msgs._core.extension",
    sorted(glob("kafka_msgs/_core/*.c")),
    depends=sorted(glob("kafka_msgs/_core/*.h")),
    extra_compile_args=FLAGS.get(sys.platform, []),
    optional=True,
)

setup(ext_modules=[CORE] if CORE.sources else [])
