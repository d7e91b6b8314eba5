// The person's conversations, the newest first, under what was asked first in each.
import { signal } from "@preact/signals";
import { call, get, type Page } from "../../api/client";
import { textOf } from "../../api/turn";
import type { Conversation, Item } from "../../api/types";
import { holderOf } from "../../state/session";

const PAGE = 30;
const TITLE_LENGTH = 80;

export const conversations = signal<Conversation[]>([]);
export const hasMore = signal(false);
/** What was asked first in conversations that no page has given a title. */
export const firstQuestions = signal<Record<string, string>>({});
let ofKey = "";

export function titleOf(conversation: Conversation): string {
  return conversation.metadata["title"] ?? firstQuestions.value[conversation.id] ?? "";
}

/** Read the first page, or with `more` the one behind those that are known. */
export async function loadHistory(more = false): Promise<void> {
  const key = holderOf("user");
  if (key !== ofKey) conversations.value = [];
  ofKey = key;
  const after = more ? conversations.value.at(-1)?.id : undefined;
  const page = await get<Page<Conversation>>("user", `/v1/conversations?limit=${PAGE}${after ? `&after=${after}` : ""}`);
  if (key !== holderOf("user")) return;
  const known = new Set(page.data.map((each) => each.id));
  conversations.value = more ? [...conversations.value, ...page.data] : [...page.data, ...conversations.value.filter((each) => !known.has(each.id))];
  if (more || conversations.value.length === page.data.length) hasMore.value = page.has_more;
  await Promise.all(page.data.filter((each) => !titleOf(each)).map(readFirstQuestion));
}

async function readFirstQuestion(conversation: Conversation): Promise<void> {
  try {
    const page = await get<Page<Item>>("user", `/v1/conversations/${conversation.id}/items?order=asc&limit=1`);
    const first = page.data[0];
    firstQuestions.value = { ...firstQuestions.value, [conversation.id]: first ? short(textOf(first)) : "" };
  } catch {
    // It was deleted meanwhile.
  }
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH - 1)}…` : line;
}

/** Give a new conversation the title under which it is found again. */
export async function nameConversation(id: string, asked: string): Promise<void> {
  const named = await call<Conversation>("user", "POST", `/v1/conversations/${id}`, { body: { metadata: { title: short(asked) } } });
  conversations.value = [named, ...conversations.value.filter((each) => each.id !== id)];
}

export async function deleteConversation(id: string): Promise<void> {
  await call("user", "DELETE", `/v1/conversations/${id}`);
  conversations.value = conversations.value.filter((each) => each.id !== id);
}
