"""Tests of the C core: arguments that its own callers never pass.

Subprocesses of these tests load the instrumented core as well, see ``tests.support.instrumented``.
"""

import os
from importlib import import_module

if "KAFKA_MSGS_TEST_CORE" in os.environ:
    import_module("tests.support.instrumented")
