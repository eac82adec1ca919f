"""Tests of the generated classes as a whole."""
