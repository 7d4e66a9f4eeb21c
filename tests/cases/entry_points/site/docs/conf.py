from docutils.nodes import NodeVisitor
from sphinx.application import Sphinx


def setup(app):  # plugin setup sphinx
    app.connect("build-finished", finished)
    app.add_node(Box)


def setup_typed(app: Sphinx):
    app.connect("build-started", started)
    app.add_role("box", box)


def finished(app, error):  # event build-finished sphinx
    pass


def started(app):  # event build-started sphinx
    pass


def box():  # plugin box sphinx
    pass


class Box:  # plugin Box sphinx
    pass


class Writer(NodeVisitor):
    def visit_box(self, node):  # handler visit_box docutils
        pass
