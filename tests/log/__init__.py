"""Tests of reading and writing the contents of a broker's log directory."""
