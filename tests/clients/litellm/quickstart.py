"""LiteLLM: `openai/<model>` for Chat Completions, and its `responses` for Responses."""

import os

import litellm

# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
model = f"openai/{os.environ['MODEL']}"
knowledge = {"type": "file_search", "vector_store_ids": [os.environ["KNOWLEDGE_BASE_ID"]]}

answer = litellm.completion(model, messages=[{"role": "user", "content": "Say hello."}])
print(answer.choices[0].message.content)
for chunk in litellm.completion(model, messages=[{"role": "user", "content": "Say hello slowly."}], stream=True):
    print(chunk.choices[0].delta.content or "", end="", flush=True)
print()

# knowledge, searched on the server
answer = litellm.responses(model=model, input="Which code word does the handbook name?", tools=[knowledge])
for item in answer.output:
    if item.type == "message":
        print(item.content[0].text)
        for citation in item.content[0].annotations:
            print("source:", citation.filename)
