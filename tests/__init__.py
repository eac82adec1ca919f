"""Tests of kafka-msgs, and the tools that make their data."""
