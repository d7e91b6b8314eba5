"""Reading the request for a turn: what it names of stored items, carries of summaries and gives of files."""

from dataclasses import replace
from typing import cast

from backend.conversations.domain.passed_over import IGNORED_KEY, PassedOver
from backend.conversations.domain.responses import StoredResponse
from backend.foundation.domain.json_objects import scan_json
from backend.foundation.services.steps import run_cooperatively
from backend.identity.domain import Caller
from backend.knowledge.domain.labels import decode_labels
from backend.openai_api.domain.turn_request import TurnRequest, turn_request_cooperatively
from backend.turns.domain.image_addresses import ImageAddresses, check_image_addresses
from backend.turns.domain.queued_request import QueuedRequest
from backend.turns.services.request.carried_summaries import CarriedSummaries
from backend.turns.services.request.input_files import InputFiles
from backend.turns.services.request.item_references import ReferencedItems
from backend.turns.services.turn_draft import AskedTurn


class RequestReader:
    """Reads requests, step by step: `resolved` puts stored items in place, `separated` takes files out."""

    def __init__(
        self, items: ReferencedItems, summaries: CarriedSummaries, files: InputFiles, images: ImageAddresses
    ) -> None:
        self._images = images
        self.resolved = items.resolve
        self._summaries = summaries
        self._files = files

    async def read(self, caller: Caller, request: TurnRequest) -> AskedTurn:
        """Return a request whose input names no stored items any more, apart from the files that it gives.

        Raises:
            InvalidRequest: there is no such item of this caller, or a file is neither given nor named; `param` names
                the place.
        """
        return await self.take_out_files(await self.resolved(caller, request))

    async def read_again(self, later: QueuedRequest, waited: StoredResponse) -> AskedTurn:
        """Return the request of a turn that has waited, as `asked` does."""
        metadata = cast("dict[str, str]", waited.body["metadata"])
        # What was passed over at first is not in the request any more; the response was shown with it.
        passed_over = PassedOver(metadata.get(IGNORED_KEY, ""))
        again = await run_cooperatively(turn_request_cooperatively(scan_json(later.request.encode()), passed_over))
        request = again.model_copy(update={"metadata": metadata})
        labels = {item_id: decode_labels(encoded) for item_id, encoded in later.labels.items()}
        return await self.take_out_files(AskedTurn(later.caller, request, labels, waited=waited))

    async def take_out_files(self, resolved: AskedTurn) -> AskedTurn:
        """Return a request apart from its files, with messages in the places of summaries.

        Raises:
            InvalidRequest: a file is neither given nor named, or the provider is not given the address of an image.
        """
        opened = await self._summaries.open(resolved)
        if not isinstance(opened.request.input, str):
            await run_cooperatively(check_image_addresses(opened.request.input, self._images))
        plain, files = await self._files.take_out(opened.request)
        return replace(opened, request=plain, files=files)
