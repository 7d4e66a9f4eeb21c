"""What `unused` holds back and what it lists, by rule: small programs, one per repository."""

from __future__ import annotations

from textwrap import dedent

import pytest

from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.verbs.unused import COLUMNS, unused
from support.ask_lake import reader_of
from support.light_builds import clean_lake

SOURCES = {
    # A program: it answers requests of a framework from outside, and exports no names.
    "web": {
        "web/__init__.py": "",
        "web/app.py": """
            import importlib
            from flask import Flask, current_app
            from web import tables, vendor

            app = Flask(__name__)
            CODE = '''
            if kwargs:
                params = self._encode_all(kwargs)
            '''

            @app.route("/")
            def index():
                load("one")
                current_app.manager._refresh()
                return tables.TABLE

            def load(name):
                return importlib.import_module("web.plugins." + name)

            def leftover():
                return 1

            class Manager:
                def _refresh(self):
                    return 1

                def _encode_all(self, kwargs):
                    return kwargs

                def _forgotten(self):
                    return 1
            manager = Manager()
        """,
        "web/plugins/__init__.py": "",
        "web/plugins/one.py": "class Plugin:\n    pass\n",
        "web/tables.py": "def by_name():\n    return 1\nTABLE = dict(globals())\n",
        "web/vendor/__init__.py": "def copied():\n    return 1\n",
    },
    # Routes for the applications of others: nothing makes one here, but for an example.
    "parts": {
        "parts/__init__.py": "",
        "parts/views.py": """
            from flask import Blueprint
            from parts.errors import Refused

            pages = Blueprint("pages", __name__)

            @pages.route("/")
            def index():
                raise Refused
        """,
        "parts/errors.py": "class Refused(Exception):\n    pass\n\nclass Timeout(Exception):\n    pass\n",
        "examples/run.py": "from flask import Flask\nfrom parts.views import pages\napp = Flask(__name__)\n",
    },
    # A module that a statement imports, for another name, and that a loop over strings imports too.
    "tokens": {
        "tokens/__init__.py": "",
        "tokens/app.py": """
            import importlib
            from flask import Flask
            from tokens.kinds.one import LIMIT
            from tokens.other import OTHER

            app = Flask(__name__)
            KINDS = {"tokens.kinds.one"}

            @app.route("/")
            def index():
                return [importlib.import_module(name) for name in KINDS], LIMIT, OTHER
        """,
        "tokens/kinds/__init__.py": "",
        "tokens/kinds/one.py": "LIMIT = 1\nclass One:\n    pass\n",
        "tokens/other.py": "OTHER = 1\nclass Other:\n    pass\n",
    },
    # Classes that `type` makes.
    "made": {
        "made/__init__.py": "",
        "made/parser.py": """
            class _Strict:
                def _normal(self):
                    return 1
            class _Mixin:
                def parse(self):
                    return self._normal()
                def _normal(self):
                    raise NotImplementedError
                def _idle(self):
                    return 1
            class _Other:
                def _idle_too(self):
                    return 1
            Parser = type("Parser", (_Strict, _Mixin), {})
            kind = type(_Other())
        """,
    },
    # A file that no interpreter of today parses: what it has and what it uses is not known to be dead.
    "torn": {
        "torn/__init__.py": "",
        "torn/tools.py": "def _saw():\n    return 1\n\ndef _rust():\n    def saw():\n        return 1\n",
        "torn/work.py": "from torn.tools import _saw\n\ndef _cut():\n    return _saw(\n\ndef _idle(): ...\n",
    },
    # The framework itself: a library, although it has routes.
    "flask": {
        "flask/__init__.py": """
            class Flask:
                def route(self, rule):
                    def register(function):
                        return function
                    return register

            def helper():
                return 1
        """,
        "flask/demo.py": """
            from flask import Flask
            app = Flask()
            @app.route("/")
            def index():
                return 1
        """,
    },
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LightReader:
    folder = tmp_path_factory.mktemp("rules")
    for repo, files in SOURCES.items():
        for name, text in files.items():
            path = folder / repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))
    lake = folder / "lake"
    assert clean_lake(lake, {repo: folder / repo for repo in SOURCES}).status == "succeeded"
    return reader_of(lake)


def verdicts(reader: LightReader, repo: str) -> dict[str, tuple[float, str]]:
    """Confidence and method of each definition, by its name."""
    rows = reader.rows(unused(reader, min_confidence=0.0, repo_id=repo).query)
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    return {row["symbol"].removeprefix(f"{repo}."): (row["confidence"], row["method"]) for row in found}


def test_a_program_has_no_other_users(reader: LightReader) -> None:
    assert verdicts(reader, "web") == {
        "app.index": (0.0, "entry point"),
        "app.leftover": (0.7, "program"),
        # `current_app` is of the framework, and may give ours.
        "app.Manager._refresh": (0.3, "uncertain"),
        # In the text of code that is compiled later.
        "app.Manager._encode_all": (0.3, "text"),
        "app.Manager._forgotten": (0.9, "not named"),
        # No statement imports its module, and modules are imported by computed names.
        "plugins.one.Plugin": (0.3, "loaded"),
        "tables.by_name": (0.3, "loaded"),
        # A copy of a library has more than the program uses.
        "vendor.copied": (0.5, "public"),
    }


def test_what_a_module_has_that_a_string_names_may_be_used(reader: LightReader) -> None:
    found = verdicts(reader, "tokens")
    assert found["kinds.one.One"] == (0.3, "loaded")
    assert found["other.Other"] == (0.7, "program")


def test_a_framework_is_a_library(reader: LightReader) -> None:
    assert verdicts(reader, "flask")["helper"] == (0.5, "public")


def test_routes_for_other_programs_are_a_library(reader: LightReader) -> None:
    assert verdicts(reader, "parts")["errors.Timeout"] == (0.5, "public")


def test_a_class_that_type_makes_may_use_its_bases(reader: LightReader) -> None:
    assert verdicts(reader, "made") == {
        "parser._Strict._normal": (0.3, "base outside"),
        "parser._Mixin.parse": (0.3, "base outside"),
        "parser._Mixin._idle": (0.3, "base outside"),
        "parser._Other._idle_too": (0.9, "not named"),
    }


def test_a_file_that_was_not_parsed_may_use_what_it_names(reader: LightReader) -> None:
    found = verdicts(reader, "torn")
    assert found.pop("tools._rust") == (0.9, "not named")
    assert found["tools._saw"] == (0.3, "unparsed")
    assert {method for _, method in found.values()} == {"unparsed"}
