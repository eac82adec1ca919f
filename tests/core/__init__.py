"""Tests of the C core: arguments that its own callers never pass."""
