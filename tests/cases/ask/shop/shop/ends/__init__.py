"""A file without a newline at its end, a class that is chosen, imports that only type checkers see."""
