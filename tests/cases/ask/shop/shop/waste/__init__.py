"""What nothing uses, what goes in circles, and what cannot be resolved."""
