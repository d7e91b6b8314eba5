// Flows of the official client for Node over Responses, Chat Completions, files and vector stores.
import OpenAI, { toFile } from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { z } from "zod";
import * as kit from "./flow_kit.mjs";

const { check, checkTurn, collected, fileSearch, flow, getWeather, model, parallel, questions, refused } = kit;
const client = new OpenAI({ maxRetries: 0 });
const Person = z.object({ name: z.string(), age: z.number().int() });
const Weather = z.object({ city: z.string() });
const flat = { type: "function", name: "get_weather", parameters: kit.weatherSchema, strict: true };
const nested = { type: "function", function: { name: "get_weather", parameters: kit.weatherSchema } };
const user = (content) => ({ role: "user", content });
const say = async (messages, more = {}) =>
  (await client.chat.completions.create({ model, messages, ...more })).choices[0].message;

flow("plain", "responses", async () => {
  const response = await client.responses.create({ model, input: "Hello node" });
  checkTurn(1, response.output_text);
});

flow("plain", "chat, with response", async () => {
  const asked = { model, messages: [{ role: "developer", content: "Be kind." }, user("Hello chat")] };
  const { data, response } = await client.chat.completions.create(asked).withResponse();
  checkTurn(1, data.choices[0].message.content);
  check(response.headers.get("x-ballast-response-id"), [...response.headers]);
});

flow("plain", "models", async () => {
  check((await collected(client.models.list())).some((each) => each.id === model));
});

flow("streamed", "responses.create, responses.stream", async () => {
  const events = await collected(await client.responses.create({ model, input: "Hello events", stream: true }));
  checkTurn(1, events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join(""));
  const helper = client.responses.stream({ model, input: "Hello helper" });
  checkTurn(1, (await helper.finalResponse()).output_text);
});

flow("streamed", "chat.completions.create, chat.completions.stream", async () => {
  const asked = { model, messages: [user("Hello chunks")], stream_options: { include_usage: true } };
  const chunks = await collected(await client.chat.completions.create({ ...asked, stream: true }));
  checkTurn(1, chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? "").join(""));
  check(chunks.at(-1).usage.total_tokens > 0, chunks.at(-1));
  const helper = client.chat.completions.stream({ model, messages: [user("Hello chat helper")] });
  checkTurn(1, await helper.finalContent());
});

flow("streamed", "functions in both", async () => {
  const response = await client.responses.stream({ model, input: parallel, tools: [flat] }).finalResponse();
  check(response.output.map((call) => JSON.parse(call.arguments).city).join() === "Paris,Rome", response.output);
  const helper = client.chat.completions.stream({ model, messages: [user(parallel)], tools: [nested] });
  const { tool_calls } = await helper.finalMessage();
  check(tool_calls.map((call) => JSON.parse(call.function.arguments).city).join() === "Paris,Rome", tool_calls);
});

flow("structured", "responses.parse, chat.completions.parse", async () => {
  const text = { format: zodTextFormat(Person, "person") };
  check((await client.responses.parse({ model, input: "Who?", text })).output_parsed.name);
  const response_format = zodResponseFormat(Person, "person");
  const completion = await client.chat.completions.parse({ model, messages: [user("Who?")], response_format });
  check(completion.choices[0].message.parsed.name, completion);
});

flow("tools", "chat.completions.runTools", async () => {
  const tool = zodFunction({ name: "get_weather", parameters: Weather, function: getWeather });
  const runner = client.chat.completions.runTools({ model, messages: [user(kit.twoRounds)], tools: [tool] });
  check((await runner.finalContent()).includes("sun in Rome"), runner.messages);
  const streaming = { model, messages: [user(parallel)], tools: [tool], stream: true };
  check((await client.chat.completions.runTools(streaming).finalContent()).includes("rain in Paris"));
});

const outputsOf = (response) =>
  response.output
    .filter((item) => item.type === "function_call")
    .map(({ call_id, arguments: given }) => ({
      type: "function_call_output",
      call_id,
      output: getWeather(JSON.parse(given)),
    }));

flow("tools", "responses, previous_response_id and resent items", async () => {
  let response = await client.responses.create({ model, input: kit.twoRounds, tools: [flat] });
  for (let outputs; (outputs = outputsOf(response)).length; ) {
    const previous_response_id = response.id;
    response = await client.responses.create({ model, input: outputs, previous_response_id, tools: [flat] });
  }
  check(response.output_text.includes("sun in Rome"), response.output_text);
  const input = [user(parallel)];
  response = await client.responses.create({ model, input, tools: [flat] });
  input.push(...response.output, ...outputsOf(response));
  response = await client.responses.create({ model, input, tools: [flat] });
  input.push(...response.output, user("Thank you"));
  checkTurn(2, (await client.responses.create({ model, input, tools: [flat] })).output_text);
});

flow("knowledge", "responses file_search", async () => {
  const asked = { model, input: kit.knowledgeQuestion, tools: [fileSearch], include: ["file_search_call.results"] };
  const response = await client.responses.create(asked);
  const notes = response.output.filter((i) => i.type === "message").flatMap((i) => i.content[0].annotations);
  check(notes[0]?.filename === "handbook.md" && response.output_text.includes(kit.codeWord), response.output);
});

flow("knowledge", "chat file_search", async () => {
  const message = await say([user(kit.knowledgeQuestion)], { tools: [fileSearch] });
  check(message.annotations[0].url_citation.title === "handbook.md", message);
});

flow("history", "responses items", async () => {
  const input = [];
  for (const [index, question] of questions("responses items").entries()) {
    input.push(user(question));
    const response = await client.responses.create({ model, input });
    checkTurn(index + 1, response.output_text);
    input.push(...response.output);
  }
});

flow("history", "chat", async () => {
  const messages = [];
  for (const [index, question] of questions("chat").entries()) {
    messages.push(user(question));
    const message = await say(messages);
    checkTurn(index + 1, message.content);
    messages.push(message);
  }
});

flow("state", "conversations", async () => {
  const conversation = await client.conversations.create({ items: [user("Hi")] });
  const response = await client.responses.create({ model, input: "Now you", conversation: conversation.id });
  checkTurn(2, response.output_text);
  const items = await collected(client.conversations.items.list(conversation.id, { order: "asc" }));
  check(items.length === 3, items);
  await client.conversations.items.delete(items[2].id, { conversation_id: conversation.id });
  await client.conversations.delete(conversation.id);
});

flow("state", "retrieve, replay, background, delete", async () => {
  const { id } = await client.responses.create({ model, input: "Later", background: true });
  const events = await collected(await client.responses.retrieve(id, { stream: true }));
  check(events.at(-1).type === "response.completed", events.at(-1));
  check((await client.responses.retrieve(id)).status === "completed");
  await client.responses.delete(id);
  await refused(["404", id], () => client.responses.retrieve(id));
});

flow("images", "responses and chat", async () => {
  const parts = [{ type: "input_text", text: "What?" }, { type: "input_image", image_url: kit.pngUrl, detail: "auto" }];
  check((await client.responses.create({ model, input: [user(parts)] })).output_text.includes("I see 1 image"));
  const chatParts = [{ type: "text", text: "What?" }, { type: "image_url", image_url: { url: kit.pngUrl } }];
  check((await say([user(chatParts)])).content.includes("I see 1 image"));
});

flow("files", "files and vectorStores: uploadAndPoll, search", async () => {
  const store = await client.vectorStores.create({ name: "Inventory" });
  const file = await toFile(Buffer.from(kit.fileText), "inventory.md");
  const attached = await client.vectorStores.files.uploadAndPoll(store.id, file);
  check(attached.status === "completed", attached);
  const found = await client.vectorStores.search(store.id, { query: "code word of the inventory" });
  check(found.data[0].content[0].text.includes(kit.fileCodeWord), found.data);
  const tools = [{ type: "file_search", vector_store_ids: [store.id] }];
  check((await client.responses.create({ model, input: kit.fileQuestion, tools })).output_text.includes("MARIGOLD"));
});

flow("files", "responses input_file, chat file", async () => {
  const inner = { filename: "inventory.md", file_data: kit.fileData };
  const parts = [{ type: "input_file", ...inner }, { type: "input_text", text: kit.fileQuestion }];
  check((await client.responses.create({ model, input: [user(parts)] })).output_text.includes(kit.fileCodeWord));
  const message = await say([user([{ type: "file", file: inner }, { type: "text", text: kit.fileQuestion }])]);
  check(message.content.includes(kit.fileCodeWord), message);
});

flow("errors", "unknown model", async () => {
  const other = "no-such-model";
  await refused([other, model], () => client.responses.create({ model: other, input: "x" }));
  await refused([other, model], () => client.chat.completions.create({ model: other, messages: [user("x")] }));
});

flow("errors", "wrong key, too large, unsupported fields, embeddings", async () => {
  const stranger = new OpenAI({ apiKey: "sk-wrong", maxRetries: 0 });
  await refused(["401", "key"], () => stranger.responses.create({ model, input: "x" }));
  await refused(["413", "33554432"], () => client.responses.create({ model, input: kit.tooLarge }));
  const answer = await client.responses.create({ model, input: "x", tools: [{ type: "web_search" }] });
  check(answer.metadata.ballast_ignored === "tools[0]", answer.metadata);
  await refused(["seed"], () => client.responses.create({ model, input: "x", seed: "x" }));
  for (const wrong of [{ n: 9 }, { top_logprobs: 2 }, { seed: "x" }]) {
    await refused(Object.keys(wrong), () => say([user("x")], wrong));
  }
  await refused(["404", "embeddings"], () => client.embeddings.create({ model, input: "x" }));
});

flow("options", "responses and chat", async () => {
  const shared = { temperature: 0.2, top_p: 0.9, metadata: { a: "b" }, user: "u-1", store: true };
  const asked = { model, input: "Think: options", max_output_tokens: 200, reasoning: { effort: "low" }, ...shared };
  checkTurn(1, (await client.responses.create(asked)).output_text);
  const more = { max_tokens: 200, seed: 1, stop: ["END"], n: 1, logprobs: false, reasoning_effort: "low", ...shared };
  checkTurn(1, (await say([user("Think: options")], more)).content);
});

flow("streamed", "toReadableStream and back, abort, follow from a number", async () => {
  const stream = client.chat.completions.stream({ model, messages: [user("Hello you")] });
  const back = await ChatCompletionStream.fromReadableStream(stream.toReadableStream()).finalChatCompletion();
  check(back.choices[0].message.content.includes("Hello you"), back);
  const left = await client.responses.create({ model, input: "Hello", stream: true });
  let id;
  for await (const event of left) {
    id = event.response.id;
    left.controller.abort();
    break;
  }
  const rest = await collected(await client.responses.retrieve(id, { stream: true, starting_after: 0 }));
  check(rest[0].sequence_number === 1 && rest.at(-1).type === "response.completed", rest);
});

flow("tools", "zodResponsesFunction, parsed output sent back as it is", async () => {
  const tool = zodResponsesFunction({ name: "get_weather", parameters: Weather });
  const asked = user('Use get_weather({"city": "Paris"}).');
  const { output } = await client.responses.parse({ model, input: [asked], tools: [tool] });
  const call = output.find((item) => item.type === "function_call");
  check(call.parsed_arguments.city === "Paris", output);
  const given = { type: "function_call_output", call_id: call.call_id, output: "rain in Paris" };
  const next = await client.responses.create({ model, input: [asked, ...output, given], tools: [flat] });
  check(next.output_text.includes("rain in Paris"), next.output_text);
});

flow("state", "pages of files and of items", async () => {
  for (const name of ["a.md", "b.md"]) await client.files.create({ file: new File(["text"], name), purpose: "user_data" });
  const named = [];
  for await (const file of client.files.list({ limit: 1, purpose: "user_data" })) if (named.push(file.filename) === 2) break;
  check(named.join() === "b.md,a.md", named);
  const { id } = await client.conversations.create({ items: [user("Hello")] });
  await client.responses.create({ model, input: "More", conversation: id });
  check((await collected(client.conversations.items.list(id, { order: "asc", limit: 1 }))).length === 3);
});

await kit.run();
