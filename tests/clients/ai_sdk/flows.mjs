// Flows of the Vercel AI SDK over Responses and over Chat Completions.
import { createOpenAI } from "@ai-sdk/openai";
import {
  embed,
  generateObject,
  generateText,
  Output,
  stepCountIs,
  streamObject,
  streamText,
  tool,
  ToolLoopAgent,
} from "ai";
import { z } from "zod";
import * as kit from "./flow_kit.mjs";

const { check, checkTurn, collected, flow, refused } = kit;
const openai = createOpenAI({ baseURL: kit.baseURL, apiKey: kit.apiKey });
const models = { responses: (name = kit.model) => openai(name), chat: (name = kit.model) => openai.chat(name) };
const Person = z.object({ name: z.string(), age: z.number().int() });
const weather = tool({
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async (given) => kit.getWeather(given),
});
const fileSearch = openai.tools.fileSearch({ vectorStoreIds: [kit.knowledgeBaseId] });
const tools = { get_weather: weather };
const stopWhen = stepCountIs(5);
const quiet = { maxRetries: 0 };

for (const [mode, model] of Object.entries(models)) {
  flow("plain", `${mode}, generateText`, async () => {
    const result = await generateText({ model: model(), system: "Be kind.", prompt: "Hello sdk", ...quiet });
    checkTurn(1, result.text);
    check(result.usage.totalTokens > 0, result.usage);
  });

  flow("streamed", `${mode}, streamText`, async () => {
    const result = streamText({ model: model(), prompt: "Hello stream", ...quiet });
    checkTurn(1, (await collected(result.textStream)).join(""));
    check((await result.finishReason) === "stop");
  });

  flow("streamed", `${mode}, streamText with functions`, async () => {
    const result = streamText({ model: model(), prompt: kit.twoRounds, tools, stopWhen, ...quiet });
    const kinds = (await collected(result.fullStream)).map((part) => part.type);
    check(kinds.filter((kind) => kind === "tool-result").length === 2, kinds);
    check((await result.text).includes("sun in Rome"), await result.text);
  });

  flow("structured", `${mode}, generateObject, streamObject`, async () => {
    const { object } = await generateObject({ model: model(), schema: Person, prompt: "Who?", ...quiet });
    check(object.name, object);
    const streaming = streamObject({ model: model(), schema: Person, prompt: "Who, streamed?", ...quiet });
    await collected(streaming.partialObjectStream);
    check((await streaming.object).name);
  });

  flow("structured", `${mode}, Output.object with functions`, async () => {
    const output = Output.object({ schema: Person });
    const result = await generateText({ model: model(), tools, stopWhen, output, prompt: kit.parallel, ...quiet });
    check(result.output.name, result);
  });

  flow("tools", `${mode}, two rounds, then a second turn`, async () => {
    const messages = [{ role: "user", content: kit.twoRounds }];
    const first = await generateText({ model: model(), messages, tools, stopWhen, ...quiet });
    check(first.text.includes("sun in Rome") && first.steps.length === 3, first.text);
    messages.push(...first.response.messages, { role: "user", content: "Thank you" });
    checkTurn(2, (await generateText({ model: model(), messages, tools, stopWhen, ...quiet })).text);
  });

  flow("tools", `${mode}, ToolLoopAgent, toolChoice`, async () => {
    const agent = new ToolLoopAgent({ model: model(), tools, instructions: "Be kind." });
    check((await agent.generate({ prompt: kit.parallel })).text.includes("rain in Paris"));
    const lone = { ...tools, get_weather: { ...weather, execute: undefined } };
    const forced = { model: model(), tools: lone, toolChoice: { type: "tool", toolName: "get_weather" }, ...quiet };
    check((await generateText({ ...forced, prompt: "Anything" })).toolCalls[0].toolName === "get_weather");
    const any = await generateText({ ...forced, toolChoice: "required", prompt: "Something" });
    check(any.toolCalls.length === 1, any.toolCalls);
  });

  flow("tools", `${mode}, a tool that fails, toolChoice none`, async () => {
    const broken = tool({ inputSchema: z.object({}), execute: () => Promise.reject(new Error("out of order")) });
    const told = await generateText({ model: model(), tools: { broken }, stopWhen, prompt: "Use broken({}).", ...quiet });
    check(told.text.includes("out of order"), told.text);
    const none = await generateText({ model: model(), tools, toolChoice: "none", prompt: kit.twoRounds, ...quiet });
    check(none.toolCalls.length === 0 && none.text, none.toolCalls);
  });

  flow("history", `${mode}, generateText`, async () => {
    const messages = [];
    for (const [index, question] of kit.questions(`${mode}, generateText`).entries()) {
      messages.push({ role: "user", content: question });
      const result = await generateText({ model: model(), system: "Be kind.", messages, tools, ...quiet });
      checkTurn(index + 1, result.text);
      messages.push(...result.response.messages);
    }
  });

  flow("history", `${mode}, streamText`, async () => {
    const messages = [];
    for (const question of kit.questions(`${mode}, streamText`)) {
      messages.push({ role: "user", content: question });
      const result = streamText({ model: model(), messages, ...quiet });
      await result.consumeStream();
      messages.push(...(await result.response).messages);
    }
  });

  flow("images", `${mode}, image`, async () => {
    const image = { type: "file", data: Buffer.from(kit.png, "base64"), mediaType: "image/png" };
    const messages = [{ role: "user", content: [{ type: "text", text: "What?" }, image] }];
    const { text } = await generateText({ model: model(), messages, ...quiet });
    check(text.includes("I see 1 image"), text);
  });

  flow("files", `${mode}, PDF`, async () => {
    // the provider takes PDF only
    const file = { type: "file", data: Buffer.from(onePagePdf()), mediaType: "application/pdf", filename: "a.pdf" };
    const messages = [{ role: "user", content: [file, { type: "text", text: kit.fileQuestion }] }];
    const { text } = await generateText({ model: model(), messages, ...quiet });
    check(text.includes(kit.fileCodeWord), text);
  });

  flow("errors", `${mode}, unknown model`, async () => {
    const other = model("no-such-model");
    await refused(["no-such-model", kit.model], () => generateText({ model: other, prompt: "x", ...quiet }));
  });

  flow("errors", `${mode}, wrong key, too large`, async () => {
    const stranger = createOpenAI({ baseURL: kit.baseURL, apiKey: "sk-wrong" });
    const theirs = mode === "chat" ? stranger.chat(kit.model) : stranger(kit.model);
    await refused(["key"], () => generateText({ model: theirs, prompt: "x", ...quiet }));
    await refused(["33554432"], () => generateText({ model: model(), prompt: kit.tooLarge, ...quiet }));
  });

  flow("options", `${mode}, limits, provider options`, async () => {
    const settings = { temperature: 0.2, topP: 0.9, maxOutputTokens: 200, seed: 1, stopSequences: ["END"] };
    const openaiOptions = { user: "u-1", metadata: { a: "b" }, store: true, parallelToolCalls: true };
    const providerOptions = { openai: { ...openaiOptions, reasoningEffort: "low" } };
    const result = await generateText({ model: model(), prompt: "Think: opts", ...settings, providerOptions, ...quiet });
    checkTurn(1, result.text);
  });
}

function onePagePdf() {
  const stream = "BT /F1 12 Tf 20 100 Td (The code word of the inventory is MARIGOLD.) Tj ET";
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  ];
  let text = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const offset = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return offset;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const trailer = `trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return `${text}xref\n0 6\n0000000000 65535 f \n${table}${trailer}`;
}

flow("knowledge", "responses, fileSearch", async () => {
  const asked = { model: openai(kit.model), tools: { file_search: fileSearch }, ...quiet };
  const result = await generateText({ ...asked, prompt: kit.knowledgeQuestion });
  check(result.text.includes(kit.codeWord) && result.sources[0]?.filename === "handbook.md", result.sources);
  const messages = [{ role: "user", content: kit.knowledgeQuestion }, ...result.response.messages];
  const again = await generateText({ ...asked, messages: [...messages, { role: "user", content: "And now?" }] });
  check(again.text.includes("And now?"), again.text);
});

flow("knowledge", "responses, fileSearch beside functions, streamed", async () => {
  const both = { file_search: fileSearch, get_weather: weather };
  const result = streamText({ model: openai(kit.model), tools: both, prompt: kit.knowledgeQuestion, stopWhen, ...quiet });
  const kinds = new Set((await collected(result.fullStream)).map((part) => part.type));
  check(kinds.has("source") && kinds.has("tool-result"), [...kinds]);
});

flow("state", "responses, previousResponseId, conversation, store false", async () => {
  const first = await generateText({ model: openai(kit.model), prompt: "First", ...quiet });
  const providerOptions = { openai: { previousResponseId: first.providerMetadata.openai.responseId } };
  checkTurn(2, (await generateText({ model: openai(kit.model), prompt: "Second", providerOptions, ...quiet })).text);
  const unstored = { openai: { store: false } };
  const messages = [{ role: "user", content: kit.parallel }];
  const asked = { model: openai(kit.model), tools, stopWhen, providerOptions: unstored, ...quiet };
  const result = await generateText({ ...asked, messages });
  messages.push(...result.response.messages, { role: "user", content: "Next" });
  checkTurn(2, (await generateText({ ...asked, messages })).text);
});

flow("errors", "embed, unsupported tool", async () => {
  const asked = { model: openai.embedding("text-embedding-3-small"), value: "x", ...quiet };
  await refused(["embeddings"], () => embed(asked));
  const search = { model: openai(kit.model), tools: { web_search: openai.tools.webSearch() }, prompt: "x", ...quiet };
  checkTurn(1, (await generateText(search)).text); // nobody runs it: it is passed over
});

await kit.run();
