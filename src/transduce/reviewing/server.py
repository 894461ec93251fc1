"""The local server: the page's files, and a few JSON requests that map to the session and its views."""

import json
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transduce.errors import InputError
from transduce.reviewing.log import SaveError
from transduce.reviewing.security import TOKEN, App, Guard, new_secret
from transduce.reviewing.session import Session
from transduce.reviewing.views import Views

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
ADDRESS, FORMATS = "127.0.0.1", ("csv", "jsonl", "parquet", "json")

Body = Mapping[str, Any]
Export = Callable[[str], Mapping[str, str]]
"""Writes the decisions in a format, and returns the path of the file, and a command to use it with as `next`."""


class Api:
    """JSON requests by name, each from a body to an answer."""

    def __init__(self, session: Session, export: Export | None = None) -> None:
        self.session, self.views, self.export_to = session, Views(session), export

    def state(self, body: Body) -> Any:
        """Numbers, classes and estimates."""
        return self.session.summary() | {"formats": FORMATS if self.export_to else ()}

    def queue(self, body: Body) -> Any:
        """Cards of the next documents, without those that the page has."""
        without = [row for row in body.get("without", []) if type(row) is int]
        return self.views.queue(_whole(body, "n", 10), without)

    def document(self, body: Body) -> Any:
        """The card of one document."""
        return self.views.card(_whole(body, "row", -1))

    def documents(self, body: Body) -> Any:
        """A page of the documents that meet a filter."""
        return self.views.page(_object(body, "filter"), _whole(body, "offset", 0), _whole(body, "n", 20))

    def events(self, body: Body) -> Any:
        """Save decisions and other events."""
        events = body.get("events")
        if not isinstance(events, list):
            raise InputError("events must be a list.")
        return {"done": self.session.submit(events), "state": self.state(body)}

    def similar(self, body: Body) -> Any:
        """The class that a name which is none may be meant to be."""
        with self.session.lock:
            return {"name": self.session.state.similar_class(str(body.get("name", "")))}

    def bulk(self, body: Body) -> Any:
        """Decide all documents of a selection."""
        with self.session.lock:
            event = self.views.bulk_event(body.get("selection"), body.get("label"), body.get("how"))
            done = self.session.submit([{**event, "id": body.get("id")}])
        return {"done": done, "state": self.state(body)}

    def clusters(self, body: Body) -> Any:
        """Clusters of undecided documents."""
        return self.views.clusters()

    def map(self, body: Body) -> Any:
        """Points of the map."""
        return self.views.points()

    def sizes(self, body: Body) -> Any:
        """What other class sizes would change."""
        return self.views.preview_sizes(_object(body, "sizes"))

    def export(self, body: Body) -> Any:
        """Write the decisions to a file beside that of the documents."""
        if self.export_to is None:
            raise InputError("this review has no file to write beside. Use the frame that it returns.")
        if body.get("format") not in FORMATS:
            raise InputError(f"the format must be one of {', '.join(FORMATS)}, but is {body.get('format')!r}.")
        try:
            return self.export_to(body["format"])
        except OSError as error:
            raise InputError(f"The file was not written: {error}") from None


REQUESTS = (
    "state",
    "queue",
    "document",
    "documents",
    "events",
    "similar",
    "bulk",
    "clusters",
    "map",
    "sizes",
    "export",
)


def create_app(session: Session, secret: str, port: int, export: Export | None = None) -> App:
    """Return the ASGI application."""
    api = Api(session, export)
    routes = [Route(f"/api/{name}", _handler(getattr(api, name)), methods=["POST"]) for name in REQUESTS]
    page = files("transduce.reviewing") / "page"
    assets = {one.name: one.read_bytes() for one in page.iterdir() if one.name.endswith(tuple(TYPES))}

    async def show(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in assets:
            return Response("There is no such page.", status_code=404, media_type="text/plain")
        return Response(assets[name], media_type=TYPES[name[name.rindex(".") :]])

    routes += [Route("/", show), Route("/{name}", show)]
    return Guard(Starlette(routes=routes), secret=secret, port=port)


def _handler(answer: Callable[[Body], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            body = json.loads(await request.body() or b"{}")
            if not isinstance(body, dict):
                raise InputError("a request must be an object.")
            return JSONResponse(await run_in_threadpool(answer, body))
        except json.JSONDecodeError:
            return JSONResponse({"error": "a request must be JSON."}, status_code=400)
        except SaveError as error:
            return JSONResponse({"error": error.strerror, "saved": False}, status_code=507)
        except (InputError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)

    return handle


def _whole(body: Body, key: str, default: int) -> int:
    value = body.get(key, default)
    if type(value) is not int:
        raise InputError(f"{key} must be a whole number, but is {value!r}.")
    return value


def _object(body: Body, key: str) -> Mapping[str, Any]:
    value = body.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{key} must be an object.")
    return value


class ReviewServer:
    """A server on 127.0.0.1 for one session; `url` has the secret, `run` blocks until `stop` or Ctrl-C."""

    def __init__(self, session: Session, export: Export | None = None, port: int = 0) -> None:
        self.session = session
        tcp = socket.IPPROTO_TCP  # so that asyncio sets NODELAY
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, tcp)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((ADDRESS, port))
        except OSError:
            raise InputError(f"port {port} is in use. Name another with --port, or leave it out.") from None
        self._socket.listen()
        self.port = int(self._socket.getsockname()[1])
        secret = new_secret()
        self.url = f"http://{ADDRESS}:{self.port}/?{TOKEN}={secret}"
        app = create_app(session, secret, self.port, export)
        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
        self._server = uvicorn.Server(uvicorn.Config(app, ws="none", lifespan="off", **quiet))

    def run(self, *, open_browser: bool = False) -> None:
        """Serve in this thread."""
        if open_browser:
            threading.Timer(0.5, webbrowser.open, [self.url]).start()
        self._server.run(sockets=[self._socket])

    def start(self) -> threading.Thread:
        """Serve in a thread of its own, which is returned."""
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
