"""Build the diagrams that the explorer shows: boxes with links, few enough to be read.

    calls_diagram(reader, symbol, PictureAddress("flask", "calls", "flask.app.Flask")).diagram

What a visitor has expanded is in the address, so that pictures can be shared, and work without JavaScript.

    address         the address of a picture
    columns         boxes in columns beside a focus; each column is limited
    control_flow    blocks of a function, and the lines of source that belong to them
    imports         imports between modules: of a repository, of a package, around a module
    neighbours      calls and classes around a symbol

Tests: `tests/unit/serve/test_pictures.py`.
"""
