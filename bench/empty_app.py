"""`python -m bench.empty_app`: a Starlette handler that does nothing, under uvicorn: what REST can be at most."""

from __future__ import annotations

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from streamhouse.server.tcp import bind


async def _empty(_: Request) -> JSONResponse:
    return JSONResponse({})


def main() -> None:
    bound = bind("127.0.0.1", 0)
    host, port = bound.getsockname()
    app = Starlette(routes=[Route("/{rest:path}", _empty, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, http="h11", log_level="warning", access_log=False))
    print(f"ready http={host}:{port}", flush=True)
    uvloop.run(server.serve(sockets=[bound]))


if __name__ == "__main__":
    main()
