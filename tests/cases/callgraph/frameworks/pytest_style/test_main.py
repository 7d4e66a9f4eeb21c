import pytest

from app import Client


@pytest.fixture
def client():
    return Client()


def test_get(client):
    assert client.get("/") == 1


def test_raises():
    with pytest.raises(ValueError):
        Client().fail()
