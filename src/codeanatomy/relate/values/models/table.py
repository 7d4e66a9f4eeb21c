"""Read the table of models: which function models each external function.

    MODELS["functools.partial"](ModelCall(state, call, obj, "functools.partial"))

The table is `models.txt`; a mistake in it fails the import.

Tests: `tests/unit/relate/test_models.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from inspect import signature
from typing import Any

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.external_names import read_table
from codeanatomy.relate.values.models import builtins, library
from codeanatomy.relate.values.models.builtins import Model
from codeanatomy.relate.values.models.model_call import ModelCall
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.values.state import Call, State

FUNCTIONS: Mapping[str, Model] = {**vars(builtins), **vars(library)}


def read_models(text: str) -> dict[str, Model]:
    r"""Return the models of a table by the names of their functions.

    >>> list(read_models("return_instance cls=re.Match\n    re.{match,search}"))
    ['re.match', 're.search']
    """
    models: dict[str, Model] = {}
    for head, names in read_table(text):
        function, *options = head.split()
        model = partial(FUNCTIONS[function], **dict(map(_option, options)))
        # Raises a TypeError if the model has no such option.
        signature(model).bind(None)
        for name in names:
            if name in models:
                raise ValueError(f"{name} has two models")
            models[name] = model
    return models


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if name in ("names", "fields"):
        return name, tuple(value.split(","))
    if value.startswith("OBJ_"):
        return name, getattr(ir, value)
    return name, int(value) if value.isdigit() else value


MODELS = read_models(files(__package__).joinpath("models.txt").read_text(encoding="utf-8"))


def call_container_method(state: State, container: Object, name: str, call: Call) -> None:
    """Call a method of a list, tuple, dict, set or generator."""
    model = MODELS.get(f"[].{name}")
    if model is not None:
        model(ModelCall(state, call, container, name))
