"""How near what is said is to a source by its meaning, beside how near it is to what can be said of any source."""

import asyncio
import tomllib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import shared
from backend.embeddings.domain import TextKind, Vector, WritingSystem, find_writing_system
from backend.embeddings.ports import Embedder
from backend.restricted.domain.told_facts import RETOLD, TOLD

MOST_VECTORS = 4_096
"""So many vectors of sentences are remembered: those of some ten searches, 6 MB of a small model."""

GeneralFindings = Mapping[WritingSystem, Sequence[str]]


def _read_findings() -> GeneralFindings:
    file = Path(shared.__file__).parent / "disclosure" / "findings.toml"
    lists = tomllib.loads(file.read_text(encoding="utf-8"))
    phrases = [pair for name in _OF_ANY_SOURCE for pair in lists[name].values()]
    english, chinese = zip(*phrases, strict=True)
    return {WritingSystem.LATIN: english, WritingSystem.HAN: chinese}


_OF_ANY_SOURCE = ("weaknesses", "strengths", "actions", "effects")
GENERAL_FINDINGS: Final = _read_findings()
"""What can be said of any source: the phrases of the coded findings that leave strict bases."""

_DIGEST_CHARACTERS = 12
_Rows = NDArray[np.float32]


class MeaningScale:
    """Measures what is said by the vectors of an embedder; `version` is that of all on which a measure depends.

    A nearness by itself says little: it depends on the model, the language and the topic. What is nearer to a sentence
    of the source than to any general finding says what that sentence says, with whatever model.
    """

    def __init__(
        self, embedder: Embedder, model: str, model_sha256: str = "", general: GeneralFindings = GENERAL_FINDINGS
    ) -> None:
        digest = sha256(repr((general, RETOLD, TOLD)).encode()).hexdigest()[:_DIGEST_CHARACTERS]
        self.version = f"{model} sha256:{model_sha256 or 'unknown'} {digest}"
        self._findings = general
        self._embedder = embedder
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._general: dict[WritingSystem, _Rows] = {}
        self._preparing = asyncio.Lock()

    async def prepare(self) -> None:
        """Have the vectors of general findings made, once.

        Raises:
            Unavailable: the embedder is away. Retryable.
        """
        for system in self._findings:
            await self._general_of(system)

    async def measure(self, said: Sequence[str], source: Sequence[str]) -> _Rows:
        """Return by how much each text that is said is nearer to each of the source than to any general finding.

        Raises:
            Unavailable: the embedder is away. Retryable.
            ModelRequestRejected: the embedder refuses the texts.
        """
        rows = await self._vectors_of(said)
        systems = [system for system in map(find_writing_system, said) if system in self._findings]
        general = [await self._general_of(system) for system in dict.fromkeys(systems) or self._findings]
        usual = (rows @ np.concatenate(general).T).max(axis=1, keepdims=True)
        return rows @ (await self._vectors_of(source)).T - usual

    async def _general_of(self, system: WritingSystem) -> _Rows:
        async with self._preparing:
            if system not in self._general:
                self._general[system] = _stack(await self._embedder.embed(self._findings[system], TextKind.PASSAGE))
            return self._general[system]

    async def _vectors_of(self, sentences: Sequence[str]) -> _Rows:
        """Return the vectors of sentences, one a row; those that are remembered are not asked for again."""
        # What is remembered is read before the wait, during which other answers may displace it.
        known = {sentence: self._vectors[sentence] for sentence in sentences if sentence in self._vectors}
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        if new:
            known.update(zip(new, await self._embedder.embed(new, TextKind.PASSAGE), strict=True))
        for sentence, vector in known.items():
            self._vectors[sentence] = vector
            self._vectors.move_to_end(sentence)
        while len(self._vectors) > MOST_VECTORS:
            self._vectors.popitem(last=False)
        return _stack([known[sentence] for sentence in sentences])


def _stack(vectors: Sequence[Vector]) -> _Rows:
    return np.frombuffer(b"".join(vectors), dtype=np.float32).reshape(len(vectors), -1)
