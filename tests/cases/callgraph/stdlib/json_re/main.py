import json
import re

WORD = re.compile(r"\w+")


def words(text):
    return WORD.findall(text)


def load(text):
    data = json.loads(text)
    return data


def clean(text):
    return re.sub(lambda_free, "", text)


lambda_free = "x"
words("a b")
load("{}")
clean("x")
