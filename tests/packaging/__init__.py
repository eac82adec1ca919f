"""What the package looks like once it is built, and that it works without a compiler."""
