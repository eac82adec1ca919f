"""Reports: what they consist of, and the files that they are written to."""
