"""The C core, which the build leaves out where it cannot compile it. Everything else stands in pyproject.toml."""

import sys

from setuptools import Extension, setup

FLAGS = {"linux": ["-O3", "-fno-plt"]}
"""Linux: the same level whatever CPython was built with, and calls into CPython without a stub in between."""

CODEC = "kafka_msgs/codec"

setup(
    ext_modules=[
        Extension(
            "kafka_msgs.codec._speedups",
            [f"{CODEC}/_speedups.c"],
            depends=[f"{CODEC}/_bytes.h", f"{CODEC}/_compat.h", f"{CODEC}/_ops.h"],
            extra_compile_args=FLAGS.get(sys.platform, []),
            optional=True,
        )
    ]
)
