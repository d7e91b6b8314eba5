// What a program of flows needs in Node: a flow is a function; each prints one JSON line about what came of it.

export const baseURL = process.env.OPENAI_BASE_URL;
export const apiKey = process.env.OPENAI_API_KEY;
export const model = process.env.MODEL;
export const knowledgeBaseId = process.env.KNOWLEDGE_BASE_ID;
export const codeWord = "HELIOTROPE";
export const knowledgeQuestion = "Which code word does the handbook name?";
export const fileSearch = { type: "file_search", vector_store_ids: [knowledgeBaseId] };
export const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
export const pngUrl = `data:image/png;base64,${png}`;
export const fileText = "# Inventory\n\nThe code word of the inventory is MARIGOLD.\n";
export const fileCodeWord = "MARIGOLD";
export const fileData = `data:text/markdown;base64,${Buffer.from(fileText).toString("base64")}`;
export const fileQuestion = "Which code word does the inventory name?";
export const tooLarge = "a".repeat(34 << 20);
export const weatherSchema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
// the model behind the pair does what stands here: calls divided by "and" come at once, after "then" in a later call
export const twoRounds = 'Use get_weather({"city": "Paris"}) then get_weather({"city": "Rome"}).';
export const parallel = 'Use get_weather({"city": "Paris"}) and get_weather({"city": "Rome"}).';

export const getWeather = ({ city }) => ({ Paris: "rain in Paris", Rome: "sun in Rome" })[city];

const flows = [];

// kind is a column of the table; name tells which way of the client the flow takes
export function flow(kind, name, body) {
  flows.push({ kind, name, body });
}

export function questions(name) {
  return [1, 2, 3, 4, 5].map((number) => `Question ${number} in the history of ${process.env.CLIENT} ${name}.`);
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value))?.slice(0, 800);

export function check(holds, ...seen) {
  if (!holds) throw new Error(seen.map(shown).join(" | ") || "does not hold");
}

export function checkTurn(number, text) {
  check(String(text).includes(`Turn ${number}:`), text);
}

// expects an error whose message, as the user of the client reads it, holds each of the words
export async function refused(words, body) {
  let message;
  try {
    await body();
  } catch (error) {
    message = String(error?.message ?? error);
  }
  check(message !== undefined, `nothing was refused; expected an error with ${words}`);
  const missing = words.filter((word) => !message.toLowerCase().includes(word.toLowerCase()));
  check(missing.length === 0, `the error does not name ${missing}`, message);
}

export async function collected(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

export async function run() {
  const chosen = new Set(process.argv.slice(2));
  for (const { kind, name, body } of flows) {
    if (chosen.size && !chosen.has(name)) continue;
    const beganAt = Date.now() / 1000;
    const started = performance.now();
    let outcome;
    try {
      const note = await body();
      outcome = { ok: true, note: typeof note === "string" ? note : "" };
    } catch (error) {
      console.error(error);
      outcome = { ok: false, note: `${error?.name}: ${error?.message}`.slice(0, 1500) };
    }
    const seconds = Math.round((performance.now() - started) / 10) / 100;
    process.stdout.write(`${JSON.stringify({ kind, flow: name, began_at: beganAt, seconds, ...outcome })}\n`);
  }
}
