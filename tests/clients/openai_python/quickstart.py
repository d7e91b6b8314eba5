"""Ask, stream, and ask about a knowledge base, through Responses and through Chat Completions."""

import os

from openai import OpenAI

client = OpenAI()  # reads OPENAI_BASE_URL, such as http://127.0.0.1:8000/v1, and OPENAI_API_KEY
model = os.environ["MODEL"]
knowledge = {"type": "file_search", "vector_store_ids": [os.environ["KNOWLEDGE_BASE_ID"]]}

# plain, and continued without sending the history again
first = client.responses.create(model=model, input="Say hello.")
print(first.output_text)
second = client.responses.create(model=model, input="And again.", previous_response_id=first.id)
print(second.output_text)

# streamed
with client.responses.stream(model=model, input="Say hello slowly.") as events:
    for event in events:
        if event.type == "response.output_text.delta":
            print(event.delta, end="", flush=True)
print()

# from a knowledge base, with citations
answer = client.responses.create(model=model, input="Which code word does the handbook name?", tools=[knowledge])
print(answer.output_text)
for item in answer.output:
    if item.type == "message":
        for part in item.content:
            for citation in part.annotations:
                print("source:", citation.filename)

# the same through Chat Completions
completion = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "Which code word does the handbook name?"}],
    tools=[knowledge],
)
message = completion.choices[0].message
print(message.content)
for annotation in message.annotations or []:
    print("source:", annotation.url_citation.title, annotation.url_citation.url)
