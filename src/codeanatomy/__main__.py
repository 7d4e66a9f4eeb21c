"""Run the command line as `python -m codeanatomy`."""

from __future__ import annotations

from codeanatomy.cli.main import main

if __name__ == "__main__":
    main()
