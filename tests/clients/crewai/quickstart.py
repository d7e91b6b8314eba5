"""CrewAI: a crew of one, and its language model alone."""

import os

from crewai import LLM, Agent, Crew, Task

# OPENAI_API_KEY is read from the environment
llm = LLM(model=f"openai/{os.environ['MODEL']}", base_url=os.environ["OPENAI_BASE_URL"])
print(llm.call("Say hello."))
greeter = Agent(role="greeter", goal="help", backstory="You are kind.", llm=llm)
task = Task(description="Say hello.", expected_output="A greeting.", agent=greeter)
print(Crew(agents=[greeter], tasks=[task]).kickoff().raw)
# knowledge, behind the name of an agent of the server
reader = LLM(model=f"openai/{os.environ['KNOWLEDGE_AGENT']}", base_url=os.environ["OPENAI_BASE_URL"])
print(reader.call("Which code word does the handbook name?"))
