"""Benchmarks: one script per question, each answered by ratios to a named peer measured in the same process."""
