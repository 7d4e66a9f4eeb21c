import asyncio
import atexit
import functools
import signal
import threading

import pluggy
from scrapy import Spider
from twisted.internet import reactor
from zope.interface import Interface, implementer

hookimpl = pluggy.HookimplMarker("site")


@hookimpl
def add_pages():  # hook add_pages pluggy
    pass


class Pages(Spider):
    def parse(self, response):  # handler parse scrapy
        pass


class Pipeline:
    def process_item(self, item, spider):  # handler process_item scrapy
        return item


def later():  # callback later twisted
    pass


def done(result):  # callback done twisted
    pass


def watch(deferred):
    deferred.addCallback(done)


reactor.callLater(1, later)


class IStore(Interface):
    def keep(value):  # interface keep python
        """Keep it."""


@implementer(IStore)
class Store:
    def keep(self, value):  # interface keep zope
        pass

    def _hidden(self):
        pass


def soon():  # callback soon asyncio
    pass


def at_last():  # callback at_last asyncio
    pass


loop = asyncio.get_event_loop()
asyncio.BaseEventLoop().call_soon(soon)
asyncio.BaseEventLoop().call_later(5, at_last)


def stop(number, frame):  # event stop asyncio
    pass


signal.signal(signal.SIGTERM, stop)


class Wire(asyncio.Protocol):
    def data_received(self, data):  # handler data_received asyncio
        pass


def work():  # callback work threading
    pass


threading.Thread(target=work).start()


@atexit.register
def leave():  # event leave atexit
    pass


def leave_too():  # event leave_too atexit
    pass


atexit.register(leave_too)


@functools.singledispatch
def show(value):
    pass


@show.register
def show_int(value: int):  # dispatch show_int functools
    pass
