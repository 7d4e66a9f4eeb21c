"""Reports of a type checker as rows: recorded small ones, and ones that lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Problem
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.pyrefly.names import positions_in, span_of
from codeanatomy.extract.pyrefly.report import ModuleCallGraphs, Project, read_report_file
from codeanatomy.extract.type_checker_files import (
    TYPES,
    CheckerReport,
    TypesPartition,
    extract_types,
    failed_report,
    partition_reports,
    report_chunks,
)
from codeanatomy.extract.worker import extract_task
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.source_file import Source, decode

Json = dict[str, Any]
USE = "from base import Base\ndef f(b):\n    é = b; é.run()\n    return Base(1)\n"
BASE = "class Base:\n    def run(self): ...\n    def __init__(self, x): ...\n"
FORMAT = {"format_version": 1}


def ref(function_id: str, name: str, module_id: int = 2) -> Json:
    module = {1: "use", 2: "base", 9: "builtins"}.get(module_id, "elsewhere")
    return {
        "module_id": module_id,
        "module_name": module,
        "function_id": function_id,
        "function_name": name,
    }


def class_ref(class_id: int = 0, name: str = "Base", module_id: int = 2) -> Json:
    return {"module_id": module_id, "module_name": "base", "class_id": class_id, "class_name": name}


def target(function: Json, how: str = "Function", receiver: Json | None = None) -> Json:
    found: Json = {"target": {how: function}}
    return found if receiver is None else found | {"receiver_class": receiver}


class Report:
    """A report on two files, to be changed by a test before its rows are read."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.folder = folder / "tree", folder / "report"
        self.tree.mkdir()
        self.sources = {"use.py": USE.encode(), "base.py": BASE.encode()}
        self.modules: Json = {
            "1": self.module("use", "use.py"),
            "2": self.module("base", "base.py"),
            "9": {
                "module_name": "builtins",
                "info_filename": "builtins:9.json",
                "source_path": {"BundledTypeshed": "builtins.pyi"},
            },
        }
        self.parts: dict[str, Any] = {}
        for name in ("use:1", "base:2", "builtins:9"):
            self.parts[f"call_graphs/{name}.json"] = {**FORMAT, "call_graphs": {}}
            self.parts[f"type_of_expressions/{name}.json"] = {**FORMAT, "functions": {}}
            self.parts[f"definitions/{name}.json"] = {
                **FORMAT,
                "function_definitions": {},
                "class_definitions": {},
            }
        self.define(
            "base:2",
            {
                "F:0": ("run", "2:9-2:12", {"Class": {"class_id": 0}}),
                "F:1": ("__init__", "3:9-3:17", {"Class": {"class_id": 0}}),
                "CF:0:1": ("__eq__", None, {"Class": {"class_id": 0}}),
            },
            {"0": ("Base", "1:7-1:11", "TopLevel")},
        )

    def module(self, name: str, path: str) -> Json:
        number = {"use": 1, "base": 2}.get(name, 3)
        place = {"FileSystem": f"{self.tree}/{path}"}
        return {"module_name": name, "info_filename": f"{name}:{number}.json", "source_path": place}

    def define(self, name: str, functions: Json, classes: Json) -> None:
        def each(told: Json) -> Json:
            return {
                key: {"name": name, "parent": parent} | ({"name_location": place} if place else {})
                for key, (name, place, parent) in told.items()
            }

        self.parts[f"definitions/{name}.json"] = {
            **FORMAT,
            "function_definitions": each(functions),
            "class_definitions": each(classes),
        }

    def calls(self, places: Json, name: str = "use:1") -> None:
        self.parts[f"call_graphs/{name}.json"] = {**FORMAT, "call_graphs": {"F:0": places}}

    def types(self, table: list[Json], locations: dict[str, int]) -> None:
        functions = {"F:0": {"type_table": table, "locations": locations}}
        self.parts["type_of_expressions/use:1.json"] = {**FORMAT, "functions": functions}

    def share(self) -> TypesPartition:
        for path, raw in self.sources.items():
            (self.tree / path).write_bytes(raw)
        project = {**FORMAT, "modules": self.modules}
        for name, part in {**self.parts, "pyrefly.pysa.json": project}.items():
            place = self.folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(part if isinstance(part, bytes) else json.dumps(part).encode())
        entries = [
            Entry(path, str(self.tree / path), len(raw), 0, path.endswith("i"), None)
            for path, raw in self.sources.items()
        ]
        root = RepositoryRoot("r", "folder", str(self.tree))
        (share,) = partition_reports(
            [(CheckerReport(root, str(self.folder), str(self.tree), "by hand"), entries)]
        )
        return share

    def rows(self) -> dict[str, Json]:
        found = extract_types(self.share(), ExtractOptions(), {}, lambda file, step: None)
        return {rows["file"]["path"]: rows for rows in found}

    def row(self, path: str = "use.py") -> Json:
        row: Json = self.rows()[path][TYPES]
        return row


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return Report(tmp_path)


def listed(cells: Json, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(cells[name] for name in names), strict=True))


def told(row: Json) -> list[tuple[Any, ...]]:
    fields = ("call_form", "target_name", "receiver_class", "is_override_candidate")
    return listed(row["call_targets"], *fields)


def problems(row: Json) -> list[str]:
    return list(row["errors"]["error_type"])


def text_at(source: bytes, bstart: int, bend: int) -> str:
    return source[bstart:bend].decode()


def test_a_method_is_named_and_placed_in_both_files(report: Report) -> None:
    run = target(ref("F:0", "run"), "Overrides", class_ref())
    report.calls({"3:13-3:21": {"Call": {"call_targets": [run]}}})
    row = report.row()
    calls = row["call_targets"]
    assert told(row) == [("call", "base.Base.run", "base.Base", True)]
    ((start, end),) = listed(calls, "call_bstart", "call_bend")
    assert text_at(USE.encode(), start, end) == "é.run()"
    ((path, start, end),) = listed(calls, "target_path", "target_bstart", "target_bend")
    assert (path, text_at(BASE.encode(), start, end)) == ("base.py", "run")
    assert (calls["target_module"], row["witness_version"], problems(row)) == (["base"], "by hand", [])


def test_forms_of_calls(report: Report) -> None:
    init = target(ref("F:1", "__init__"), receiver=class_ref())
    run = [target(ref("F:0", "run"))]
    unresolved = {"unresolved": {"True": "UnexpectedPyreflyTarget"}}
    report.calls(
        {
            "4:12-4:19": {
                "Call": {
                    "init_targets": [init],
                    "new_targets": [target(ref("F:3", "__new__", 9))],
                    "higher_order_parameters": {"0": {"index": 0, "call_targets": run, **unresolved}},
                }
            },
            "1:1-1:2|artificial-call|chained-assign:1>subscript-set-item": {"Call": {"call_targets": run}},
            "1:1-1:3|artificial-call|for-next": {"Call": {"call_targets": run}},
            "1:1-1:4|artificial-call|slice": {"Call": {"call_targets": run}},
            "1:1-1:5|format-string-stringify": {"FormatStringStringify": {"targets": run}},
            "1:1-1:5|format-string-artificial": {
                "FormatStringArtificial": {"targets": [{"target": "Format"}]}
            },
            "1:1-1:6": {"AttributeAccess": {"if_called": {}, "property_setters": run, "is_attribute": True}},
            "1:1-1:7|identifier|Base": {"Identifier": {"if_called": {"init_targets": [init], **unresolved}}},
            "1:1-1:8|artificial-call|news-of-tomorrow": {"Call": unresolved},
            "2:1-3:5": {"Define": {"define_targets": run}},
        }
    )
    report.define(
        "builtins:9",
        {"F:3": ("__new__", "1:1-1:2", {"Class": {"class_id": 0}})},
        {"0": ("object", None, "TopLevel")},
    )
    row = report.row()
    assert told(row) == [
        ("subscript", "base.Base.run", None, False),
        ("iteration", "base.Base.run", None, False),
        ("format", "base.Base.run", None, False),
        ("property", "base.Base.run", None, False),
        ("reference", "base.Base.__init__", "base.Base", False),
        ("argument", "base.Base.run", None, False),
        ("init", "base.Base.__init__", "base.Base", False),
    ]
    assert row["call_targets"]["argument_index"] == [None] * 5 + [0, None]
    assert listed(row["unresolved_calls"], "call_form", "reason") == [
        ("other", "UnexpectedPyreflyTarget"),
        ("argument", "UnexpectedPyreflyTarget"),
    ]


def test_names_of_the_nested_the_foreign_and_the_undefined(report: Report) -> None:
    report.modules["3"] = report.module("__unknown__", "odd-name.py") | {"info_filename": "odd:3.json"}
    report.sources["odd-name.py"] = b"def g(): ...\n"
    report.define("odd:3", {"F:0": ("g", "1:5-1:6", "TopLevel")}, {})
    for part in ("call_graphs", "type_of_expressions"):
        report.parts[f"{part}/odd:3.json"] = report.parts[f"{part}/base:2.json"]
    report.define(
        "use:1",
        {
            "F:0": ("f", "2:5-2:6", "TopLevel"),
            "F:1": ("g", "2:5-2:6", {"Function": {"func_def_index": 0}}),
            "F:2": ("h", "2:5-2:6", {"Class": {"class_id": 1}}),
            "F:3": ("loop", "2:5-2:6", {"Function": {"func_def_index": 3}}),
        },
        {"0": ("A", None, {"Function": {"func_def_index": 0}}), "1": ("B", None, {"Class": {"class_id": 0}})},
    )
    functions = [ref(f"F:{number}", "x", 1) for number in range(3)]
    functions += [ref("F:0", "g", 3), ref("CF:0:1", "__eq__"), ref("F:7", "len", 9), ref("F:0", "gone", 77)]
    report.calls({"1:1-1:2": {"Call": {"call_targets": [target(each) for each in functions]}}})
    calls = report.row()["call_targets"]
    assert listed(calls, "target_name", "target_path", "target_bstart") == [
        ("base.Base.__eq__", "base.py", None),
        ("builtins.len", None, None),
        ("elsewhere.gone", None, None),
        ("odd-name.g", "odd-name.py", 4),
        ("use.f", "use.py", 26),
        ("use.f.A.B.h", "use.py", 26),
        ("use.f.g", "use.py", 26),
    ]
    report.calls({"1:1-1:2": {"Call": {"call_targets": [target(ref("F:3", "x", 1))]}}})
    (name,) = report.row()["call_targets"]["target_name"]
    assert len(name) < 2000


def test_types_are_kept_where_they_name_a_class_or_a_module(report: Report) -> None:
    def known(text: str, *modifiers: str, whole: bool = True) -> Json:
        classes = [{"class": class_ref(), "modifiers": list(modifiers)}]
        return {"string": text, "class_names": {"classes": classes, "is_exhaustive": whole}}

    report.types(
        [
            known("base.Base | None", "Optional"),
            known("type[base.Base]", "Type"),
            known("Coroutine[base.Base]", "Coroutine"),
            {"string": "Unknown"},
            {"string": "Module[os]"},
            known("x" * 10_000, whole=False),
        ],
        {
            "3:9-3:10": 3,
            **{f"1:{col}-1:{col + 1}": number for col, number in enumerate((0, 1, 2, 4, 5, 99), 1)},
        },
    )
    types = report.row()["expression_types"]
    assert listed(types, "bstart", "class_names", "class_object_names", "is_exhaustive") == [
        (0, ["base.Base"], [], True),
        (1, [], ["base.Base"], True),
        (2, [], [], False),
        (3, [], [], False),
        (4, ["base.Base"], [], False),
    ]
    assert (types["type_repr"][3], len(types["type_repr"][4])) == ("Module[os]", 256)


@pytest.mark.parametrize(
    ("raw", "location", "found"),
    [
        (b"\xef\xbb\xbfopen(1)\n", "1:4-1:11", "open(1)"),
        ("é='😀'; g()\r\n\x0cg(2)\r\n".encode(), "2:2-2:6", "g(2)"),
        ("é='😀'; g()\r".encode(), "1:12-1:15", "g()"),
        ("s='\u2028'; g()\n".encode(), "1:10-1:13", "g()"),
        (b"x = 1\n", "1:1-1:99", None),
        (b"x = 1\n", "9:1-9:2", None),
        (b"x = 1\n", "1:0-1:1", None),
        (b"x = 1\n", "1:3-1:1", None),
        (b"x = 1\n", "nonsense", None),
        ("é = 1\n".encode(), "1:2-1:3", None),
    ],
)
def test_positions(raw: bytes, location: str, found: str | None) -> None:
    source = decode("a.py", raw)
    assert isinstance(source, Source)
    places = positions_in(source)
    bstart, bend = span_of(places, location)
    assert (None if bstart is None else text_at(source.utf8, bstart, bend or 0)) == found
    assert (len(places.problems()) == 1) == (found is None)


def test_what_cannot_be_placed_is_null_and_counted(report: Report) -> None:
    report.define("base:2", {"F:0": ("run", "99:1-99:4", "TopLevel")}, {})
    report.calls({"88:1-88:2": {"Call": {"call_targets": [target(ref("F:0", "run"))]}}})
    row = report.row()
    assert listed(row["call_targets"], "call_bstart", "call_bend", "target_bstart") == [(None, None, None)]
    assert row["errors"]["message"] == [
        "1 ranges cannot be placed in the file, the first: [87, 0, 87, 1]",
        "1 targets cannot be placed in their files, the first: base.run",
    ]


Spoil = Callable[[Report], None]


def spoil(name: str, part: Any) -> Spoil:
    def change(report: Report) -> None:
        report.parts[name] = part

    return change


def forget(report: Report) -> None:
    del report.modules["1"]


def refuse(report: Report) -> None:
    report.modules["1"]["failed_to_load"] = True


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (spoil("call_graphs/use:1.json", b'{"format_version": 1, "call_graphs": {"F:'), "corrupt_report"),
        (spoil("call_graphs/use:1.json", b"\xff\xfe"), "corrupt_report"),
        (spoil("call_graphs/use:1.json", b"[" * 200_000), "corrupt_report"),
        (
            spoil("call_graphs/use:1.json", {**FORMAT, "call_graphs": {"F:0": {"1:1-1:2": 5}}}),
            "corrupt_report",
        ),
        (spoil("call_graphs/use:1.json", {"format_version": 2, "graphs": []}), "unknown_format"),
        (spoil("type_of_expressions/use:1.json", {"format_version": 2}), "unknown_format"),
        (spoil("type_of_expressions/use:1.json", b""), "corrupt_report"),
        (forget, "missing_module"),
        (refuse, "undecodable"),
    ],
)
def test_a_bad_part_costs_one_row(report: Report, change: Spoil, error: str) -> None:
    change(report)
    found = report.rows()
    assert problems(found["use.py"][TYPES]) == [error]
    assert found["use.py"][TYPES].get("call_targets") is None
    assert found["use.py"][FAILURES]["error_type"] == [error]
    assert problems(found["base.py"][TYPES]) == []


def test_definitions_that_cannot_be_read_leave_the_names_they_have(report: Report) -> None:
    report.parts["definitions/base:2.json"] = b"{"
    report.calls({"3:13-3:21": {"Call": {"call_targets": [target(ref("F:0", "run"), receiver=class_ref())]}}})
    row = report.row()
    assert told(row) == [("call", "base.run", "base.Base", False)]
    assert problems(row) == ["corrupt_report"]


def test_parts_are_bounded_and_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "part.json"
    missing = read_report_file(part, ModuleCallGraphs)
    assert isinstance(missing, Problem)
    assert missing.error_type == "unreadable"
    part.write_text('{"format_version": 1, "modules": {}}')
    assert isinstance(read_report_file(part, Project), Project)
    monkeypatch.setattr("codeanatomy.extract.pyrefly.report.MAX_PART_BYTES", 10)
    large = read_report_file(part, Project)
    assert isinstance(large, Problem)
    assert large.error_type == "too_large"


def test_names_of_parts_do_not_lead_out(report: Report) -> None:
    (report.folder.parent / "outside.json").write_text('{"format_version": 1, "call_graphs": {}}')
    report.modules["1"]["info_filename"] = "../../outside.json"
    assert problems(report.row()) == ["unreadable"]


def test_a_worker_makes_the_same_rows_and_tells_of_no_report(report: Report) -> None:
    report.calls({"3:13-3:21": {"Call": {"call_targets": [target(ref("F:0", "run"))]}}})
    share = report.share()
    (packed,) = extract_task(share, (), ExtractOptions())
    assert packed.counts["r"][TYPES] == 2
    assert len(list(report_chunks(share))) == 1
    said = Problem("error", "check", "time_limit", "too long")
    (packed,) = extract_task(
        failed_report(RepositoryRoot("r", "folder", "/nowhere"), said), (), ExtractOptions()
    )
    assert (packed.counts["r"][TYPES], packed.counts["r"][FAILURES]) == (0, 1)
    assert partition_reports([]) == []
