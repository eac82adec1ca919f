"""Committed offsets: commit, fetch, delete, expiry, and offsets in transactions."""
