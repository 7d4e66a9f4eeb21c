import fmt_json
import fmt_yaml

FORMATS = {"json": fmt_json, "yaml": fmt_yaml}


def dump(value, kind):
    return FORMATS[kind].dump(value)


dump(1, "json")
dump(1, "yaml")
