// LangChain's ChatOpenAI for JavaScript: Chat Completions by default, Responses where it is told so.
import { ChatOpenAI } from "@langchain/openai";

const configuration = { baseURL: process.env.OPENAI_BASE_URL }; // OPENAI_API_KEY is read from the environment
const model = new ChatOpenAI({ model: process.env.MODEL, configuration });

console.log((await model.invoke("Say hello.")).text);
for await (const piece of await model.stream("Say hello slowly.")) process.stdout.write(piece.text);
console.log();

// knowledge, searched on the server; with Responses the citations come as annotations of the text
const responses = new ChatOpenAI({ model: process.env.MODEL, configuration, useResponsesApi: true });
const knowledge = { type: "file_search", vector_store_ids: [process.env.KNOWLEDGE_BASE_ID] };
const answer = await responses.bindTools([knowledge]).invoke("Which code word does the handbook name?");
console.log(answer.text);
for (const part of answer.content) {
  for (const citation of part.annotations ?? []) console.log("source:", citation.filename ?? citation.title);
}
