"""Benchmarks: one script a question, each answered by ratios against a named peer measured in the same process."""
