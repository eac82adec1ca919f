"""Tests of internal topic records: reading, writing, replaying and describing."""
