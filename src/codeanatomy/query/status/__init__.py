"""What was built, when, and whether it still holds."""
