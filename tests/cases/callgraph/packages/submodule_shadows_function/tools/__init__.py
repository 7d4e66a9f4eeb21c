from .render import render
