from aiohttp import web
from fastapi import APIRouter, Depends, FastAPI
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Route, WebSocketRoute

app = FastAPI()
router = APIRouter()
routes = web.RouteTableDef()
server = web.Application()


def session():  # dependency session fastapi
    yield 1


@router.get("/things")
async def things(session=Depends(session)):  # http /things fastapi
    return []


@app.websocket("/live")
async def live(socket):  # websocket /live fastapi
    pass


def added():  # http /added fastapi
    return ""


app.add_api_route("/added", added)


@app.on_event("startup")
async def start():  # handler startup fastapi
    pass


def first(request):  # http /first starlette
    return ""


def second(request):  # http /second starlette
    return ""


def third(socket):  # websocket /third starlette
    return ""


def fourth(request):  # http /fourth starlette
    return ""


star = Starlette(
    routes=[Route("/first", first), Route("/second", endpoint=second), WebSocketRoute("/third", third)]
)
star.add_route("/fourth", fourth)


@star.route("/fifth")
def fifth(request):  # http /fifth starlette
    return ""


class Home(HTTPEndpoint):
    async def get(self, request):  # http get starlette
        return ""


class Timing(BaseHTTPMiddleware):
    async def dispatch(self, request, call_next):  # handler dispatch starlette
        return await call_next(request)


@routes.get("/table")
async def table(request):  # http /table aiohttp
    return ""


async def got(request):  # http /got aiohttp
    return ""


async def routed(request):  # http /routed aiohttp
    return ""


server.router.add_get("/got", got)
server.add_get("/got", got)
server.add_route("*", "/routed", routed)
