"""Tests of partition logs."""
