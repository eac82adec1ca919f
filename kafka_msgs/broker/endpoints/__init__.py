"""HTTP endpoints of an embedded broker: remote control, and a schema registry. They run in the broker's event loop."""
