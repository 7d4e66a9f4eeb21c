from .impl import _make as make_widget
