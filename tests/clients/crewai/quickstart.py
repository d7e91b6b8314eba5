"""CrewAI: a crew of one, and its language model alone."""

import os

from crewai import LLM, Agent, Crew, Task

# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
llm = LLM(model=f"openai/{os.environ['MODEL']}")
print(llm.call("Say hello."))
helper = Agent(role="helper", goal="help", backstory="You are kind.", llm=llm)
task = Task(description="Say hello.", expected_output="A greeting.", agent=helper)
print(Crew(agents=[helper], tasks=[task]).kickoff().raw)
