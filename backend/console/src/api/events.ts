// Streams of a response: read, and followed on where a connection is cut, so that each event comes once and in order.
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { KeyName } from "../state/keys";
import { ApiError, send } from "./client";
import type { Annotation, ContentPart, Item, ResponseObject } from "./types";

interface Numbered {
  sequence_number: number;
}

type OfResponse =
  | "response.created"
  | "response.queued"
  | "response.in_progress"
  | "response.completed"
  | "response.incomplete"
  | "response.failed";

/** The events that the page reads; others are passed over by their type. */
export type StreamEvent = Numbered &
  (
    | { type: OfResponse; response: ResponseObject }
    | { type: "response.output_item.added" | "response.output_item.done"; output_index: number; item: Item }
    | { type: "response.content_part.added" | "response.content_part.done"; output_index: number; content_index: number; part: ContentPart }
    | { type: "response.output_text.delta" | "response.refusal.delta"; output_index: number; content_index: number; delta: string }
    | { type: "response.output_text.annotation.added"; output_index: number; content_index: number; annotation: Annotation }
    | { type: "response.reasoning_text.delta" | "response.reasoning_summary_text.delta"; output_index: number; delta: string }
    | { type: "error"; error?: { message?: string; type?: string } }
  );

const ENDS = new Set(["response.completed", "response.incomplete", "response.failed"]);
/** Errors of a connection, not of the turn, which goes on. */
const OF_CONNECTION = new Set(["Unavailable", "EventsLost"]);
const PAUSES_MS = [200, 500, 1000, 2000, 4000, 8000];

async function* eventsOf(answer: Response): AsyncGenerator<StreamEvent> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || value.data === "[DONE]") return;
      yield JSON.parse(value.data) as StreamEvent;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export interface Following {
  as: KeyName;
  signal: AbortSignal;
  /** The number of the newest event that is known already. */
  after?: number;
  responseId?: string;
  /** Begins the turn where there is none yet; a turn is never begun twice. */
  begin?: () => Promise<Response>;
}

/** Yield the events of a turn to its end: from its beginning, or behind the event `after`, over cut connections. */
export async function* follow(options: Following): AsyncGenerator<StreamEvent> {
  let { after = -1, responseId = "" } = options;
  let answer = options.begin ? await options.begin() : null;
  responseId ||= answer?.headers.get("x-ballast-response-id") ?? "";
  for (let attempt = 0; ; ) {
    try {
      answer ??= await send(options.as, "GET", followPath(responseId, after), { signal: options.signal });
      for await (const event of eventsOf(answer)) {
        if (event.type === "error" && OF_CONNECTION.has(event.error?.type ?? "")) break;
        if (event.sequence_number <= after) continue;
        after = event.sequence_number;
        attempt = 0;
        yield event;
        if (ENDS.has(event.type)) return;
      }
    } catch (error) {
      if (options.signal.aborted) return;
      if (error instanceof ApiError && error.status !== 0 && error.status !== 503) throw error;
    }
    answer = null;
    const pause = PAUSES_MS[attempt++];
    if (pause === undefined || !responseId) throw new ApiError(0, "");
    await rest(pause, options.signal);
    if (options.signal.aborted) return;
  }
}

function followPath(responseId: string, after: number): string {
  const include = "include[]=file_search_call.results";
  return `/v1/responses/${responseId}?stream=true&${include}${after >= 0 ? `&starting_after=${after}` : ""}`;
}

function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
