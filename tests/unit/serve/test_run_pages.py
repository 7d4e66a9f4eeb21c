"""Pages about runs: numbers equal the reports, links lead to the right run, lists are bounded."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from msgspec import structs
from starlette.testclient import TestClient

from codeanatomy import catalog
from codeanatomy.delta.read.open_table import location
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.maintain.table_state import inspect_table
from codeanatomy.query.diff.run_diff import ElementChange, RunDiff, ValueChange, diff_runs
from codeanatomy.query.lake import Lake
from codeanatomy.query.status.run_reports import RunReport, RunSummary, run_report, runs
from codeanatomy.serve.explorer.runs import diff_page, run_pages, state_pages
from codeanatomy.serve.explorer.runs.diff_page import definition_key_of, group_changes, value_text
from codeanatomy.serve.explorer.runs.shared_work import SharedWork
from codeanatomy.serve.explorer.runs.state_pages import TablesState
from support.explorer import check_page, explorer_client, get_page
from support.light_builds import clean_lake, refreshed
from support.small_lakes import SmallLake

HOSTILE = "<script>alert(1)</script>\"'<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def aged(aged_lake: Path) -> TestClient:
    """Return a client of the lake with several runs."""
    return explorer_client(aged_lake)


@pytest.fixture(scope="module")
def ids(aged_lake: Path) -> list[str]:
    """Return the runs of that lake, newest first."""
    return [row.run_id for row in runs(str(aged_lake)).rows]


def test_runs_are_listed_with_their_numbers(aged: TestClient, aged_lake: Path) -> None:
    text = get_page(aged, "/runs")
    for row in runs(str(aged_lake)).rows:
        # In three plots and in the table.
        assert text.count(f'href="/runs/{row.run_id}"') == 4
        assert f'<td class="number">{row.seconds:.1f}</td>' in text
        assert f'<td class="number">{row.rows:,}</td>' in text
    assert "Older runs" not in text


def test_the_engine_of_a_run_is_shown(aged: TestClient, ids: list[str], tmp_path: Path) -> None:
    assert get_page(aged, "/runs").count("<td>local</td>") == len(ids)
    assert ", engine: local processes" in get_page(aged, f"/runs/{ids[0]}")
    lake, facts = SmallLake(tmp_path), EngineFacts("spark", "local[2]", "own", "4.2.0", "4.4.0")
    lake.publish("run-1", {"a": structs.asdict(facts)})
    client = explorer_client(tmp_path)
    assert "<td>spark</td>" in get_page(client, "/runs")
    assert ", engine: spark on local[2], Spark 4.2.0, Delta 4.4.0" in get_page(client, "/runs/run-1")


def test_older_runs_are_on_further_pages(
    aged: TestClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pages, "PAGE_RUNS", 2)
    address, seen = "/runs", []
    for _ in range(10):
        text = get_page(aged, address)
        seen += re.findall(r'<th scope="row"><a class="mono" href="/runs/([^"]+)"', text)
        older = re.search(r'rel="next" href="([^"]+)"', text)
        if older is None:
            break
        address = older[1]
    assert seen == ids
    assert 'rel="prev"' in text
    assert "No run" not in get_page(aged, "/runs?older=4")
    get_page(aged, "/runs?older=999999")
    get_page(aged, "/runs?older=-1", 400)


def test_run_shows_steps_tables_and_versions(aged: TestClient, aged_lake: Path, ids: list[str]) -> None:
    report = run_report(str(aged_lake), ids[0])
    text = get_page(aged, f"/runs/{ids[0]}")
    for step in report.steps[:4]:
        assert f"<span>{step.rows:,}</span>" in text
        assert f"<span>{(step.milliseconds or 0) / 1000:.1f}</span>" in text
    pin = next(pin for pin in report.pins if pin.table == "cpg_nodes")
    assert f"{pin.before} &rarr; {pin.after}" in text
    assert "changed 1" in text
    assert f'<a href="/?as-of={ids[0]}">See the lake as of this run</a>' in text
    assert f'href="/diff?a={ids[1]}&amp;b={ids[0]}"' in text
    assert f'rel="prev" href="/runs/{ids[1]}"' in text
    assert 'rel="next"' not in text
    assert get_page(aged, f"/?as-of={ids[0]}")


def test_first_run_has_none_before_it(aged: TestClient, ids: list[str]) -> None:
    text = get_page(aged, f"/runs/{ids[-1]}")
    assert 'rel="prev"' not in text
    assert "none &rarr; 0" in text


def test_unknown_runs_are_reported(aged: TestClient) -> None:
    assert "unknown run" in get_page(aged, "/runs/nope", 404)


def test_failures_of_a_run_are_shown_as_text(
    aged: TestClient, aged_lake: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(root: str, run_id: str) -> RunReport:
        report = run_report(root, run_id)
        rows = [structs.replace(row, status="failed", error=HOSTILE) for row in report.repositories]
        line: RunSummary = structs.replace(report.line, status="failed", succeeded=0)
        steps = [structs.replace(report.steps[0], error=f"step {HOSTILE}"), *report.steps[1:]]
        return structs.replace(report, line=line, repositories=tuple(rows), steps=tuple(steps))

    monkeypatch.setattr(run_pages, "run_report", failed)
    text = get_page(aged, f"/runs/{ids[0]}")
    assert text.count("&lt;script&gt;alert(1)") == 2
    assert "It has published nothing." in text
    assert "See the lake as of this run" not in text


def test_diff_lists_changes_by_file_and_definition(aged: TestClient, aged_lake: Path, ids: list[str]) -> None:
    a, b = ids[-1], ids[0]
    diff = diff_runs(str(aged_lake), a, b)
    text = get_page(aged, f"/diff?a={a}&b={b}")
    assert f"<strong>{diff.total:,}</strong> nodes and edges differ" in text
    for change in diff.rows:
        for name, value in change.differs.items() if change.kind != "FILE" else ():
            assert f"<dt>{name}</dt><dd><del>{value.was}</del> <ins>{value.now}</ins></dd>" in text
    assert f'href="/r/app/s/app.leaf.leaf?as-of={a}"' in text
    assert f'href="/r/app/s/app.leaf.leaf?as-of={b}"' in text
    literal = next(row for row in diff.rows if row.kind == "LITERAL" and row.line == 2)
    assert f'href="/r/app/f/{literal.path}?as-of={b}#L2"' in text
    # The literal is inside of the function, not of the module.
    after_function = text.partition("app.leaf.leaf?as-of")[2]
    assert f"{literal.path}:2" in after_function


def test_removed_symbols_lead_to_the_first_run(client: TestClient, ask_lake: Path) -> None:
    b, a = (row.run_id for row in runs(str(ask_lake)).rows)
    text = get_page(client, f"/diff?a={a}&b={b}&kind=FUNCTION")
    assert f'href="/r/depot/s/old.retired?as-of={a}"' in text
    assert f"old.retired?as-of={b}" not in text
    assert "<strong>1</strong> nodes and edges differ" in text
    assert "Nothing differs" in get_page(client, f"/diff?a={a}&b={b}&repo=flask")
    assert "+ " not in get_page(client, f"/diff?a={a}&b={a}")


def test_diff_is_bounded(client: TestClient, ask_lake: Path) -> None:
    b, a = (row.run_id for row in runs(str(ask_lake)).rows)
    total = diff_runs(str(ask_lake), a, b).total
    text = get_page(client, f"/diff?a={a}&b={b}&limit=3")
    assert f"{total - 3:,} more are not listed" in text
    assert "limit=30" in text
    whole = get_page(client, f"/diff?a={a}&b={b}")
    listed = whole.partition("By file and definition")[2]
    assert listed.count('<span class="change ') == total
    get_page(client, f"/diff?a={a}&b={b}&limit=999999999", 400)


def test_diff_form_proposes_the_newest_runs(aged: TestClient, ids: list[str]) -> None:
    text = get_page(aged, "/diff")
    chosen = re.findall(r'<option value="([^"]+)" selected>', text)
    assert chosen == [ids[1], ids[0]]
    assert "nodes and edges differ" not in text


def test_diff_reports_wrong_choices(aged: TestClient, ids: list[str]) -> None:
    assert "needs two runs" in get_page(aged, f"/diff?a={ids[0]}", 400)
    assert "unknown run" in get_page(aged, f"/diff?a=nope&b={ids[0]}", 404)
    get_page(aged, f"/diff?a={ids[1]}&b={ids[0]}&kind=NOPE", 404)
    get_page(aged, f"/diff?a={ids[1]}&b={ids[0]}&repo=nope", 404)


def test_texts_of_a_diff_are_escaped_and_cut(
    aged: TestClient, aged_lake: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    diff = diff_runs(str(aged_lake), ids[1], ids[0])
    hostile = structs.replace(
        diff.rows[-1],
        symbol=HOSTILE,
        path=f"a/{HOSTILE}.py",
        differs={HOSTILE: ValueChange(HOSTILE, "x" * 10_000)},
    )
    changed = structs.replace(diff, rows=(hostile,))
    monkeypatch.setattr(diff_page, "COMPARISONS", SharedWork(lambda _: changed))
    text = get_page(aged, f"/diff?a={ids[1]}&b={ids[0]}")
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "(10,000 characters)" in text
    assert "x" * 400 not in text


def test_changes_without_a_definition_are_grouped_by_file() -> None:
    def change(entity_id: str, path: str | None) -> ElementChange:
        return ElementChange(
            "added", "node", "QUALIFIED_NAME", "x", path, 1, None, {}, {}, None, "r", entity_id
        )

    groups = group_changes(
        [change("qname:r:a.b", None), change("qname:r:c", None), change("comment:" + "k" * 16 + ".1", "b.py")]
    )
    assert [(group.path, group.total) for group in groups] == [(None, 2), ("b.py", 1)]
    assert definition_key_of("comment:" + "k" * 16 + ".1") == "k" * 16
    assert value_text({"a": [1]}) == '{"a":[1]}'


def test_errors_are_listed_by_file_with_their_lines(client: TestClient, ask_lake: Path) -> None:
    lake = Lake.open(str(ask_lake))
    text = get_page(client, "/errors")
    rows = [*lake.errors().rows, *lake.sql("SELECT * FROM diagnostics").rows]
    assert f"<strong>{len(rows)}</strong> in 2 files" in text
    for row in rows:
        assert f'href="/r/{row["repo_id"]}/f/{row["path"]}#L{row["line"]}"' in text
    depot = get_page(client, "/errors?repo=depot")
    assert "broken.py" in depot
    assert "shop/waste/unknown.py" not in depot
    warnings = get_page(client, "/errors?severity=warning")
    assert "<strong>1</strong> in 1 file." in warnings
    assert "broken.py" not in warnings
    assert "There are none" in get_page(client, "/errors?repo=flask")
    get_page(client, "/errors?repo=nope", 404)


def test_errors_are_bounded(client: TestClient) -> None:
    text = get_page(client, "/errors?repo=depot&limit=1")
    assert text.count('<span class="severity ') == 2
    assert "5 more are not listed" in text
    assert "limit=10" in text


def test_tables_have_the_numbers_of_their_logs(aged: TestClient, aged_lake: Path) -> None:
    text = get_page(aged, "/tables")
    for name in ("cpg_nodes", "cpg_edges", "run_manifest"):
        state = inspect_table(location(str(aged_lake), name), catalog.table(name))
        assert state is not None
        row = text.partition(f'<th scope="row" class="mono">{name}</th>')[2].partition("</tr>")[0]
        numbers = [
            int(value.replace(",", "")) for value in re.findall(r'<td class="number">([\d,]+)</td>', row)
        ]
        small = sum(part.small_files for part in state.parts)
        deleted = sum(part.deleted_rows for part in state.parts)
        rows = sum(part.rows for part in state.parts) - deleted
        assert numbers[:5] == [state.files, small, rows, deleted, state.version]
    assert "<strong>optimize</strong>: 2 of 2 files are below" in text
    assert "None is recorded." in text


def test_slow_work_does_not_stop_a_page(
    aged: TestClient, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = threading.Event()

    def inspect_slowly(_: str) -> TablesState:
        assert ready.wait(10)
        return TablesState({}, {}, {}, [])

    def compare_slowly(question: diff_page.Comparison) -> RunDiff:
        assert ready.wait(10)
        return diff_page.compare(question)

    monkeypatch.setattr(state_pages, "INSPECTIONS", SharedWork(inspect_slowly))
    monkeypatch.setattr(diff_page, "COMPARISONS", SharedWork(compare_slowly))
    diff = f"/diff?a={ids[1]}&b={ids[0]}"
    for module in (state_pages, diff_page):
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    assert "are being inspected" in get_page(aged, "/tables")
    waiting = get_page(aged, diff)
    assert "are being compared" in waiting
    assert f'href="/diff?a={ids[1]}&amp;b={ids[0]}&amp;limit=500"' in waiting
    ready.set()
    for module in (state_pages, diff_page):
        monkeypatch.setattr(module, "WAIT_SECONDS", 10.0)
    assert "No operation is due." in get_page(aged, "/tables")
    assert "nodes and edges differ" in get_page(aged, diff)


def test_pages_name_the_chosen_run_in_their_links(aged: TestClient, ids: list[str]) -> None:
    for page in ("/runs", "/errors", "/tables", "/diff"):
        text = get_page(aged, f"{page}?as-of={ids[2]}")
        assert f'href="/sql?as-of={ids[2]}"' in text
        assert f'href="/errors?as-of={ids[2]}"' in text


def test_texts_of_a_hostile_repository_are_escaped(tmp_path: Path) -> None:
    source, lake = tmp_path / "src", tmp_path / "lake"
    source.mkdir()
    name = "<img src=x onerror=alert(1)>\"'&?#%.py"
    for number in range(2):
        (source / name).write_text(f"def (:  # </script><script>alert({number})</script>\n", encoding="utf-8")
        text = f"TEXT = '<script>alert({number})</script>'\n"
        (source / "good.py").write_text(text, encoding="utf-8")
        (refreshed if number else clean_lake)(lake, {"<b>repo</b>": source})
    client = explorer_client(lake)
    newest, first = (row.run_id for row in runs(str(lake)).rows)
    addresses = ["/runs", f"/runs/{newest}", f"/diff?a={first}&b={newest}", "/errors", "/tables", "/sql"]
    for address in addresses:
        page = get_page(client, address)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>" not in page
    diff, errors = get_page(client, addresses[2]), get_page(client, "/errors")
    assert "&lt;script&gt;alert(0)" in diff
    assert "&lt;script&gt;alert(1)" in diff
    quoted = "/r/%3Cb%3Erepo%3C%2Fb%3E/f/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%22%27%26%3F%23%25.py#L1"
    assert f'href="{quoted}"' in errors
    rows = client.post("/sql", data={"q": "SELECT repo_id, path, line, message FROM errors"}).text
    check_page(rows)
    assert f'<a href="{quoted}">&lt;img src=x' in rows
    assert "<img" not in rows
