from pipeline.source import read
from pipeline.steps import transform
