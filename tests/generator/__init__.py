"""Tests of the generator, from definitions, through checks and resolution, to modules."""
