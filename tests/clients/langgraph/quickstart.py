"""LangGraph: an agent with a function, a checkpointer that resends its history, and a typed answer."""

import os

from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel


class Greeting(BaseModel):
    """What a typed answer holds."""

    text: str


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
model = ChatOpenAI(model=os.environ["MODEL"])
agent = create_agent(model, tools=[get_weather], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "one"}}
for words in ('Use get_weather({"city": "Paris"}).', "Thank you."):
    answer = agent.invoke({"messages": [{"role": "user", "content": words}]}, thread)
    print(answer["messages"][-1].content)
typed = create_agent(model, response_format=ProviderStrategy(Greeting))
# knowledge, behind the name of an agent of the server
reader = create_agent(ChatOpenAI(model=os.environ["KNOWLEDGE_AGENT"]))
question = {"role": "user", "content": "Which code word does the handbook name?"}
print(reader.invoke({"messages": [question]})["messages"][-1].content)
print(typed.invoke({"messages": [{"role": "user", "content": "Greet me."}]})["structured_response"])
