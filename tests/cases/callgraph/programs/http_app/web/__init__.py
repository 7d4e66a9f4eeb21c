from .app import App
from .response import HttpResponse, JsonResponse

__all__ = ["App", "HttpResponse", "JsonResponse"]
