"""Tests of reports: their sections and output files."""
