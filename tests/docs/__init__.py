"""Tests of everything that readers see: all pages, their examples, and the demo."""
