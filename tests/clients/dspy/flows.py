"""Flows of DSPy: its language model over both APIs, its adapters, functions and histories."""

import dspy
from flow_kit import (
    API_KEY,
    BASE_URL,
    CODE_WORD,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PNG_URL,
    check,
    check_turn,
    flow,
    get_weather,
    modes,
    questions,
    refused,
    run,
)


class Describe(dspy.Signature):
    """Tell who it is."""

    question: str = dspy.InputField()
    name: str = dspy.OutputField()
    age: int = dspy.OutputField()


def lm(mode: str = "chat", name: str = MODEL, **options) -> dspy.LM:
    """Return the language model over one of the APIs, without DSPy's own cache."""
    return dspy.LM(
        f"openai/{name}", model_type=mode, api_base=BASE_URL, api_key=API_KEY, cache=False, num_retries=0, **options
    )


def text_of(answer) -> str:
    """Return the text of a model's first answer."""
    return answer if isinstance(answer, str) else answer["text"]


@modes("plain", "LM with a prompt")
def plain(mode: str):
    """One turn."""
    check_turn(1, text_of(lm(mode)("Hello dspy")[0]))


@modes("history", "LM with messages")
def resent(mode: str):
    """A history that the program keeps."""
    messages = []
    for number, words in enumerate(questions(f"{mode}, LM with messages"), 1):
        messages.append({"role": "user", "content": words})
        text = text_of(lm(mode)(messages=messages)[0])
        check_turn(number, text)
        messages.append({"role": "assistant", "content": text})


@modes("structured", "Predict with JSONAdapter")
def predicted(mode: str):
    """Fields of a signature by a JSON schema."""
    with dspy.context(lm=lm(mode), adapter=dspy.JSONAdapter()):
        found = dspy.Predict(Describe)(question="Who wrote the first program?")
    check(isinstance(found.age, int), found)


@modes("knowledge", "an agent named as the model")
def knowledge_by_name(mode: str):
    """Knowledge behind the name of a model."""
    text = text_of(lm(mode, KNOWLEDGE_AGENT)(KNOWLEDGE_QUESTION)[0])
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@flow("structured", "demos and a History")
def with_history():
    """Examples and earlier turns stand before the question."""
    history = dspy.History(messages=[{"question": "Who was first?", "name": "Ada", "age": 36}])

    class Follow(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        name: str = dspy.OutputField()

    predict = dspy.Predict(Follow)
    predict.demos = [dspy.Example(question="Who?", name="Bo").with_inputs("question")]
    with dspy.context(lm=lm(), adapter=dspy.JSONAdapter()):
        check(predict(question="And then?", history=history).name)


@flow("tools", "native function calling")
def functions():
    """Calls that the model names, which the program runs."""
    tool = dspy.Tool(get_weather).format_as_litellm_function_call()
    question = [{"role": "user", "content": 'Use get_weather({"city": "Paris"}).'}]
    answer = lm()(messages=question, tools=[tool])[0]
    check("Paris" in str(answer), answer)


@modes("streamed", "streamify")
async def streamed(mode: str):
    """Pieces of a field, and then the whole."""
    listener = dspy.streaming.StreamListener(signature_field_name="name")
    with dspy.context(lm=lm(mode), adapter=dspy.JSONAdapter()):
        program = dspy.streamify(dspy.Predict("question -> name"), stream_listeners=[listener])
        parts = [part async for part in program(question="Who?")]
    check(isinstance(parts[-1], dspy.Prediction), parts)


@flow("images", "Image field")
def images():
    """A picture as a field."""
    with dspy.context(lm=lm(), adapter=dspy.JSONAdapter()):
        found = dspy.Predict("picture: dspy.Image -> name")(picture=dspy.Image(url=PNG_URL))
    check(found.name, found)


@flow("options", "temperature, max_tokens, stop")
def options():
    """Options of the model."""
    check_turn(1, text_of(lm(temperature=0.3, max_tokens=60, stop=["###"])("Hello")[0]))


@flow("options", "several answers")
def several():
    """n answers of one call."""
    answers = lm(temperature=0.7, n=2)("Hello")
    check(len(answers) == 2, answers)


@flow("errors", "unknown model")
def unknown_model():
    """An error that names the model."""
    with refused("no-such-model"):
        lm(name="no-such-model")("Hello")


run()
