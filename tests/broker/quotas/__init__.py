"""Tests of quotas of clients."""
