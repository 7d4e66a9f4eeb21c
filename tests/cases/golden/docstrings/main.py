"""Module text.

In two parts.
"""


class Documented:
    'Class text.'

    def method(self):
        r"""Method text with \d."""

    value = 1
    "not a docstring"


async def alone():
    "Function " "text."
