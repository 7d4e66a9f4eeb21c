from core import make_widget as widget
