// The Vercel AI SDK: Responses is what its OpenAI provider speaks unless told otherwise.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const model = openai(process.env.MODEL); // openai.chat(…) speaks Chat Completions

console.log((await generateText({ model, prompt: "Say hello." })).text);

for await (const piece of streamText({ model, prompt: "Say hello slowly." }).textStream) process.stdout.write(piece);
console.log();

// from a knowledge base, with citations
const tools = { file_search: openai.tools.fileSearch({ vectorStoreIds: [process.env.KNOWLEDGE_BASE_ID] }) };
const { text, sources } = await generateText({ model, tools, prompt: "Which code word does the handbook name?" });
console.log(text);
for (const source of sources) console.log("source:", source.filename);
