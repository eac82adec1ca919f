"""What the records of internal topics mean, read, written, replayed and described."""
