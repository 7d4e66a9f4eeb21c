#!/usr/bin/env python
# At the top.


def f():  # at the end of a line
    # Before the body.
    return [
        1,  # inside
    ]  # type: ignore[return]


# At the end, without a newline.