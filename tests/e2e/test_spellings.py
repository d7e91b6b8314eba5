"""What strangers asked for in another spelling than their documents have, through the API, on both databases."""

from tests.e2e.pair import Pair
from tests.e2e.turns import bare_client, new_base

DOCUMENTS = {
    "letter": "Madame, votre résumé est prêt; venez le chercher.",
    "contract": "Frau Müller unterschreibt den Vertrag am Montag.",
    "licence": "這個軟體需要授權才能使用。",
    "order": "Please deliver item NOR070760 in boxes of sixty.",
    "river": "The river is cold, and 河水很冷. Boxes of 60 or 707 go north.",
}
ASKED = {
    "resume pret": "letter.md",
    "Mueller": "contract.md",
    "软件": "licence.md",
    "NOR0707-60": "order.md",
}


async def test_words_in_another_spelling_find_their_documents(pair: Pair) -> None:
    async with bare_client(pair, "cora") as cora:
        base = await new_base(cora, "Spellings", **DOCUMENTS)
        found: dict[str, str] = {}
        for query in ASKED:
            answer = await cora.post(f"/v1/knowledge_bases/{base}/search", json={"query": query})
            assert answer.status_code == 200, answer.text
            found[query] = answer.json()["data"][0]["document"]
        assert found == ASKED
