"""LlamaIndex over Chat Completions and over Responses."""

import os

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

address = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}

# OpenAILike takes any model's name; OpenAI itself knows only the names of OpenAI's models
model = OpenAILike(model=os.environ["MODEL"], is_chat_model=True, is_function_calling_model=True, **address)
print(model.chat([ChatMessage(role="user", content="Say hello.")]).message.content)
for piece in model.stream_chat([ChatMessage(role="user", content="Say hello slowly.")]):
    print(piece.delta, end="", flush=True)
print()

# knowledge, searched on the server
knowledge = {"type": "file_search", "vector_store_ids": [os.environ["KNOWLEDGE_BASE_ID"]]}
responses = OpenAIResponses(model=os.environ["MODEL"], context_window=100_000, built_in_tools=[knowledge], **address)
answer = responses.chat([ChatMessage(role="user", content="Which code word does the handbook name?")])
print(answer.message.content)
for citation in answer.additional_kwargs["annotations"]:
    print("source:", citation.filename)
