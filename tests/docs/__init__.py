"""Tests of what a reader is shown: every page, its examples, and the demo."""
