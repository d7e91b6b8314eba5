"""What the routes call: the use cases, and the figures of the door itself."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from backend.adapters.http.response_services import ResponseServices
from backend.services.admission import Admission
from backend.services.api_keys import ApiKeys
from backend.services.authenticate import Authenticate
from backend.services.conversations import Conversations
from backend.services.knowledge import KnowledgeServices
from backend.services.model_catalogue import ModelCatalogue
from backend.services.readiness import Readiness
from backend.services.restricted import RestrictedServices

DEFAULT_MAX_BODY_BYTES = 33_554_432


@dataclass(frozen=True)
class Services:
    """The use cases behind the HTTP door, each built by the application."""

    authenticate: Authenticate
    api_keys: ApiKeys
    admission: Admission
    readiness: Readiness
    models: ModelCatalogue
    conversations: Conversations
    knowledge: KnowledgeServices
    restricted: RestrictedServices
    responses: ResponseServices


@dataclass(frozen=True)
class HttpOptions:
    """What an operator sets about the door; `service_token` is what chat_shell presents at `/internal`."""

    service_token: str
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES


async def services_of(request: Request) -> Services:
    """Return the use cases of the application that serves this request."""
    return cast(Services, request.app.state.services)


async def options_of(request: Request) -> HttpOptions:
    """Return the options of the application that serves this request."""
    return cast(HttpOptions, request.app.state.options)


ServicesDep = Annotated[Services, Depends(services_of)]
OptionsDep = Annotated[HttpOptions, Depends(options_of)]
