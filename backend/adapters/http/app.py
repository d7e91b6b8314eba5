"""The HTTP door of the backend."""

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline
from starlette.middleware import Middleware

from backend.adapters.http import (
    routes_api_keys,
    routes_audit,
    routes_conversations,
    routes_health,
    routes_internal,
    routes_knowledge,
    routes_models,
    routes_prompts,
    routes_responses,
)
from backend.adapters.http.errors import install_error_handlers
from backend.adapters.http.rim import AccessCounters, BodyLimit, CleanAddress, LastCatch, RequestIds
from backend.adapters.http.services import HttpOptions, Services
from backend.adapters.http.shapes import ERROR_RESPONSES

# Asked in this order: what is called most comes first.
ROUTERS = (
    routes_responses.router,
    routes_prompts.router,
    routes_health.router,
    routes_conversations.router,
    routes_models.router,
    routes_knowledge.router,
    routes_api_keys.router,
    routes_audit.router,
    routes_internal.router,
)


def create_app(services: Services, options: HttpOptions) -> FastAPI:
    """Build the ASGI application; whoever built the services closes them."""
    # its pages bring their scripts along: behind a closed network, too, they show something
    app = FastAPIOffline(
        title="Ballast",
        summary="OpenAI's Responses API over knowledge bases.",
        strict_content_type=False,
        redirect_slashes=False,
        static_url="/docs/static",
        swagger_ui_parameters={"validatorUrl": "none"},
        middleware=[
            Middleware(RequestIds),
            Middleware(AccessCounters),
            Middleware(LastCatch),
            Middleware(CleanAddress),
            Middleware(BodyLimit, max_body_bytes=options.max_body_bytes),
        ],
    )
    app.state.services = services
    app.state.options = options
    install_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router, responses=ERROR_RESPONSES)
    return app
