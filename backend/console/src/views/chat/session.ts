// The conversation that is shown: loading it, asking, stopping, and going on where a reload has left off.
import { signal } from "@preact/signals";
import { all, call, get, send } from "../../api/client";
import { follow, type StreamEvent } from "../../api/events";
import { after, isRunning, newTurn, textOf, turnsOf, withResponse, type Turn } from "../../api/turn";
import type { Item, ResponseObject } from "../../api/types";
import { errorText } from "../../components/notices";
import { rename } from "../../state/router";
import { isRecord, readStored, writeStored } from "../../state/stored";
import { choicesKnown, chooseBasesOfChat, chosenBases, chosenModel } from "./choices";
import { nameConversation } from "./history";

const RUNNING_KEY = "ballast.running";
const DRAWN_EVERY_MS = 33;
/** A long answer takes longer to draw, and is drawn more rarely. */
const CHARACTERS_A_MS = 500;
const WITH_RESULTS = "file_search_call.results";

export const conversationId = signal("");
export const turns = signal<Turn[]>([]);
export const loading = signal<"no" | "yes" | { error: unknown }>("no");
let following: AbortController | null = null;

export function runningTurn(): Turn | undefined {
  return turns.value.find(isRunning);
}

/** Show a conversation, or with an empty id a new one; follow its running turn. */
export async function show(id: string): Promise<void> {
  if (id === conversationId.value && id !== "") return;
  leave();
  conversationId.value = id;
  turns.value = [];
  chooseBasesOfChat(null);
  loading.value = id ? "yes" : "no";
  if (!id) return;
  try {
    const items = await all<Item>("user", `/v1/conversations/${id}/items?order=desc&include[]=${WITH_RESULTS}&include[]=response_id`);
    if (conversationId.value !== id) return;
    turns.value = turnsOf(items.reverse(), id);
    await goOn(id);
    if (conversationId.value === id) loading.value = "no";
  } catch (error) {
    if (conversationId.value === id) loading.value = { error };
  }
}

/** Stop following; the turn itself goes on. */
export function leave(): void {
  following?.abort();
  following = null;
  conversationId.value = "";
}

async function goOn(id: string): Promise<void> {
  const last = turns.value.at(-1);
  if (!last?.id) return;
  const response = await get<ResponseObject>("user", `/v1/responses/${last.id}?include[]=${WITH_RESULTS}`);
  if (conversationId.value !== id) return;
  const boundTo = (response.tools ?? []).flatMap((tool) => tool.vector_store_ids ?? []);
  if (response.tools) chooseBasesOfChat(boundTo);
  const known = kept(last.id) ?? { ...last, output: [] };
  const turn = { ...withResponse(isRunning(withResponse(last, response)) ? known : last, response), baseIds: boundTo };
  replace(turn);
  if (isRunning(turn)) void followTurn(turn);
}

function kept(responseId: string): Turn | null {
  const isTurn = (found: unknown): found is Turn => isRecord(found) && found["id"] === responseId;
  const found = readStored<Turn | null>(sessionStorage, RUNNING_KEY, null, (value): value is Turn | null => isTurn(value));
  writeStored(sessionStorage, RUNNING_KEY, null);
  return found;
}

/** What a running turn has said is kept over a reload, with the number of its newest event. */
addEventListener("pagehide", () => writeStored(sessionStorage, RUNNING_KEY, runningTurn() ?? null));

export interface Question {
  text: string;
  /** The turn that the question follows; null where it begins a conversation. */
  previous: Turn | null;
  /** Whether it goes beside what followed there, as an edited or repeated question does. */
  isFork?: boolean;
}

/** Return the request that asks what a turn has asked. */
export function requestOf(turn: Turn): Record<string, unknown> {
  const tools = turn.baseIds.length ? [{ type: "file_search", vector_store_ids: turn.baseIds }] : [];
  const previous = turn.previousId ? { previous_response_id: turn.previousId } : {};
  const origin = turn.conversationId ? { conversation: turn.conversationId } : previous;
  return { model: turn.model, input: turn.asked, ...origin, tools, include: [WITH_RESULTS], stream: true };
}

export async function ask({ text, previous, isFork = false }: Question): Promise<void> {
  await choicesKnown();
  const place = previous ? turns.value.findIndex((each) => each.id === previous.id) + 1 : 0;
  const turn = newTurn(text, {
    model: chosenModel.value,
    baseIds: chosenBases.value,
    previousId: previous?.id || null,
    conversationId: isFork ? "" : conversationId.value,
  });
  turns.value = [...turns.value.slice(0, place), turn];
  await followTurn(turn, requestOf(turn));
}

export async function stop(): Promise<void> {
  const turn = runningTurn();
  if (turn?.id) await call("user", "POST", `/v1/responses/${turn.id}/cancel`);
}

async function followTurn(begun: Turn, request?: Record<string, unknown>): Promise<void> {
  following?.abort();
  const leaving = (following = new AbortController());
  const drawing = new Drawing(begun);
  try {
    const begin = request && (() => send("user", "POST", "/v1/responses", { body: request, signal: leaving.signal }));
    const events = follow({ as: "user", signal: leaving.signal, after: begun.sequence, responseId: begun.id, ...(begin ? { begin } : {}) });
    for await (const event of events) drawing.add(event);
    if (!leaving.signal.aborted) drawing.draw();
  } catch (error) {
    if (!leaving.signal.aborted) drawing.fail(errorText(error));
  }
}

function lengthOf(turn: Turn): number {
  return turn.output.reduce((sum, item) => sum + (item.type === "message" ? textOf(item).length : 0), 0);
}

/** Draws a turn while it streams: some times a second, however many events come. */
class Drawing {
  private turn: Turn;
  private shown: Turn;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(begun: Turn) {
    this.turn = this.shown = begun;
  }

  add(event: StreamEvent): void {
    this.turn = after(this.turn, event);
    if (event.type === "response.created") {
      this.draw();
      settle(this.turn);
    }
    this.timer ??= setTimeout(() => this.draw(), DRAWN_EVERY_MS + lengthOf(this.turn) / CHARACTERS_A_MS);
  }

  draw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    turns.value = turns.value.map((each) => (each === this.shown ? this.turn : each));
    this.shown = this.turn;
  }

  fail(error: string): void {
    this.turn = { ...this.turn, status: "failed", error };
    this.draw();
  }
}

function replace(turn: Turn): void {
  turns.value = turns.value.map((each) => (each.id === turn.id ? turn : each));
}

/** A turn has begun: where it began a conversation, the address names that one now, and the history has it. */
function settle(turn: Turn): void {
  const id = turn.conversationId;
  if (!id || id === conversationId.value) return;
  conversationId.value = id;
  rename("chat", id);
  nameConversation(id, turns.value[0]?.asked ?? turn.asked).catch(() => undefined);
}
