"""Tests of the built package, including its operation without a compiler."""
