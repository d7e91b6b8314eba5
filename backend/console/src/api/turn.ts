// A turn as the page knows it: what was asked, and what its events have said so far. Nothing here touches the page.
import type { StreamEvent } from "./events";
import type { ContentPart, Item, ResponseObject, Status, Usage } from "./types";

export interface Turn {
  /** The id of the response; empty until the server has named it, and of history that a client has given. */
  id: string;
  asked: string;
  status: Status;
  output: Item[];
  /** The number of the newest event that is in here. */
  sequence: number;
  conversationId: string;
  model: string;
  /** The turn that this one continues; null where it begins a conversation. */
  previousId: string | null;
  baseIds: string[];
  usage: Usage | null;
  /** What went wrong, in the server's words. */
  error: string;
  /** Why an answer is not whole. */
  reason: string;
  /** What the model thinks, as it streams. */
  thinking: string;
}

export function newTurn(asked: string, changes: Partial<Turn> = {}): Turn {
  return {
    id: "",
    asked,
    status: "queued",
    output: [],
    sequence: -1,
    conversationId: "",
    model: "",
    previousId: null,
    baseIds: [],
    usage: null,
    error: "",
    reason: "",
    thinking: "",
    ...changes,
  };
}

export function isRunning(turn: Turn): boolean {
  return turn.status === "queued" || turn.status === "in_progress";
}

/** Return the turn after an event; one that is in it already changes nothing, so that no word is lost or doubled. */
export function after(turn: Turn, event: StreamEvent): Turn {
  if (event.sequence_number <= turn.sequence) return turn;
  return { ...changed(turn, event), sequence: event.sequence_number };
}

function changed(turn: Turn, event: StreamEvent): Turn {
  switch (event.type) {
    case "response.created":
    case "response.queued":
    case "response.in_progress":
    case "response.completed":
    case "response.incomplete":
    case "response.failed":
      return withResponse(turn, event.response, event.type);
    case "response.output_item.added":
    case "response.output_item.done":
      return withItem(turn, event.output_index, () => event.item);
    case "response.content_part.added":
    case "response.content_part.done":
      return withPart(turn, event.output_index, event.content_index, () => event.part);
    case "response.output_text.delta":
      return withPart(turn, event.output_index, event.content_index, (part) => ({ ...part, text: (part.text ?? "") + event.delta }));
    case "response.refusal.delta":
      return withPart(turn, event.output_index, event.content_index, (part) => ({ ...part, refusal: (part.refusal ?? "") + event.delta }));
    case "response.output_text.annotation.added":
      return withPart(turn, event.output_index, event.content_index, (part) => ({
        ...part,
        annotations: [...(part.annotations ?? []), event.annotation],
      }));
    case "response.reasoning_text.delta":
    case "response.reasoning_summary_text.delta":
      return { ...turn, thinking: turn.thinking + event.delta };
    case "error":
      return { ...turn, error: event.error?.message ?? "" };
    default:
      return turn;
  }
}

/** Return the turn with what a response object says of it; its output counts once the turn has ended. */
export function withResponse(turn: Turn, response: ResponseObject, event = ""): Turn {
  const isEnd = !["queued", "in_progress"].includes(response.status) || event === "response.failed";
  return {
    ...turn,
    id: response.id,
    status: response.status,
    model: response.model,
    conversationId: response.conversation?.id ?? turn.conversationId,
    previousId: response.previous_response_id ?? turn.previousId,
    usage: response.usage,
    error: response.error?.message ?? turn.error,
    reason: response.incomplete_details?.reason ?? "",
    output: isEnd && response.output.length > 0 ? withKnownResults(response.output, turn.output) : turn.output,
  };
}

/** Keep the results of searches that are known: a response object shows them only where they are asked for. */
function withKnownResults(output: Item[], known: Item[]): Item[] {
  const results = new Map(known.map((item) => [item.id, item.results]));
  return output.map((item) => (item.type === "file_search_call" && !item.results ? { ...item, results: results.get(item.id) ?? null } : item));
}

function withItem(turn: Turn, place: number, change: (item: Item) => Item): Turn {
  const output = [...turn.output];
  output[place] = change(output[place] ?? { type: "message", id: "", content: [] });
  return { ...turn, output };
}

function withPart(turn: Turn, place: number, partPlace: number, change: (part: ContentPart) => ContentPart): Turn {
  return withItem(turn, place, (item) => {
    const content = Array.isArray(item.content) ? [...item.content] : [];
    content[partPlace] = change(content[partPlace] ?? { type: "output_text", text: "" });
    return { ...item, content };
  });
}

/** Put the items of a conversation together to turns; `response_id` tells which belong to one. */
export function turnsOf(items: Item[], conversationId: string): Turn[] {
  const turns: Turn[] = [];
  for (const item of items) {
    const responseId = item.response_id ?? "";
    const isAsked = item.type === "message" && item.role === "user";
    let turn = turns.at(-1);
    const isNew = !turn || turn.id !== responseId || (isAsked && turn.output.length > 0);
    if (isNew) {
      const previousId = turn?.id || null;
      turn = newTurn("", { id: responseId, status: "completed", conversationId, previousId });
      turns.push(turn);
    }
    if (!turn) continue;
    if (isAsked) turn.asked = [turn.asked, textOf(item)].filter(Boolean).join("\n\n");
    else turn.output.push(item);
  }
  return turns;
}

export function textOf(item: Item): string {
  if (typeof item.content === "string") return item.content;
  return (item.content ?? []).map((part) => part.text ?? part.refusal ?? part.filename ?? "").join("\n\n");
}
