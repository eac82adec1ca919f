"""Tests of kafka-msgs, and the tools that produce their data."""
