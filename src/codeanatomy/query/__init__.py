"""Questions about a lake; they only read."""
