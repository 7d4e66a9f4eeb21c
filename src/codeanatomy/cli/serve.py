"""Show a lake in a browser.

    codeanatomy explore --lake lake --open

Tests: `tests/unit/serve/test_server.py`.
"""

from __future__ import annotations

import click

from codeanatomy.cli.options import lake_option


@click.command()
@lake_option
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen at. Any but loopback needs the token that is printed.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def explore(lake: str, port: int, host: str, open_browser: bool) -> None:
    """Show a lake in a browser: source, symbols, pictures, flows, runs, SQL."""
    # Imported here: a usage error should not wait for the server.
    from codeanatomy.lake.snapshot import Snapshot
    from codeanatomy.serve.explorer.server import serve

    # A missing lake is reported before the server starts.
    Snapshot.open(lake)
    serve(lake, host=host, port=port, open_browser=open_browser, report=click.echo)
