"""Pytest plugins for Python suites. The process of a suite imports them with this package as a top-level package."""
