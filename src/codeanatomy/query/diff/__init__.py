"""What differs from a commit."""
