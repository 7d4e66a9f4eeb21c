"""Routes of werkzeug itself: rules of a map."""

from werkzeug.routing import Map, Rule


def shown(request):  # http /shown werkzeug
    return request


URLS = Map([Rule("/shown", endpoint=shown)])
