"""Tests of client quotas."""
