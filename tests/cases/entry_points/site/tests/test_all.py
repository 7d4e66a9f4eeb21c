import unittest

import pytest


@pytest.fixture
def basket():  # fixture basket pytest
    return []


@pytest.hookimpl
def pytest_configure(config):  # hook pytest_configure pytest
    pass


def test_basket(basket):  # test test_basket pytest
    assert not basket


def setup_module():  # hook setup_module pytest
    pass


def make():
    pass


class TestBasket:  # test TestBasket pytest
    def test_more(self):  # test test_more pytest
        pass


class Cases(unittest.TestCase):
    def setUp(self):  # hook setUp unittest
        pass

    def test_case(self):  # test test_case unittest
        pass


def load_tests(loader, tests, pattern):  # hook load_tests unittest
    return tests
