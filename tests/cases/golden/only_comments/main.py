# Nothing but this.

# And this.
