"""SCIM 2.0 (RFC 7643, RFC 7644) by a library, over the storage of one tenant."""

from scim2_models import (
    AuthenticationScheme,
    Bulk,
    ChangePassword,
    EnterpriseUser,
    ETag,
    Filter,
    Patch,
    PreconditionFailedException,
    ResourceType,
    SCIMException,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    User,
)
from scim2_server.handler import AsyncScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from scim2_server.service import ScimService
from scim2_server.storage import AsyncScimStorage

from backend.scim.domain import LARGEST_PAGE, ScimAnswer, ScimCall
from backend.scim.protocol.resources import FullUser, GroupResource

MOST_ATTEMPTS = 10

# Directories send attributes of their own, and Microsoft's names what is to be removed in the value.
_POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)

_CONFIG = ServiceProviderConfig(
    patch=Patch(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=LARGEST_PAGE),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=False),
    etag=ETag(supported=True),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken, name="Bearer", description="A token of the operator"
        )
    ],
)


class LibraryServer:
    """The `ScimServer` of the library."""

    def __init__(self, storage: AsyncScimStorage) -> None:
        types = [ResourceType.from_resource(FullUser), ResourceType.from_resource(GroupResource)]
        provider = ScimProvider(
            models=[User, EnterpriseUser, GroupResource], resource_types=types, config=_CONFIG, policy=_POLICY
        )
        self._service = ScimService(provider)
        self._handler = AsyncScimHandler(self._service, storage)

    async def answer(self, call: ScimCall) -> ScimAnswer:
        """Answer one request; one that names no version is applied anew to what another one has written meanwhile."""
        request = ScimRequest(call.method, call.base_url, call.path, call.query, call.headers, call.body)
        attempts = 1 if request.header("If-Match") is not None else MOST_ATTEMPTS
        try:
            response = await self._handle(request, attempts)
        except SCIMException as error:
            response = self._service.error_response(error)
        return ScimAnswer(int(response.status), response.body, response.headers)

    async def _handle(self, request: ScimRequest, attempts: int) -> ScimResponse:
        for _ in range(attempts - 1):
            try:
                return await self._handler.handle(request)
            except PreconditionFailedException:
                continue
        return await self._handler.handle(request)
