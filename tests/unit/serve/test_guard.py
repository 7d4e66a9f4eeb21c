"""Which requests are answered: host, origin, token, size; and the headers of every response."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codeanatomy.serve.explorer.app import create_app
from codeanatomy.serve.explorer.guard import COOKIE, HEADERS, MAX_BODY_BYTES
from support.explorer import HOST

PAGES = ("/", "/search?q=cart", "/api/suggest?q=cart", "/static/base.css", "/no-such-page", "/r/nope/")


@pytest.mark.parametrize("address", PAGES)
def test_every_response_has_the_headers(client: TestClient, address: str) -> None:
    headers = client.get(address).headers
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in headers["content-security-policy"]
    assert "set-cookie" not in headers


def test_a_bug_is_a_page_with_the_headers(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TimeoutError("inside of the page")

    monkeypatch.setattr("codeanatomy.serve.explorer.app.Visit", fail)
    answer = client.get("/search?q=cart")
    assert (answer.status_code, "this is a bug" in answer.text) == (500, True)
    assert "inside of the page" not in answer.text
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:8765", ""]
)
def test_another_host_is_refused(client: TestClient, host: str) -> None:
    """A rebound name of another site resolves to this machine, but stays in `Host`."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "shop" not in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"https://{HOST}"}, 403),
        ({"origin": f"http://{HOST}"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
    ],
)
def test_requests_of_other_sites(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.get("/api/suggest?q=cart", headers=headers).status_code == status


def test_a_form_of_another_site_is_refused(client: TestClient) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.post("/sql", content="q=SELECT+1", headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "POST"])
def test_pages_are_read_only(client: TestClient, method: str) -> None:
    assert client.request(method, "/").status_code == 405


def test_large_requests_are_refused(client: TestClient) -> None:
    assert client.get("/search?q=" + "x" * 20_000).status_code == 414
    assert client.request("GET", "/", content=b"x" * (MAX_BODY_BYTES + 1)).status_code == 413
    chunks = (b"x" * 100_000 for _ in range(11))
    assert client.request("GET", "/", content=chunks).status_code == 400


def test_cookies_of_other_servers_of_the_host_do_not_hide_the_token(ask_lake: Path) -> None:
    clients = [
        TestClient(create_app(str(ask_lake), token=token), base_url="http://box:8765", follow_redirects=False)
        for token in ("s3cret", "0ther")
    ]
    cookies = [
        client.get(f"/?token={token}").headers["set-cookie"].partition(";")[0]
        for client, token in zip(clients, ("s3cret", "0ther"), strict=True)
    ]
    sent = {"cookie": "; ".join(['a[b]={"x": 1}', *cookies])}
    for client in clients:
        client.cookies.clear()
        assert client.get("/").status_code == 401
        assert client.get("/", headers=sent).status_code == 200


def test_other_addresses_need_the_token(ask_lake: Path) -> None:
    client = TestClient(
        create_app(str(ask_lake), token="s3cret"), base_url="http://box:8765", follow_redirects=False
    )
    assert client.get("/").status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    assert client.get("/?" + "a=1&" * 200).status_code == 401
    assert client.get("/", headers={"authorization": "Bearer s3cret"}).status_code == 200
    moved = client.get("/%2Fevil.example/?q=1&token=s3cret")
    assert (moved.status_code, moved.headers["location"]) == (303, "/evil.example/?q=1")
    moved = client.get("/search?q=cart&token=s3cret")
    assert (moved.status_code, moved.headers["location"]) == (303, "/search?q=cart")
    cookie = moved.headers["set-cookie"]
    for part in (f"{COOKIE}_", "=s3cret;", "HttpOnly", "SameSite=strict"):
        assert part in cookie
    assert client.get("/search?q=cart").status_code == 200


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_static_files_stay_in_their_folder(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
