def home():
    return 1


def users():
    return 2


def user():
    return 3


ROUTES = [
    {"path": "/", "view": home},
    {"path": "/users", "view": users, "children": [{"path": "/1", "view": user}]},
]


def find(routes, path):
    for route in routes:
        if route["path"] == path:
            return route["view"]
        view = find(route.get("children", []), path)
        if view:
            return view
    return None


find(ROUTES, "/1")()
