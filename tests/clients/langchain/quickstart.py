"""LangChain's ChatOpenAI: Chat Completions by default, Responses where it is told so."""

import os

from langchain_openai import ChatOpenAI

knowledge = {"type": "file_search", "vector_store_ids": [os.environ["KNOWLEDGE_BASE_ID"]]}

# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
model = ChatOpenAI(model=os.environ["MODEL"])
print(model.invoke("Say hello.").content)
for piece in model.stream("Say hello slowly."):
    print(piece.content, end="", flush=True)
print()

# knowledge, searched on the server; with Responses the citations come as annotations of the text
responses = ChatOpenAI(model=os.environ["MODEL"], use_responses_api=True)
answer = responses.bind_tools([knowledge]).invoke("Which code word does the handbook name?")
for part in answer.content:
    if part["type"] == "text":
        print(part["text"])
        for citation in part["annotations"]:
            print("source:", citation["filename"])
