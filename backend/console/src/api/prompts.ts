// What the model calls of a conversation have sent: read, and measured as the server measures it.
import type { KeyName } from "../state/keys";
import { all, get } from "./client";
import type { Item } from "./types";

export interface PromptMessage {
  kind: string;
  role: string;
  content: string | { type: string; text?: string }[] | null;
  tool_calls?: unknown[];
  tool_call_id?: string;
  position: number | null;
  tokens: number;
  reused: boolean;
}

/** What a call would have cost had its words stood elsewhere, in tokens at the full price of input. */
export interface LayoutCost {
  layout: string;
  sent_tokens: number;
  cached_tokens: number;
  cost_tokens: number;
}

export interface Prompt {
  response_id?: string;
  call: number;
  epoch: number;
  epoch_reason: string | null;
  tools: unknown[];
  messages: PromptMessage[];
  reused_bytes: number;
  reused_tokens: number;
  cached_tokens: number | null;
  cost: { currency: string; amount: number; saved: number } | null;
  first_difference: string | null;
  shortfall: string | null;
  rewritten_tokens: number;
  cache_miss: string | null;
  cache_diagnosis: string | null;
  layouts: LayoutCost[];
  purpose: string;
  gauge: { window_tokens: number; used_tokens: number; reserved_tokens: number } | null;
}

/** `behind` is what ends a call behind the log: it is made anew for each, and sent again by none. */
export type Part = "tools" | "system" | "history" | "context" | "behind";

/** A part of what was sent: the tools, or one message. */
export interface Segment {
  part: Part;
  kind: string;
  sizeBytes: number;
  tokens: number | null;
  isReused: boolean;
  message: PromptMessage | null;
}

export interface ModelCall {
  responseId: string;
  turn: number;
  prompt: Prompt;
  segments: Segment[];
  sizeBytes: number;
}

const OURS = new Set(["kind", "position", "tokens", "reused"]);
const CONTEXT = new Set(["dynamic_context", "custom_instructions", "project_files", "reminder", "notice"]);
const AT_ONCE = 4;

/** Count the bytes that a value takes as it is sent. */
export function bytesOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

function partOf(kind: string): Part {
  if (kind === "system") return "system";
  return CONTEXT.has(kind) ? "context" : "history";
}

function sentOf(message: PromptMessage): unknown {
  return Object.fromEntries(Object.entries(message).filter(([name]) => !OURS.has(name)));
}

export function segmentsOf(prompt: Prompt): Segment[] {
  const logged = prompt.messages.findLastIndex((each) => each.position !== null || each.kind === "system");
  const messages = prompt.messages.map((message, place): Segment => {
    const part = place > logged ? "behind" : partOf(message.kind);
    return { part, kind: message.kind, sizeBytes: bytesOf(sentOf(message)), tokens: message.tokens, isReused: message.reused, message };
  });
  if (prompt.tools.length === 0) return messages;
  const sizeBytes = bytesOf(prompt.tools);
  const tools: Segment = { part: "tools", kind: "tools", sizeBytes, tokens: null, isReused: prompt.reused_bytes >= sizeBytes, message: null };
  return [tools, ...messages];
}

/** Read the model calls of all turns of a conversation, in order. */
export async function readCalls(as: KeyName, conversationId: string): Promise<ModelCall[]> {
  const items = await all<Item>(as, `/v1/conversations/${conversationId}/items?order=desc&include[]=response_id`);
  const ids = [...new Set(items.reverse().map((item) => item.response_id ?? ""))].filter(Boolean);
  const prompts: Prompt[][] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE).map((id) => get<{ data: Prompt[] }>(as, `/v1/responses/${id}/prompts?layouts=true`));
    prompts.push(...(await Promise.all(some)).map((list) => list.data));
  }
  return ids.flatMap((responseId, place) =>
    (prompts[place] ?? []).map((prompt) => {
      const segments = segmentsOf(prompt);
      const sizeBytes = segments.reduce((sum, each) => sum + each.sizeBytes, 0);
      return { responseId, turn: place + 1, prompt, segments, sizeBytes };
    }),
  );
}

export interface Totals {
  sentBytes: number;
  reusedBytes: number;
  usedTokens: number;
  cachedTokens: number | null;
  cost: { currency: string; amount: number; saved: number } | null;
}

export function totalsOf(calls: ModelCall[]): Totals {
  const cached = calls.map((each) => each.prompt.cached_tokens).filter((each) => each !== null);
  const costs = calls.map((each) => each.prompt.cost).filter((each) => each !== null);
  return {
    sentBytes: sum(calls.map((each) => each.sizeBytes)),
    reusedBytes: sum(calls.map((each) => each.prompt.reused_bytes)),
    usedTokens: sum(calls.map((each) => each.prompt.gauge?.used_tokens ?? 0)),
    cachedTokens: cached.length ? sum(cached) : null,
    cost: costs[0] ? { currency: costs[0].currency, amount: sum(costs.map((each) => each.amount)), saved: sum(costs.map((each) => each.saved)) } : null,
  };
}

/** Add up what the calls would have cost in each layout. */
export function layoutsOf(calls: ModelCall[]): LayoutCost[] {
  const costs = calls.flatMap((each) => each.prompt.layouts);
  return [...new Set(costs.map((each) => each.layout))].map((layout) => {
    const own = costs.filter((each) => each.layout === layout);
    const added = (name: "sent_tokens" | "cached_tokens" | "cost_tokens"): number => sum(own.map((each) => each[name]));
    return { layout, sent_tokens: added("sent_tokens"), cached_tokens: added("cached_tokens"), cost_tokens: added("cost_tokens") };
  });
}

/**
 * How much of each call's tools, system message and log the next call of its epoch has sent again, byte for byte at the
 * same place, by the page's own comparison; null where no call follows another one.
 */
export function shareKept(calls: ModelCall[]): number | null {
  let wholeBytes = 0;
  let keptBytes = 0;
  calls.slice(1).forEach((next, at) => {
    const last = calls[at];
    // Calls of lanes that run beside each other follow none of another lane.
    if (!last || last.prompt.response_id !== next.prompt.response_id) return;
    if (last.prompt.epoch !== next.prompt.epoch || [last, next].some((each) => each.prompt.purpose === "summary")) return;
    const earlier = last.segments.filter((each) => each.part !== "behind");
    const moved = earlier.findIndex((each, place) => textOf(each, last) !== textOf(next.segments[place], next));
    wholeBytes += sum(earlier.map((each) => each.sizeBytes));
    keptBytes += sum(earlier.slice(0, moved < 0 ? earlier.length : moved).map((each) => each.sizeBytes));
  });
  return wholeBytes ? keptBytes / wholeBytes : null;
}

function textOf(segment: Segment | undefined, call: ModelCall): string {
  return segment ? JSON.stringify(segment.message ? sentOf(segment.message) : call.prompt.tools) : "";
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
