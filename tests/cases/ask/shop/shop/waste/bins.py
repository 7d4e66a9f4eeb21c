"""Functions and classes that nothing uses, each with what is to be said of it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from shop.waste import piles

__all__ = ["listed_only"]

KEPT = []


def register(function):
    KEPT.append(function)
    return function


def listed_only():
    """In `__all__`."""


def _never_named():
    """0.9: private, and nothing says its name."""


def _calls_itself(number):
    """0.9: recursion is no use."""
    return _calls_itself(number - 1) if number else 0


def _namesake():
    """0.7: piles has one too, and that one is used."""


def open_to_all():
    """0.5: public."""


def spoken():
    """0.3: its name is a text."""


@register
def kept():
    """0.3: decorated."""


def busy():
    """Used below; what is inside of it is not."""

    def idle_inside():
        """0.9."""

    return piles.sort_all(KEPT, "spoken")


BUSY = busy()
IDLE = lambda: BUSY  # noqa: E731


class _Unseen:
    """0.9, with everything inside."""

    def glimpse(self):
        return self.look()

    def look(self):
        return 1


class Holder:
    """Registers what is below it."""

    def __init_subclass__(cls):
        register(cls)


class _Hooked(Holder):
    """0.3: the base is told of it."""


class Worker(threading.Thread):
    def run(self):
        """0.3: the thread calls it."""


class Basket(dict):
    def update(self, *others):
        """0.3: a dict has it too."""

    def _rattle(self):
        """0.9: a dict does not know it."""


class Shape(ABC):
    @abstractmethod
    def corners(self):
        """0.3: decorated."""


class Square(Shape):
    def corners(self):
        """0.3: overrides what may be used."""
        return 4


class Animal:
    def speak_up(self):
        return ""


class Dog(Animal):
    def speak_up(self):
        """Overrides a method that is used."""
        return "wuff"


class Draft:
    def take_step(self):
        """0.3: overridden by one that is used."""


class Final(Draft):
    def take_step(self):
        return 1


CREW = [Worker, Basket, Square, Dog]
SAID = Animal().speak_up(), Final().take_step()
