from typing import TypedDict


class Job:
    def run(self):
        return 1


class Entry(TypedDict):
    job: Job
    name: str


def start(entry: Entry):
    entry["job"].run()
    return entry["name"].upper()


start({"job": Job(), "name": "x"})
