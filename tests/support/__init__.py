"""Helpers that several parts of the tests share."""
