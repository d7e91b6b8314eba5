"""Knowledge bases, members, documents and hits as clients see them."""

from collections.abc import Mapping
from operator import not_
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from backend.foundation.http.shapes import ListPage, RequestBody, unix_seconds
from backend.knowledge.domain.description_rules import NEUTRAL_NAME, LeftOut
from backend.knowledge.domain.kb_meta import (
    MAX_ROUTING_HINT_CHARACTERS,
    MAX_ROUTING_KEYWORD_CHARACTERS,
    MAX_ROUTING_KEYWORDS,
)
from backend.knowledge.domain.knowledge import Binding, Document, KnowledgeBase, MemberRole
from backend.knowledge.services.knowledge_documents import MAX_RESULTS
from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.ports.vectors import EmbeddingProgress
from shared.models.execution import AccessMode
from shared.models.safe_summary import LEAST_SUPPORT, MAX_SUPPORT, GateCode, RestrictedGrade
from shared.models.values import Place

MAX_QUERY_CHARACTERS = 100_000

BaseName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]
Summary = Annotated[str, Field(max_length=4000)]
Topics = Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=200)]], Field(max_length=50)]
RoutingHint = Annotated[str, Field(max_length=MAX_ROUTING_HINT_CHARACTERS)]
RoutingKeywords = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=MAX_ROUTING_KEYWORD_CHARACTERS)]],
    Field(max_length=MAX_ROUTING_KEYWORDS),
]


_LEFT_OUT = (
    "The fields that restricted members are not shown, such as `routing_keywords[1]`; "
    f'in the place of a `name` they see "{NEUTRAL_NAME}".'
)
_LEFT_OUT_REASONS = (
    "By field, the checks that it fails: `figures` a number, date, unit or amount; `identifiers` a name, a term, or an "
    "unusual word of the base; `decoders` and `unicode` a word in no dictionary; `markup` a sign that no "
    "sentence needs; `overlap` and `containment` a passage of the base; `instruction` an order to a model."
)
_LEFT_OUT_WORDS = (
    "By field, the words and phrases that fail, in lower case and sometimes without their endings; empty where the "
    "field fails as a whole."
)
RestrictedTranslation = Annotated[
    bool,
    Field(
        description=(
            "Whether a restricted member who asks in one language may be given a summary of text in another; for"
            " owners. The price: a translation is a copy that the gate's rules on words and combinations cannot see,"
            " so what a translated summary tells of a passage is checked far less."
        )
    ),
]
RestrictedGradeOfBase = Annotated[
    Literal["open", "strict"],
    Field(
        description=(
            "What may leave the base for its restricted members: `open`, prose that passes the gate; `strict`, findings"
            " made of codes of closed lists alone, about its keywords and the member's own everyday words. For owners;"
            " a new base without it has the operator's default, `BACKEND_RESTRICTED_GRADE`."
        )
    ),
]
SupportOfBase = Annotated[
    int,
    Field(
        ge=LEAST_SUPPORT,
        le=MAX_SUPPORT,
        description=(
            "In how many documents of the base a word must stand to say nothing of one of them, for its restricted"
            " members; for owners. Once it is set, coded findings alone leave a base with fewer documents, as with the"
            " grade `strict`."
        ),
    ),
]
ContentOfBase = Annotated[
    Literal["documents", "records"],
    Field(
        description=(
            "`records` where each passage or document is about one subject, such as a person: then neither their names"
            " nor the roles that stand for them are spoken of to restricted members, and a question that names one is"
            " refused. For owners."
        )
    ),
]
_SUPPORT_NOTICE = (
    "For the owners of a base that has fewer documents than its `support`: what that means for its restricted members."
    " Null elsewhere."
)
TOO_SMALL = (
    "This base has fewer documents than its support, so coded findings alone leave it for restricted members, as with"
    " the grade strict. Add documents."
)
TOO_SMALL_AND_OPEN = (
    f"This base has fewer than {LEAST_SUPPORT} documents, so what leaves it in prose is said of one of them. Set"
    " support, and coded findings alone leave it until it has so many documents; or set restricted_grade to strict."
)
_GRADE_NOTICE = (
    "For the owners of a base for which nobody has chosen a grade, because it is older than the grades: what holds, and"
    " what to do. Null elsewhere."
)
GRADE_NOT_CHOSEN = (
    "Nobody has chosen a grade for this base, so it is open: prose that passes the gate may leave for restricted"
    " members. Set restricted_grade to open or strict."
)


_SECONDS_LEFT = (
    "How long it takes until all chunks can be found by meaning, at the pace of the last batches of the process that"
    " answers, if no other base is embedded meanwhile; 0 when none waits, null where `embedded_chunks` is and before"
    " the first batch."
)
_EMBEDDED_CHUNKS = (
    "How many chunks can be found by meaning; null where no embedder is set up or the base is not embedded. A text"
    " that the model refuses stays out of this count."
)


_OTHER_NAMES = (
    "The names of other documents of the base with the same bytes, in which the passage was found as well; left out"
    " where there are none."
)


class CreateBase(RequestBody):
    """A new base; restricted members and their models see the name, hint and keywords, but not summary and topics."""

    name: BaseName
    summary: Summary = ""
    topics: Topics = Field(default=[])
    routing_hint: RoutingHint = ""
    routing_keywords: RoutingKeywords = Field(default=[])
    restricted_translation: RestrictedTranslation = False
    restricted_grade: RestrictedGradeOfBase = "open"
    support: SupportOfBase = LEAST_SUPPORT
    content: ContentOfBase = "documents"
    embed: bool = True


class UpdateBase(CreateBase):
    """Fields to change; what is left out stays."""

    name: BaseName = ""


class SearchBody(RequestBody):
    """A search of one base."""

    query: Annotated[str, Field(max_length=MAX_QUERY_CHARACTERS)]
    max_results: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 10


class RestrictedBase(BaseModel):
    """A base as its restricted members see it."""

    id: str
    name: str
    routing_hint: str
    routing_keywords: list[str]
    role: MemberRole


class ShownBase(RestrictedBase):
    """A base, and the caller's role in it; `version` grows with documents and with what owners alone decide."""

    object: Literal["knowledge_base"] = "knowledge_base"
    summary: str
    topics: list[str]
    restricted_translation: RestrictedTranslation
    restricted_grade: RestrictedGradeOfBase
    support: SupportOfBase
    content: ContentOfBase
    embed: bool
    embedded_chunks: Annotated[int | None, Field(description=_EMBEDDED_CHUNKS)] = None
    chunks: Annotated[
        int | None, Field(description="How many chunks the base has; null where `embedded_chunks` is.")
    ] = None
    embedding_seconds_left: Annotated[int | None, Field(description=_SECONDS_LEFT)] = None
    version: int
    created_at: int


class EditableBase(ShownBase):
    """A base for its owners and editors, with what of its description is withheld from its restricted members."""

    left_out: Annotated[list[str], Field(description=_LEFT_OUT)]
    left_out_reasons: Annotated[dict[str, list[GateCode]], Field(description=_LEFT_OUT_REASONS)]
    left_out_words: Annotated[dict[str, list[str]], Field(description=_LEFT_OUT_WORDS)]
    grade_notice: Annotated[str | None, Field(description=_GRADE_NOTICE)] = None
    support_notice: Annotated[str | None, Field(description=_SUPPORT_NOTICE)] = None


class BaseList(ListPage[ShownBase | RestrictedBase]):
    """A page of the caller's bases."""


class ShownDocument(BaseModel):
    """A document; `chunks` is the number of its pieces that are searched.

    `notes` say what a reader of the file sees and they do not hold, or what was guessed, such as the encoding.
    """

    id: str
    object: Literal["knowledge_base.document"] = "knowledge_base.document"
    knowledge_base_id: str
    name: str
    media_type: str
    sha256: str
    bytes: int
    chunks: int
    created_at: int
    notes: Annotated[list[str], Field(description="What a reader of the file sees and the chunks do not hold.")]


class DocumentWithProgress(ShownDocument):
    """A document in a list."""

    embedded_chunks: Annotated[int | None, Field(description=_EMBEDDED_CHUNKS)]


class DocumentList(ListPage[DocumentWithProgress]):
    """A page of documents, by name."""


class ShownPlace(Place):
    """Where in its file a passage stands: the page, the slide, the rows of a sheet, or else the headings above it."""

    heading: tuple[str, ...] | None = Field(default=None, exclude_if=not_)


class ShownChunk(BaseModel):
    """A piece of a document, as it is searched."""

    id: str
    object: Literal["knowledge_base.chunk"] = "knowledge_base.chunk"
    heading_path: list[str]
    place: ShownPlace | None
    text: str
    tokens: Annotated[int, Field(description="How long the text is in tokens, estimated.")]


class ChunkList(ListPage[ShownChunk]):
    """A page of the chunks of a document, in its order."""


class ShownHit(BaseModel):
    """A found chunk: `document` is the name it was put under, `chunk` its own id.

    `file_id` is the id of the document, or of the uploaded file that it was read from.
    """

    document: str
    other_names: Annotated[list[str], Field(exclude_if=not_, description=_OTHER_NAMES)] = []
    chunk: str
    heading_path: list[str]
    place: ShownPlace | None
    text: str
    score: float
    file_id: str


class Hits(BaseModel):
    """Found chunks, best first."""

    object: Literal["list"] = "list"
    data: list[ShownHit]


def show_base(
    binding: Binding,
    left_out: Mapping[str, LeftOut] | None = None,
    progress: EmbeddingProgress | None = None,
    *,
    is_too_small: bool = False,
) -> EditableBase | ShownBase | RestrictedBase:
    """Show a base in the form that the caller's role allows; with `left_out` to those who may change these fields."""
    base = binding.base
    visible = RestrictedBase(
        id=base.id,
        name=base.name,
        routing_hint=base.routing_hint,
        routing_keywords=list(base.routing_keywords),
        role=binding.role,
    )
    if binding.role.access_mode is not AccessMode.FULL:
        return visible
    shown = ShownBase(
        **dict(visible),
        summary=base.summary,
        topics=list(base.topics),
        restricted_translation=base.restricted_translation,
        restricted_grade=(base.restricted_grade or RestrictedGrade.OPEN).value,
        support=base.support or LEAST_SUPPORT,
        content=base.content.value,
        embed=base.embed,
        embedded_chunks=progress.embedded_chunks if progress is not None else None,
        chunks=progress.chunks if progress is not None else None,
        embedding_seconds_left=progress.seconds_left if progress is not None else None,
        version=base.version,
        created_at=unix_seconds(base.created_at),
    )
    if left_out is None:
        return shown
    is_owned = binding.role is MemberRole.OWNER
    return EditableBase(
        **dict(shown),
        left_out=list(left_out),
        left_out_reasons={place: list(why.codes) for place, why in left_out.items()},
        left_out_words={place: list(why.phrases) for place, why in left_out.items()},
        grade_notice=GRADE_NOT_CHOSEN if base.restricted_grade is None and is_owned else None,
        support_notice=_notice_of(base) if is_too_small and is_owned else None,
    )


def _notice_of(base: KnowledgeBase) -> str | None:
    if base.restricted_grade is RestrictedGrade.STRICT:
        return None
    return TOO_SMALL if base.support is not None else TOO_SMALL_AND_OPEN


def show_document(document: Document) -> ShownDocument:
    """Show a document without its text."""
    return ShownDocument(
        id=document.id,
        knowledge_base_id=document.knowledge_base_id,
        name=document.name,
        media_type=document.media_type,
        sha256=document.sha256,
        bytes=document.size_bytes,
        chunks=document.chunk_count,
        created_at=unix_seconds(document.created_at),
        notes=list(document.notes),
    )


def document_with_progress(document: Document, embedded_chunks: int | None) -> DocumentWithProgress:
    """Show a document, and how far it has been embedded."""
    return DocumentWithProgress(**dict(show_document(document)), embedded_chunks=embedded_chunks)


def show_chunk(chunk: Chunk) -> ShownChunk:
    """Show a chunk without its document."""
    return ShownChunk(
        id=chunk.id,
        heading_path=list(chunk.heading_path),
        place=_show_place(chunk),
        text=chunk.text,
        tokens=chunk.tokens,
    )


def _show_place(chunk: Chunk) -> ShownPlace | None:
    if chunk.place is not None:
        return ShownPlace(**dict(chunk.place))
    return ShownPlace(heading=chunk.heading_path) if chunk.heading_path else None


def show_hit(hit: ChunkHit) -> ShownHit:
    """Show a found chunk."""
    return ShownHit(
        document=hit.document_name,
        other_names=list(hit.other_names),
        chunk=hit.chunk.id,
        heading_path=list(hit.chunk.heading_path),
        place=_show_place(hit.chunk),
        text=hit.chunk.text,
        score=hit.score,
        file_id=hit.source_id,
    )
