from .base import Exporter
from . import csv_exporter, json_exporter


def export(kind, rows):
    return Exporter.for_kind(kind).export(rows)
