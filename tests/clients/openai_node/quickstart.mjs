// Ask, stream, and ask about a knowledge base, through Responses and through Chat Completions.
import OpenAI from "openai";

const client = new OpenAI(); // reads OPENAI_BASE_URL, such as http://127.0.0.1:8000/v1, and OPENAI_API_KEY
const model = process.env.MODEL;
const knowledge = { type: "file_search", vector_store_ids: [process.env.KNOWLEDGE_BASE_ID] };

// plain, and continued without sending the history again
const first = await client.responses.create({ model, input: "Say hello." });
console.log(first.output_text);
const second = await client.responses.create({ model, input: "And again.", previous_response_id: first.id });
console.log(second.output_text);

// streamed
const stream = await client.responses.create({ model, input: "Say hello slowly.", stream: true });
for await (const event of stream) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}
console.log();

// from a knowledge base, with citations
const input = "Which code word does the handbook name?";
const answer = await client.responses.create({ model, input, tools: [knowledge] });
console.log(answer.output_text);
for (const item of answer.output.filter((each) => each.type === "message")) {
  for (const citation of item.content.flatMap((part) => part.annotations)) console.log("source:", citation.filename);
}
