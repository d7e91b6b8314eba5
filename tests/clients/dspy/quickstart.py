"""DSPy: signatures over a language model of the pair."""

import os

import dspy

# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
dspy.configure(lm=dspy.LM(f"openai/{os.environ['MODEL']}", api_base=os.environ["OPENAI_BASE_URL"]))
print(dspy.settings.lm("Say hello.")[0])
# knowledge, behind the name of an agent of the server
reader = dspy.LM(f"openai/{os.environ['KNOWLEDGE_AGENT']}", api_base=os.environ["OPENAI_BASE_URL"])
print(reader("Which code word does the handbook name?")[0])
