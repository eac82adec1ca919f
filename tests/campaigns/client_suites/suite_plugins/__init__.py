"""Plugins of pytest for suites in Python. A suite's own process imports them, under the name of this package alone."""
