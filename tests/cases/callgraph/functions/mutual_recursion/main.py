from even import is_even

is_even(4)
