"""What differs from a commit, or between two runs."""
