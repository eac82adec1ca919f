"""Tests of the generator: definitions in, checked and resolved, modules out."""
