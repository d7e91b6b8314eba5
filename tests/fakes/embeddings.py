"""The embeddings package over servers of the tests."""

from contextlib import AsyncExitStack

from backend.embeddings.domain import (
    ConfiguredEmbedder,
    EmbedderOptions,
    ProviderAddress,
    ProviderModel,
    RerankerOptions,
    TextForm,
)
from backend.embeddings.ports import Embedder
from backend.embeddings.wiring import EmbeddingPackage, build_embeddings, provider_of
from backend.foundation.services.admission import Admission
from shared.clock import SystemClock

QUERY_FORM = TextForm(prefix="query: ", input_type="query")
PASSAGE_FORM = TextForm(prefix="passage: ", input_type="passage")


def embedder_options(
    base_url: str,
    *,
    batch_texts: int = 4,
    concurrency: int = 2,
    timeout_seconds: float = 30,
    deadline_seconds: float = 20,
    prefixed: bool = True,
) -> EmbedderOptions:
    """Return options of an embedder at an address; the key is `key-of-the-embedder`."""
    forms = {"query": QUERY_FORM, "passage": PASSAGE_FORM}
    if not prefixed:
        forms = {kind: TextForm(input_type=form.input_type) for kind, form in forms.items()}
    return EmbedderOptions(
        ProviderAddress("the embedder", base_url, "key-of-the-embedder"),
        ConfiguredEmbedder(model="small", query=forms["query"], passage=forms["passage"]),
        batch_texts,
        concurrency,
        timeout_seconds,
        deadline_seconds,
    )


def embeddings_over(
    stack: AsyncExitStack,
    embedder: EmbedderOptions | None = None,
    reranker: RerankerOptions | None = None,
    moderation: ProviderModel | None = None,
) -> EmbeddingPackage:
    """Build the package, whose connections close with the stack."""
    return build_embeddings(embedder, reranker, moderation, Admission(), SystemClock(), stack)


def embedder_of(stack: AsyncExitStack, options: EmbedderOptions) -> Embedder:
    """Build what asks an embedder, alone."""
    return provider_of(options, SystemClock(), stack)
