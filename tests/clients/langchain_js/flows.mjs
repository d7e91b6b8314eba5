// Flows of LangChain's ChatOpenAI for JavaScript in its default mode and over Responses.
import { AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { z } from "zod";
import * as kit from "./flow_kit.mjs";

const { check, checkTurn, collected, flow, refused } = kit;
const configuration = { baseURL: kit.baseURL };
const chat = (mode, more = {}) =>
  new ChatOpenAI({ model: kit.model, maxRetries: 0, configuration, useResponsesApi: mode === "responses", ...more });
const Person = z.object({ name: z.string(), age: z.number().int() });
const weather = tool(kit.getWeather, {
  name: "get_weather",
  description: "The weather of a city.",
  schema: z.object({ city: z.string() }),
});
const added = (pieces) => pieces.reduce((whole, piece) => whole.concat(piece));

for (const mode of ["chat", "responses"]) {
  flow("plain", `${mode}, invoke, batch`, async () => {
    checkTurn(1, (await chat(mode).invoke([new SystemMessage("Be kind."), new HumanMessage("Hello js")])).text);
    for (const each of await chat(mode).batch(["One", "Two"])) checkTurn(1, each.text);
  });

  flow("streamed", `${mode}, stream, streamEvents`, async () => {
    const whole = added(await collected(await chat(mode).stream("Hello stream")));
    checkTurn(1, whole.text);
    const events = await collected(chat(mode).streamEvents("Hello events", { version: "v2" }));
    check(events.some((event) => event.event === "on_chat_model_stream"), events.length);
  });

  flow("streamed", `${mode}, stream with functions`, async () => {
    const whole = added(await collected(await chat(mode).bindTools([weather]).stream(kit.parallel)));
    check(whole.tool_calls.map((call) => call.args.city).join() === "Paris,Rome", whole.tool_calls);
  });

  flow("structured", `${mode}, withStructuredOutput`, async () => {
    for (const method of ["jsonSchema", "functionCalling", "jsonMode"]) {
      const found = await chat(mode).withStructuredOutput(Person, { name: "person", method }).invoke(`Who? ${method}`);
      check(found.name, method, found);
    }
  });

  flow("tools", `${mode}, bindTools, two rounds, then a second turn`, async () => {
    const model = chat(mode).bindTools([weather]);
    const messages = [new HumanMessage(kit.twoRounds)];
    let answer = await model.invoke(messages);
    while (answer.tool_calls.length) {
      messages.push(answer);
      for (const call of answer.tool_calls) messages.push(await weather.invoke(call));
      answer = await model.invoke(messages);
    }
    check(answer.text.includes("sun in Rome"), answer.text);
    messages.push(answer, new HumanMessage("Thank you"));
    checkTurn(2, (await model.invoke(messages)).text);
  });

  flow("history", `${mode}, messages`, async () => {
    const messages = [new SystemMessage("Be kind.")];
    for (const [index, question] of kit.questions(`${mode}, messages`).entries()) {
      messages.push(new HumanMessage(question));
      const answer = await chat(mode).invoke(messages);
      checkTurn(index + 1, answer.text);
      messages.push(answer);
    }
  });

  flow("history", `${mode}, streamed, texts only`, async () => {
    const messages = [];
    for (const question of kit.questions(`${mode}, streamed, texts only`)) {
      messages.push(new HumanMessage(question));
      messages.push(new AIMessage(added(await collected(await chat(mode).stream(messages))).text));
    }
  });

  flow("images", `${mode}, image_url`, async () => {
    const image = { type: "image_url", image_url: { url: kit.pngUrl } };
    const answer = await chat(mode).invoke([new HumanMessage({ content: [{ type: "text", text: "What?" }, image] })]);
    check(answer.text.includes("I see 1 image"), answer.text);
  });

  flow("files", `${mode}, file`, async () => {
    const data = Buffer.from(kit.fileText).toString("base64");
    const metadata = { filename: "inventory.md" };
    const file = { type: "file", source_type: "base64", mime_type: "text/markdown", data, metadata };
    const content = [file, { type: "text", text: kit.fileQuestion }];
    const answer = await chat(mode).invoke([new HumanMessage({ content })]);
    check(answer.text.includes(kit.fileCodeWord), answer.text);
  });

  flow("errors", `${mode}, unknown model`, async () => {
    const other = chat(mode, { model: "no-such-model" });
    await refused(["no-such-model", kit.model], () => other.invoke("x"));
  });

  flow("errors", `${mode}, wrong key, too large, unsupported field`, async () => {
    await refused(["key"], () => chat(mode, { apiKey: "sk-wrong" }).invoke("x"));
    await refused(["33554432"], () => chat(mode).invoke(kit.tooLarge));
    await refused(["seed"], () => chat(mode, { modelKwargs: { seed: "x" } }).invoke("x"));
  });

  flow("options", `${mode}, limits, user`, async () => {
    const settings = { temperature: 0.2, topP: 0.9, maxTokens: 200, user: "u-1", modelKwargs: { metadata: { a: "b" } } };
    checkTurn(1, (await chat(mode, settings).invoke("Think: options")).text);
  });
}

flow("knowledge", "responses, file_search", async () => {
  const answer = await chat("responses").bindTools([kit.fileSearch, weather]).invoke(kit.knowledgeQuestion);
  const notes = answer.content.flatMap((part) => part.annotations ?? []);
  check(answer.text.includes(kit.codeWord) && notes[0]?.title === "handbook.md", answer.content);
});

flow("errors", "chat, n, logprobs, embeddings", async () => {
  await refused(["n:"], () => chat("chat", { n: 9 }).invoke("x"));
  await refused(["logprobs"], () => chat("chat", { topLogprobs: 2 }).invoke("x"));
  const embeddings = new OpenAIEmbeddings({ configuration, maxRetries: 0 });
  await refused(["embeddings"], () => embeddings.embedQuery("x"));
});

await kit.run();
