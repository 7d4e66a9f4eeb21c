"""Exports: every format is read again by somebody else's parser, and holds what the lake holds."""

from __future__ import annotations

import csv
import io
import json
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from codeanatomy.atomic_output import atomic_file, atomic_files
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.catalog.kinds.spec import Prop
from codeanatomy.cli import export as command
from codeanatomy.cli.main import cli
from codeanatomy.errors import CodeAnatomyError, StorageFailure, UnknownName, UsageError
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.export import parquet, selection
from codeanatomy.query.export.escaping import visible
from codeanatomy.query.export.rows import EDGES, NODES, Counting, Counts, ExportRows
from codeanatomy.query.export.write import FILES, FOLDERS, FORMS, PICTURES, export_graph
from codeanatomy.query.symbols import resolve
from support.ask_lake import reader_of
from support.export_rows import HOSTILE, edge_row, node_row

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


class Graph(NamedTuple):
    """What a parser found: ids, kinds and names."""

    nodes: dict[str, tuple[str, str | None]]
    edges: dict[str, tuple[str, str, str]]


# Readers, one for each format; none uses code of the package.


def read_jsonl(data: bytes) -> Graph:
    rows = [json.loads(line) for line in data.decode().split("\n") if line]
    nodes = {r["node_id"]: (r["node_kind"], r.get("name")) for r in rows if r["entity"] == "node"}
    edges = [r for r in rows if r["entity"] == "edge"]
    assert len(nodes) + len(edges) == len(rows)
    return Graph(nodes, {e["edge_id"]: (e["edge_kind"], e["src_node_id"], e["dst_node_id"]) for e in edges})


def read_networkx(data: bytes) -> Graph:
    found = json.loads(data)
    assert (found["directed"], found["multigraph"], found["graph"]) == (True, True, {})
    return Graph(
        {n["id"]: (n["node_kind"], n.get("name")) for n in found["nodes"]},
        {e["key"]: (e["edge_kind"], e["source"], e["target"]) for e in found["edges"]},
    )


def read_graphml(data: bytes) -> Graph:
    root = ET.fromstring(data)
    keys = {key.get("id"): key.get("attr.name") for key in root.iter(f"{GRAPHML}key")}

    def values(element: ET.Element) -> dict[str | None, str]:
        return {keys[each.get("key")]: each.text or "" for each in element}

    nodes = {n.attrib["id"]: values(n) for n in root.iter(f"{GRAPHML}node")}
    edges = {e.attrib["id"]: (values(e), e.attrib) for e in root.iter(f"{GRAPHML}edge")}
    return Graph(
        {key: (found["node_kind"], found.get("name")) for key, found in nodes.items()},
        {key: (found["edge_kind"], a["source"], a["target"]) for key, (found, a) in edges.items()},
    )


STRING = r'"(?:[^"\\]|\\.)*"'
DOT_NODE = re.compile(rf"  ({STRING}) \[label=({STRING}), kind=({STRING}), tooltip=({STRING})\];")
DOT_EDGE = re.compile(rf"  ({STRING}) -> ({STRING}) \[label=({STRING})\];")


def undot(text: str) -> str:
    assert all(character.isprintable() for character in text)
    return re.sub(r"\\(.)", r"\1", text[1:-1]).replace("&amp;", "&")


def read_dot(data: bytes) -> Graph:
    first, *lines, last = data.decode().split("\n")[:-1]
    assert (first, last) == ("digraph codeanatomy {", "}")
    assert lines[:2] == ["  rankdir=LR;", "  node [shape=box];"]
    nodes, edges = {}, {}
    for number, line in enumerate(lines[2:]):
        if node := DOT_NODE.fullmatch(line):
            nodes[undot(node[1])] = (undot(node[3]), undot(node[2]))
        else:
            edge = DOT_EDGE.fullmatch(line)
            assert edge, line
            edges[str(number)] = (undot(edge[3]), undot(edge[1]), undot(edge[2]))
    return Graph(nodes, edges)


def read_csv(folder: Path) -> Graph:
    tables = {}
    for name in ("nodes.csv", "edges.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as file:
            tables[name] = list(csv.DictReader(file, strict=True))
    return Graph(
        {n["node_id:ID"]: (n[":LABEL"], n["name"]) for n in tables["nodes.csv"]},
        {e["edge_id"]: (e[":TYPE"], e[":START_ID"], e[":END_ID"]) for e in tables["edges.csv"]},
    )


def read_parquet(folder: Path) -> Graph:
    nodes = pq.read_table(folder / "nodes.parquet").to_pylist()
    edges = pq.read_table(folder / "edges.parquet").to_pylist()
    return Graph(
        {n["node_id"]: (n["node_kind"], n["name"]) for n in nodes},
        {e["edge_id"]: (e["edge_kind"], e["src_node_id"], e["dst_node_id"]) for e in edges},
    )


READERS: dict[str, Callable[[Any], Graph]] = {
    "dot": read_dot,
    "graphml": read_graphml,
    "jsonl": read_jsonl,
    "networkx-json": read_networkx,
    "neo4j-csv": read_csv,
    "parquet": read_parquet,
}


def read_back(form: str, path: Path) -> Graph:
    return READERS[form](path if form in FOLDERS else path.read_bytes())


# Hand-made rows


def hand_made() -> tuple[ExportRows, ExportRows]:
    names = list(enumerate(HOSTILE))
    nodes = [node_row(f"n{n}", name, {"text": name}, qualname=name or None, path=name) for n, name in names]
    edges = [edge_row(f"e{n}", f"n{n}", "n0", role=name, ordinal=n) for n, name in names]
    half = len(nodes) // 2
    return (
        ExportRows(NODES, (Prop("text", "string", "Text."),), [nodes[:half], nodes[half:]]),
        ExportRows(EDGES, (), [edges]),
    )


def written(form: str, nodes: ExportRows, edges: ExportRows, folder: Path) -> Counts:
    """A format by itself, without a lake."""
    if form in FOLDERS:
        folder.mkdir()
        return FOLDERS[form][0](nodes, edges, folder)
    with folder.open("wb") as file:
        return FILES[form](nodes, edges, Counting(file))


def test_every_format_has_a_reader_here() -> None:
    assert set(READERS) | set(PICTURES) == set(FORMS)
    assert command.FORMS == FORMS
    assert {*FILES, *FOLDERS, *PICTURES} == set(FORMS)


@pytest.mark.parametrize("form", READERS)
def test_hostile_names_are_data(form: str, tmp_path: Path) -> None:
    target = tmp_path / "graph"
    assert written(form, *hand_made(), target) == Counts(len(HOSTILE), len(HOSTILE))
    found = read_back(form, target)
    expected: list[str | None] = list(HOSTILE)
    if form == "graphml":
        expected = [visible(name) for name in HOSTILE]
    if form == "dot":
        assert all(kind == "FUNCTION" for kind, _ in found.nodes.values())
        assert found.nodes["n1"][1] == HOSTILE[1]
        assert found.nodes["n11"][1] == HOSTILE[11]
    else:
        assert [name for _, name in found.nodes.values()] == expected
    assert list(found.nodes) == [f"n{n}" for n in range(len(HOSTILE))]
    assert list(found.edges.values()) == [("CALL_GRAPH", f"n{n}", "n0") for n in range(len(HOSTILE))]


def test_control_characters_are_shown_where_xml_has_none(tmp_path: Path) -> None:
    written("graphml", *hand_made(), tmp_path / "graph")
    root = ET.fromstring((tmp_path / "graph").read_bytes())
    texts = {each.text for each in root.iter(f"{GRAPHML}data")}
    assert "nul ␀ and bell ␇ and escape ␛[31m" in texts
    assert "line\nfeed\r\nand\ttab" in texts


def test_nothing_and_the_empty_text_differ_in_csv(tmp_path: Path) -> None:
    nodes = ExportRows(NODES, (), [[node_row("a", ""), node_row("b", None)]])
    written("neo4j-csv", nodes, ExportRows(EDGES, (), []), tmp_path / "graph")
    header, first, second = (tmp_path / "graph" / "nodes.csv").read_text().splitlines()
    place = header.split(",").index("name")
    assert (first.split(",")[place], second.split(",")[place]) == ('""', "")
    assert (tmp_path / "graph" / "edges.csv").read_text() == (
        "repo_id,:TYPE,:START_ID,:END_ID,repeat:int,role,ordinal:int,owner_file_id,path,bstart:long,bend:long,"
        "line:int,origin,resolution_method,confidence:double,score:double,symbol_roles:int,"
        "ambiguity_group_id,rule_name,edge_id\n"
    )
    assert "--nodes=nodes.csv" in (tmp_path / "graph" / "README.txt").read_text()


def test_a_name_of_a_megabyte_is_cut_only_in_dot(tmp_path: Path) -> None:
    csv.field_size_limit(2_000_000)
    for form in READERS:
        nodes = ExportRows(NODES, (), [[node_row("a", "x" * 1_000_000)]])
        written(form, nodes, ExportRows(EDGES, (), []), tmp_path / form)
        name = read_back(form, tmp_path / form).nodes["a"][1]
        assert len(name or "") == (200 if form == "dot" else 1_000_000)


@pytest.mark.parametrize("form", READERS)
def test_an_empty_graph_is_a_graph(form: str, tmp_path: Path) -> None:
    assert written(form, ExportRows(NODES, (), []), ExportRows(EDGES, (), []), tmp_path / "graph") == Counts(
        0, 0
    )
    assert read_back(form, tmp_path / "graph") == Graph({}, {})


@pytest.mark.parametrize("form", [*FILES, "neo4j-csv"])
def test_no_more_than_a_batch_is_held(form: str, tmp_path: Path) -> None:
    def batches(count: int) -> Iterator[list[tuple[Any, ...]]]:
        for batch in range(count):
            yield [node_row(f"n{batch}-{n}", "name" * 20, path="a/b/c.py") for n in range(100)]

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            written(
                form,
                ExportRows(NODES, (), batches(count)),
                ExportRows(EDGES, (), []),
                tmp_path / f"{form}{count}",
            )
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    assert peak(25) < 1.5 * peak(5)


def test_row_groups_are_written_when_they_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP", 4)
    batches = [[node_row(f"{batch}{n}", "x") for n in range(3)] for batch in range(4)]
    written("parquet", ExportRows(NODES, (), batches), ExportRows(EDGES, (), []), tmp_path / "graph")
    assert pq.ParquetFile(tmp_path / "graph" / "nodes.parquet").num_row_groups >= 2


def test_no_property_has_the_name_of_a_column() -> None:
    """Else a format with a column for each property would have two of one name."""
    props = {prop.name for kind in (*NODE_KINDS.values(), *EDGE_KINDS.values()) for prop in kind.props}
    assert props.isdisjoint(column.name for column in (*NODES, *EDGES))


# Of a lake


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def counted(reader: LightReader, table: str, kind: str, **wanted: tuple[str, ...]) -> dict[str, int]:
    query = Query(f"SELECT {kind}, count(*) FROM t GROUP BY 1", {"t": Slice(table, **wanted)})
    return dict(reader.rows(query))


@pytest.mark.parametrize("form", READERS)
def test_everything_is_exported(form: str, reader: LightReader, tmp_path: Path) -> None:
    report = export_graph(reader, form, target=tmp_path / "graph", repo_id="shop")
    found = read_back(form, tmp_path / "graph")
    nodes = counted(reader, "cpg_nodes", "node_kind", repo_id=("shop",))
    edges = counted(reader, "cpg_edges", "edge_kind", repo_id=("shop",))
    assert Counter(kind for kind, _ in found.nodes.values()) == nodes
    assert Counter(kind for kind, _, _ in found.edges.values()) == edges
    assert (report.nodes, report.edges) == (sum(nodes.values()), sum(edges.values()))
    assert all({src, dst} <= found.nodes.keys() for _, src, dst in found.edges.values())
    sizes = [Path(name).stat().st_size for name in report.files]
    assert report.bytes == sum(sizes)


def test_the_same_lake_gives_the_same_bytes(reader: LightReader, tmp_path: Path) -> None:
    for form in READERS:
        for name in ("a", "b"):
            export_graph(reader, form, target=tmp_path / f"{form}-{name}", kinds=("CALL_GRAPH",), props=True)
        first, second = (contents(tmp_path / f"{form}-{name}") for name in ("a", "b"))
        assert first == second


def test_large_kinds_are_read_one_by_one(reader: LightReader, monkeypatch: pytest.MonkeyPatch) -> None:
    together = exported(reader, repo_id="depot")
    monkeypatch.setattr(selection, "SORTED", 1)
    one_by_one = exported(reader, repo_id="depot")
    assert list(one_by_one.nodes.items()) == list(together.nodes.items())
    assert list(one_by_one.edges.items()) == list(together.edges.items())


def contents(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in sorted(path.iterdir())] if path.is_dir() else [path.read_bytes()]


def test_kinds_of_edges_bring_their_nodes(reader: LightReader) -> None:
    found = exported(reader, kinds=("INHERITS",))
    assert {kind for kind, _ in found.nodes.values()} == {"CLASS", "QUALIFIED_NAME"}
    assert {kind for kind, _, _ in found.edges.values()} == {"INHERITS"}
    assert len(found.edges) == counted(reader, "cpg_edges", "edge_kind")["INHERITS"]


def test_kinds_of_nodes_bring_the_edges_between_them(reader: LightReader) -> None:
    found = exported(reader, kinds=("CLASS", "FUNCTION"))
    assert {kind for kind, _ in found.nodes.values()} == {"CLASS", "FUNCTION"}
    query = Query(
        "SELECT count(*) FROM e JOIN n a ON a.node_id = e.src_node_id JOIN n b ON b.node_id = e.dst_node_id",
        {"e": Slice("cpg_edges"), "n": Slice("cpg_nodes", node_kind=("CLASS", "FUNCTION"))},
    )
    assert len(found.edges) == reader.rows(query)[0][0] > 100
    assert {"CONTAINS", "CALL_GRAPH", "INHERITS"} <= {kind for kind, _, _ in found.edges.values()}


def exported(reader: LightReader, **options: Any) -> Graph:
    stream = io.BytesIO()
    report = export_graph(reader, "jsonl", target=stream, **options)
    assert report.bytes == len(stream.getvalue())
    return read_jsonl(stream.getvalue())


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("name", ["shop.cart.Cart.total", "shop.money.Price"])
def test_a_focus_is_what_is_near(reader: LightReader, name: str, hops: int) -> None:
    """Compared with a walk over all edges of these kinds, in plain Python."""
    symbol = resolve(reader, name, "shop")
    query = Query(
        "SELECT e.edge_id, e.edge_kind, e.src_node_id, e.dst_node_id FROM e",
        {"e": Slice("cpg_edges", edge_kind=selection.NEAR, repo_id=("shop",))},
    )
    edges = reader.rows(query)
    near = set(symbol.ids)
    for _ in range(hops):
        near |= {node for _, _, *ends in edges if not near.isdisjoint(ends) for node in ends}
    found = exported(reader, focus=symbol, hops=hops)
    assert set(found.nodes) == near
    assert found.edges == {
        key: (kind, src, dst) for key, kind, src, dst in edges if src in near and dst in near
    }


def test_a_focus_goes_only_through_the_kinds_that_are_wanted(reader: LightReader) -> None:
    found = exported(
        reader, focus=resolve(reader, "shop.cart.Cart.checkout"), hops=2, kinds=("FUNCTION", "CALL_GRAPH")
    )
    assert {kind for kind, _ in found.nodes.values()} <= {"FUNCTION", "BINDING"}
    assert {"checkout", "total"} <= {name for _, name in found.nodes.values()}
    assert {kind for kind, _, _ in found.edges.values()} == {"CALL_GRAPH"}


def test_a_focus_that_reaches_too_much_says_so(reader: LightReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MAX_REACHED", 20)
    report = export_graph(
        reader, "jsonl", target=io.BytesIO(), focus=resolve(reader, "shop.money.Price"), hops=5
    )
    assert report.nodes <= 20
    assert "stopped near 20 nodes" in report.notes[0]


def test_properties_come_with_a_focus_and_else_when_asked_for(reader: LightReader, tmp_path: Path) -> None:
    price = resolve(reader, "shop.money.Price")
    kinds = ("HAS_DOCSTRING", "CONTAINS")
    for form in READERS:
        export_graph(reader, form, target=tmp_path / form, focus=price, kinds=kinds)
    said = 'alert("not markup")'
    (lines,) = contents(tmp_path / "jsonl")
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [said in row["props"]["text"] for row in rows if row.get("node_kind") == "DOCSTRING"] == [True]
    assert {row["props"]["base_count"] for row in rows if row.get("node_kind") == "CLASS"} == {0}
    tree = ET.fromstring((tmp_path / "graphml").read_bytes())
    assert any(said in (each.text or "") for each in tree.iter(f"{GRAPHML}data"))
    nodes = pq.read_table(tmp_path / "parquet" / "nodes.parquet").to_pylist()
    assert any(said in (node["text"] or "") for node in nodes)
    assert {node["base_count"] for node in nodes if node["node_kind"] == "CLASS"} == {0}
    with (tmp_path / "neo4j-csv" / "nodes.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert any(said in node["text"] for node in table)
    assert {node["base_count:long"] for node in table if node[":LABEL"] == "CLASS"} == {"0"}
    without = io.BytesIO()
    export_graph(reader, "jsonl", target=without, focus=price, kinds=kinds, props=False)
    assert b'"props"' not in without.getvalue()
    whole = io.BytesIO()
    export_graph(reader, "jsonl", target=whole, kinds=("CLASS",))
    assert b'"props"' not in whole.getvalue()


# Targets


def test_nothing_is_replaced_unless_told(reader: LightReader, tmp_path: Path) -> None:
    for form in ("dot", "neo4j-csv", "parquet"):
        target = tmp_path / form
        export_graph(reader, form, target=target, kinds=("CLASS",))
        before = contents(target)
        with pytest.raises(UsageError, match="exists"):
            export_graph(reader, form, target=target, kinds=("INHERITS",))
        assert contents(target) == before
        export_graph(reader, form, target=target, kinds=("INHERITS",), force=True)
        assert contents(target) != before
    assert {each.name for each in tmp_path.iterdir()} == {"dot", "neo4j-csv", "parquet"}


def test_a_folder_keeps_what_is_not_ours(reader: LightReader, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("mine")
    export_graph(reader, "parquet", target=tmp_path, kinds=("CLASS",))
    assert {each.name for each in tmp_path.iterdir()} == {"own.txt", "nodes.parquet", "edges.parquet"}


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def half_a_file() -> None:
        with atomic_file(tmp_path / "old", force=True) as stream:
            stream.write(b"half")
            raise RuntimeError

    def half_a_folder() -> None:
        with atomic_files(tmp_path / "new", ("a",), force=False) as folder:
            (folder / "a").write_text("half")
            raise RuntimeError

    (tmp_path / "old").write_text("old")
    with pytest.raises(RuntimeError):
        half_a_file()
    with pytest.raises(RuntimeError):
        half_a_folder()
    assert [each.name for each in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"


@pytest.mark.parametrize(
    ("form", "place", "error"),
    [
        ("dot", "missing/graph.dot", UsageError),
        ("dot", ".", UsageError),
        ("dot", "folder", UsageError),
        ("parquet", "file", UsageError),
        ("dot", "n" * 300, StorageFailure),
        ("parquet", "n" * 300, StorageFailure),
    ],
)
def test_targets_that_cannot_be(
    reader: LightReader, tmp_path: Path, form: str, place: str, error: type[CodeAnatomyError]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(error) as raised:
        export_graph(reader, form, target=tmp_path / place, kinds=("CLASS",), force=True)
    assert raised.value.hint
    assert {each.name for each in tmp_path.iterdir()} == {"folder", "file"}


def test_what_is_not_a_file_is_not_replaced(reader: LightReader) -> None:
    with pytest.raises(UsageError, match="not a file"):
        export_graph(reader, "dot", target=Path("/dev/null"), kinds=("CLASS",), force=True)
    assert Path("/dev/null").is_char_device()


def test_a_link_stays_one(reader: LightReader, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    export_graph(reader, "dot", target=tmp_path / "link", kinds=("CLASS",), force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("digraph")


def test_calls_that_make_no_sense(reader: LightReader) -> None:
    with pytest.raises(UnknownName, match="format"):
        export_graph(reader, "../dot", target=io.BytesIO())
    with pytest.raises(UnknownName, match="kind"):
        export_graph(reader, "dot", target=io.BytesIO(), kinds=("CALLS'; DROP",))
    with pytest.raises(UsageError, match="writes several files"):
        export_graph(reader, "parquet", target=io.BytesIO())
    with pytest.raises(UsageError, match="shows a focus"):
        export_graph(reader, "svg", target=io.BytesIO())


# The command


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, ["export", *words])


def test_the_command_writes_data_to_stdout_and_talk_to_stderr(ask_lake: Path) -> None:
    found = run(
        "jsonl", "--lake", str(ask_lake), "--repo", "shop", "--focus", "shop.cart.Cart", "--hops", "1"
    )
    assert found.exit_code == 0, found.output
    graph = read_jsonl(found.stdout_bytes)
    assert "add" in {name for _, name in graph.nodes.values()}
    assert f"{len(graph.nodes):,} nodes and {len(graph.edges):,} edges" in found.stderr


def test_the_command_takes_kinds_in_any_way(ask_lake: Path, tmp_path: Path) -> None:
    words = ("--lake", str(ask_lake), "--all", "--kinds", "CLASS,INHERITS", "--kinds", "FUNCTION")
    found = run("parquet", *words, "-o", str(tmp_path / "out"))
    assert found.exit_code == 0, found.output
    assert found.stdout == ""
    kinds = {kind for kind, _ in read_parquet(tmp_path / "out").nodes.values()}
    assert kinds == {"CLASS", "FUNCTION"}


@pytest.mark.parametrize("form", ["../../etc/passwd", "dot/../x", "DOT ", "exe", ""])
def test_the_command_knows_its_formats(ask_lake: Path, form: str) -> None:
    found = run(form, "--lake", str(ask_lake), "--all")
    assert found.exit_code == 2
    assert "is not one of" in found.output


@pytest.mark.parametrize("words", [[], ["--all", "--focus", "Cart"], ["--focus", "Cart", "--hops", "99"]])
def test_the_command_refuses_what_is_unclear(ask_lake: Path, words: list[str]) -> None:
    assert run("dot", "--lake", str(ask_lake), *words).exit_code == 2
