"""Declare the rules by which frameworks call definitions that nothing in a repository calls.

    @app.get("/items")      # Rule("fastapi", "http", call=("fastapi.*.get", ...))
    def items(): ...        # items is an entry point: http "/items"

A rule has one condition on a definition; only `base` and `name` are narrowed, by a name or a file:

| condition | a definition is an entry point if |
|---|---|
| `call` | a function of such a qualified name decorates it or, with `argument`, is called with it |
| `written` | the same, for a decorator or function that could not be resolved and is written so |
| `base` | it has such a `name`, in a class below such a base: a method or a nested class |
| `name` | it has such a name, outside of functions |
| `path` | with `name`: the file has such a path |

`*` stands for any text. Rules for users are in the setting `entry_points` of `codeanatomy.toml`:

    [[entry_points]]
    framework = "ours"
    kind = "task"
    call = ["ours.jobs.job"]

`graph.entry_points` applies the rules. Tests: `tests/unit/graph/test_entry_points.py`, with a source of
each framework in `tests/cases/entry_points`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

# First those that are called from outside of the repository: a request, a command, a message, a test runner;
# then others, that code of the repository or a library leads to.
Kind = Literal[
    "http",
    "websocket",
    "command",
    "main",
    "task",
    "event",
    "hook",
    "plugin",
    "migration",
    "test",
    "fixture",
    "callback",
    "handler",
    "dependency",
    "validator",
    "dispatch",
    "protocol",
    "interface",
    "overload",
    "typing",
    "text",
]
ROOT_KINDS = get_args(Kind)[: get_args(Kind).index("fixture") + 1]
# Definitions that are not code of their own: signatures for a type checker or for subclasses.
DECLARATION_KINDS = ("interface", "overload", "typing")
Patterns = tuple[Annotated[str, Meta(min_length=1)], ...]


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which a framework calls a definition."""

    framework: Annotated[str, Meta(min_length=1)]
    kind: Kind
    call: Patterns = ()
    written: Patterns = ()
    # Position or keyword of the argument that is registered; "*" is any. None: what is decorated.
    argument: int | str | None = None
    base: Patterns = ()
    name: Patterns = ()
    path: Patterns = ()
    # With `call`: what is decorated, or its public methods.
    target: Literal["definition", "methods"] = "definition"
    # Position of the argument whose text names the entry point; keywords such as `name` count, too.
    label: int = 0

    def __post_init__(self) -> None:
        if not (self.call or self.written or self.base or self.name or self.kind in ("main", "typing")):
            raise ValueError("a rule has no condition: give it call, written, base or name")
        if (self.call or self.written) and (self.base or self.name or self.path):
            raise ValueError("base, name and path do not narrow call and written: write two rules")
        if self.base and not self.name:
            raise ValueError("a rule with base needs a name of methods: '*' is any")


def match_any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile patterns with `*` to one regular expression for whole names.

    >>> bool(match_any(("flask.*.route", "x")).fullmatch("flask.Flask.route"))
    True
    """
    return re.compile("|".join(".*".join(map(re.escape, each.split("*"))) for each in patterns) or "(?!)")


class RuleSet:
    """Rules with their compiled patterns; what applies to a name is computed once."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        # Those that definitions fit by their name, and file, alone.
        self.by_name = [each for each in rules if each.name and not (each.base or each.call or each.written)]
        self._patterns = {
            patterns: match_any(patterns)
            for rule in rules
            for patterns in (rule.call, rule.written, rule.base, rule.name, rule.path)
        }
        # Any pattern, by whether a site has a callee: for most sites one search finds nothing.
        self._any = {
            True: match_any(pattern for rule in rules for pattern in rule.call),
            False: match_any(pattern for rule in rules for pattern in rule.written),
        }
        self._at_sites: dict[tuple[bool, str], list[Rule]] = {}
        self._of_classes: dict[frozenset[str], list[tuple[Rule, str]]] = {}

    def at_site(self, callee: str | None, written: str) -> list[Rule]:
        """Return the rules of a decorator or call: by its callee or, if it has none, by its text."""
        key = (bool(callee), callee or written)
        if key not in self._at_sites:
            rules = self.rules if self._any[key[0]].fullmatch(key[1]) else ()
            self._at_sites[key] = [
                each for each in rules if self._fits(each.call if callee else each.written, key[1])
            ]
        return self._at_sites[key]

    def of_class(self, bases: frozenset[str]) -> list[tuple[Rule, str]]:
        """Return the rules of classes with such bases, each with the first base that it names."""
        if bases not in self._of_classes:
            named = [
                (each, next((base for base in sorted(bases) if self._fits(each.base, base)), None))
                for each in self.rules
            ]
            self._of_classes[bases] = [(each, base) for each, base in named if base is not None]
        return self._of_classes[bases]

    def fits(self, rule: Rule, name: str, path: str) -> bool:
        """Whether a definition has the name, and its file the path, of a rule."""
        return self._fits(rule.name, name) and (not rule.path or self._fits(rule.path, path))

    def _fits(self, patterns: Patterns, text: str) -> bool:
        return bool(patterns) and self._patterns[patterns].fullmatch(text) is not None


@lru_cache(maxsize=4)
def rule_set(rules: tuple[Rule, ...]) -> RuleSet:
    """Return the set of some rules, which all files share."""
    return RuleSet(rules)


def _each(prefix: str, names: str) -> Patterns:
    """Return a pattern per name.

    >>> _each("a.*.", "b c")
    ('a.*.b', 'a.*.c')
    """
    return tuple(f"{prefix}{name}" for name in names.split())


VERBS = "get post put delete patch head options trace"
UNITTEST_HOOKS = (
    "setUp",
    "tearDown",
    "setUpClass",
    "tearDownClass",
    "asyncSetUp",
    "asyncTearDown",
    "runTest",
)
TEST_FILES = ("test_*.py", "*/test_*.py", "*_test.py", "tests.py", "*/tests.py", "*/conftest.py")
SPHINX_FILES = (
    "conf.py",
    "*/conf.py",
    "*sphinx*.py",
    "doc*/*.py",
    "*/docs/*.py",
    "*_ext/*.py",
    "*_exts/*.py",
)
PYTEST_SETUPS = tuple(
    f"{when}_{what}" for when in ("setup", "teardown") for what in ("method", "class", "function", "module")
)

RULES: tuple[Rule, ...] = (
    # Flask, Quart and extensions of them
    Rule("flask", "http", call=_each("flask.*.", f"route {VERBS}") + _each("quart.*.", f"route {VERBS}")),
    Rule("flask", "http", call=("flask.*.add_url_rule",), argument=2),
    Rule("flask", "http", call=("flask.*.add_url_rule",), argument="view_func"),
    Rule("flask", "http", base=("flask.views.*", "flask_restful.Resource"), name=tuple(VERBS.split())),
    Rule("flask", "http", base=("flask.views.*",), name=("dispatch_request",)),
    Rule(
        "flask",
        "handler",
        call=_each(
            "flask.*.",
            "errorhandler app_errorhandler before_request after_request teardown_request teardown_appcontext"
            " before_app_request after_app_request before_first_request context_processor"
            " app_context_processor template_filter template_test template_global app_template_filter"
            " url_defaults url_value_preprocessor shell_context_processor record record_once",
        ),
    ),
    Rule("flask", "handler", call=("flask.*.register_error_handler",), argument=1),
    Rule("werkzeug", "http", call=("werkzeug.routing.Rule", "werkzeug.routing.*.Rule"), argument="endpoint"),
    Rule("flask", "command", call=("flask.*.cli.command",), written=("*.cli.command",)),
    Rule("flask", "handler", call=("flask_login.*.user_loader", "flask_login.*.request_loader")),
    # FastAPI and Starlette
    Rule("fastapi", "http", call=_each("fastapi.*.", f"api_route route {VERBS}")),
    Rule("fastapi", "websocket", call=_each("fastapi.*.", "websocket websocket_route")),
    Rule("fastapi", "http", call=("fastapi.*.add_api_route",), argument=1),
    Rule("fastapi", "handler", call=_each("fastapi.*.", "exception_handler middleware on_event")),
    Rule(
        "fastapi", "dependency", call=("fastapi.Depends", "fastapi.*.Depends", "fastapi.Security"), argument=0
    ),
    Rule("starlette", "http", call=("starlette.*.route", "starlette.*.exception_handler")),
    Rule("starlette", "http", call=("starlette.routing.Route",), argument=1),
    Rule("starlette", "http", call=("starlette.routing.Route",), argument="endpoint"),
    Rule("starlette", "websocket", call=("starlette.routing.WebSocketRoute",), argument=1),
    Rule("starlette", "http", call=("starlette.*.add_route",), argument=1),
    Rule("starlette", "http", base=("starlette.endpoints.HTTPEndpoint",), name=tuple(VERBS.split())),
    Rule("starlette", "handler", base=("starlette.middleware.*",), name=("dispatch",)),
    Rule("aiohttp", "http", call=_each("aiohttp.web.*.", f"view {VERBS}")),
    Rule("aiohttp", "http", call=_each("aiohttp.*.add_", f"{VERBS} view"), argument=1),
    Rule("aiohttp", "http", call=("aiohttp.*.add_route",), argument=2, label=1),
    Rule("routes", "http", written=_each("*.", f"route {VERBS} websocket api_route")),
    # Django
    Rule(
        "django", "http", call=("django.urls.path", "django.urls.re_path", "django.conf.urls.url"), argument=1
    ),
    Rule("django", "http", base=("django.views.*", "rest_framework.*"), name=tuple(VERBS.split())),
    Rule(
        "django",
        "http",
        base=("rest_framework.*",),
        name=("list", "create", "retrieve", "update", "destroy"),
    ),
    Rule("django", "http", call=("rest_framework.decorators.action", "rest_framework.decorators.api_view")),
    Rule("django", "command", base=("django.core.management.*",), name=("handle", "add_arguments")),
    Rule("django", "command", name=("Command",), path=("*management/commands/*.py",)),
    Rule("django", "event", call=("django.dispatch.receiver", "django.dispatch.*.receiver")),
    Rule("django", "event", call=("django.*.connect",), argument=0),
    Rule("django", "plugin", call=("django.contrib.admin.register", "django.contrib.admin.*.register")),
    Rule("django", "plugin", base=("django.apps.*",), name=("ready",)),
    Rule(
        "django", "handler", call=_each("django.*.", "filter simple_tag inclusion_tag simple_block_tag tag")
    ),
    Rule("django", "migration", call=("django.db.migrations.*RunPython",), argument=0),
    Rule("django", "migration", call=("django.db.migrations.*RunPython",), argument=1),
    Rule("django", "migration", name=("Migration",), path=("*migrations/*.py",)),
    Rule("django", "handler", call=("django.core.checks.register",)),
    Rule("django", "handler", base=("django.*",), name=("Meta",)),
    # Tasks
    Rule("celery", "task", call=("celery.shared_task", "celery.*.task", "celery.*.shared_task")),
    Rule("celery", "event", call=("celery.signals.*.connect", "celery.*.connect")),
    Rule("celery", "task", base=("celery.*Task",), name=("run",)),
    Rule("jobs", "task", call=("huey.*.task", "dramatiq.actor", "rq.*.job", "apscheduler.*.scheduled_job")),
    Rule("jobs", "task", call=("apscheduler.*.add_job",), argument=0),
    # Commands
    Rule(
        "click",
        "command",
        call=("click.*command", "click.*group", "rich_click.*command", "rich_click.*group"),
    ),
    Rule("click", "command", written=("*.command", "*.group")),
    Rule("click", "callback", call=("click.*result_callback",)),
    Rule("click", "callback", call=("click.*option", "click.*argument", "click.Option"), argument="callback"),
    Rule("typer", "command", call=("typer.*.command", "typer.*.callback")),
    Rule("typer", "command", call=("typer.run",), argument=0),
    Rule("argparse", "command", call=("argparse.*.set_defaults",), argument="*"),
    Rule("argparse", "command", written=("*.set_defaults",), argument="func"),
    Rule("argparse", "callback", call=("argparse.*.add_argument",), argument="type"),
    Rule("argparse", "callback", call=("argparse.*.add_argument",), argument="action"),
    Rule("setuptools", "command", base=("setuptools.*", "distutils.*"), name=("run", "*_options")),
    # Tests
    Rule("pytest", "test", name=("test*", "Test*"), path=TEST_FILES),
    Rule("pytest", "fixture", call=("pytest.fixture", "pytest.yield_fixture", "pytest_asyncio.fixture")),
    Rule("pytest", "hook", name=("pytest_*",)),
    Rule("pytest", "hook", call=("pytest.hookimpl", "pytest.hookspec")),
    Rule("pytest", "hook", name=PYTEST_SETUPS, path=TEST_FILES),
    Rule("unittest", "test", base=("unittest.*", "django.test.*", "twisted.trial.*"), name=("test*",)),
    Rule("unittest", "hook", base=("unittest.*", "django.test.*", "twisted.trial.*"), name=UNITTEST_HOOKS),
    Rule("unittest", "hook", name=("load_tests", "setUpModule", "tearDownModule")),
    # Plugins and events
    Rule("pluggy", "hook", call=("pluggy.*",), written=("hookimpl", "*.hookimpl", "hookspec")),
    Rule("sphinx", "plugin", name=("setup",), path=SPHINX_FILES),
    Rule("sphinx", "event", call=("sphinx.*.connect",), written=("app.connect",), argument=1),
    Rule("sphinx", "plugin", call=("sphinx.*.add_*",), written=("app.add_*",), argument="*"),
    Rule("docutils", "handler", base=("docutils.*", "sphinx.*"), name=("visit_*", "depart_*", "run")),
    Rule("scrapy", "handler", base=("scrapy.*Spider",), name=("parse*", "start*", "closed", "from_crawler")),
    Rule(
        "scrapy",
        "handler",
        name=(
            "process_item",
            "process_request",
            "process_response",
            "process_exception",
            "process_spider_input",
            "process_spider_output",
            "process_spider_exception",
            "open_spider",
            "close_spider",
            "from_crawler",
        ),
    ),
    Rule("twisted", "callback", call=("twisted.*.callLater",), written=("reactor.callLater",), argument=1),
    Rule("twisted", "callback", written=_each("*.", "addCallback addErrback addBoth"), argument="*"),
    Rule("zope", "interface", call=("zope.interface.*implementer",), target="methods"),
    Rule("asyncio", "callback", call=("asyncio.*.call_soon*", "asyncio.*.run_in_executor"), argument="*"),
    Rule("asyncio", "callback", call=("asyncio.*.call_later", "asyncio.*.call_at"), argument=1),
    Rule("asyncio", "event", call=("asyncio.*.add_signal_handler", "signal.signal"), argument=1),
    Rule(
        "asyncio",
        "handler",
        base=("asyncio.*Protocol",),
        name=("*_made", "*_lost", "*_received", "*_writing"),
    ),
    Rule("threading", "callback", call=("threading.*", "multiprocessing.*"), argument="target"),
    Rule("atexit", "event", call=("atexit.register",)),
    Rule("atexit", "event", call=("atexit.register",), argument=0),
    Rule("functools", "dispatch", call=("functools.*.register",), written=("*.register",)),
    # Databases and data classes
    Rule("alembic", "migration", name=("upgrade", "downgrade"), path=("*versions/*.py", "*migrations/*.py")),
    Rule("alembic", "migration", name=("run_migrations_*",), path=("*env.py",)),
    Rule("sqlalchemy", "event", call=("sqlalchemy.event.listens_for", "sqlalchemy.event.*.listens_for")),
    Rule("sqlalchemy", "event", call=("sqlalchemy.event.listen", "sqlalchemy.event.*.listen"), argument=2),
    Rule("sqlalchemy", "validator", call=("sqlalchemy.orm.validates", "sqlalchemy.orm.reconstructor")),
    Rule("sqlalchemy", "handler", call=("sqlalchemy.*.declared_attr", "sqlalchemy.*.compiles")),
    Rule(
        "pydantic",
        "validator",
        call=(
            *_each("pydantic.*", "validator validate_arguments"),
            *_each("pydantic.*", "model_serializer field_serializer computed_field root_serializer"),
        ),
    ),
    Rule("pydantic", "handler", base=("pydantic.*",), name=("Config",)),
    Rule(
        "attrs", "validator", call=("attr*.validator", "attr*.default"), written=("*.validator", "*.default")
    ),
    Rule("wtforms", "validator", base=("wtforms.*",), name=("validate_*", "process_*", "pre_validate")),
    # Python itself
    Rule("python", "protocol", name=("__*__",)),
    Rule("python", "protocol", base=("enum.*",), name=("_missing_", "_generate_next_value_")),
    Rule("ipython", "protocol", name=("_repr_*_", "_ipython_*_")),
    Rule("python", "interface", call=("abc.abstract*",)),
    Rule("python", "interface", base=("typing.Protocol", "typing_extensions.Protocol"), name=("*",)),
    Rule("python", "interface", base=("zope.interface.Interface",), name=("*",)),
    Rule("python", "overload", call=("typing.overload", "typing_extensions.overload")),
    Rule("python", "handler", base=("http.server.*",), name=("do_*",)),
    Rule("python", "handler", base=("ast.*", "*.NodeVisitor", "*.NodeTransformer"), name=("visit_*",)),
    Rule("python", "handler", base=("cmd.Cmd",), name=("do_*", "help_*", "complete_*")),
    Rule("python", "handler", base=("html.parser.*",), name=("handle_*",)),
)

# What makes or runs a web application: without it routes are parts of a library for other programs.
APPLICATIONS: Patterns = (
    *_each("flask.*", "Flask"),
    *_each("quart.*", "Quart"),
    *_each("fastapi.*", "FastAPI"),
    *_each("starlette.*", "Starlette"),
    *_each("aiohttp.web*.", "Application run_app"),
    *_each("django.core.", "wsgi.get_wsgi_application asgi.get_asgi_application"),
    *_each("django.core.management.", "execute_from_command_line"),
    "sanic.*Sanic",
    "tornado.web.Application",
    "bottle.run",
)

# Decorators that call or replace what they decorate, and do not register it anywhere.
PLAIN_DECORATORS: Patterns = (
    *_each("builtins.", "property staticmethod classmethod"),
    *_each("functools.", "wraps lru_cache cache cached_property total_ordering partialmethod"),
    *_each("contextlib.", "contextmanager asynccontextmanager"),
    *_each("typing*.", "final override no_type_check runtime_checkable deprecated"),
    *_each("dataclasses.", "dataclass"),
    *_each("attr*.", "s attrs define frozen mutable dataclass"),
    *_each("enum.", "unique verify"),
    *_each("warnings.", "deprecated"),
    *_each("pytest.mark.", "*"),
    "unittest.mock.patch*",
)
