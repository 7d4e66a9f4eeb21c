"""`python -m codeanatomy` is the command too."""

from __future__ import annotations

from codeanatomy.cli.main import main

if __name__ == "__main__":
    main()
