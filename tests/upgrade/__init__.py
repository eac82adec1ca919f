"""Tests of upgrade checks."""
