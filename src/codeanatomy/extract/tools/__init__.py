"""TODO: package map."""
