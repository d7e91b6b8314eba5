// Knowledge bases as the view of them needs them: descriptions, documents, passages, members, and uploads that tell how far they are.
import { authorization } from "../state/session";
import type { Whereabouts } from "../components/place_text";
import { ApiError, all, call, get, refusalOf, type Page } from "./client";
import type { KnowledgeBase, Role } from "./types";

export const GRADES = ["open", "strict"] as const;
export type Grade = (typeof GRADES)[number];

export const CONTENTS = ["documents", "records"] as const;
export type Content = (typeof CONTENTS)[number];

export interface Description {
  name: string;
  summary: string;
  topics: string[];
  routing_hint: string;
  routing_keywords: string[];
  restricted_translation: boolean;
  restricted_grade: Grade;
  /** In how many documents a word must stand to say nothing of one of them. */
  support: number;
  content: Content;
  embed: boolean;
}

/** A base as its readers see it; owners and editors are told what is withheld from restricted members. */
export interface ReadableBase extends KnowledgeBase, Description {
  embedded_chunks: number | null;
  chunks: number | null;
  /** How long the passages that wait take, as far as that is known. */
  embedding_seconds_left: number | null;
  /** How many documents it has, which the API says where it speaks of vector stores. */
  documents?: number;
  created_at: number;
  left_out?: string[];
  left_out_reasons?: Record<string, string[]>;
  left_out_words?: Record<string, string[]>;
  /** Set where nobody has chosen a grade. */
  grade_notice?: string | null;
  /** Set where it has fewer documents than its support. */
  support_notice?: string | null;
}

/** A base as its restricted members see it. */
export type RestrictedBase = KnowledgeBase & Pick<Description, "routing_hint" | "routing_keywords">;

export interface StoredDocument {
  id: string;
  name: string;
  media_type: string;
  sha256: string;
  bytes: number;
  chunks: number;
  created_at: number;
  /** What a reader of the file sees and the passages do not hold. */
  notes: string[];
  /** In lists: how many of its passages are found by meaning; null where nothing is embedded. */
  embedded_chunks?: number | null;
}

export interface Passage extends Whereabouts {
  id: string;
  heading_path: string[];
  text: string;
  tokens: number;
}

export interface Hit extends Whereabouts {
  document: string;
  chunk: string;
  heading_path: string[];
  text: string;
  score: number;
}

/** A user, or else a group with its name. */
export interface Member {
  user_id: string | null;
  group_id: string | null;
  group: string | null;
  role: Role;
}

/** Begins what a group is called where else a user is named. */
const GROUP_MARK = "group:";

export function memberName(member: Member): string {
  return member.user_id ?? GROUP_MARK + (member.group ?? "");
}

export const BASES = "/v1/knowledge_bases";

export function isReadable(base: KnowledgeBase): base is ReadableBase {
  return base.role !== "restricted_analyst";
}

export function mayWrite(base: KnowledgeBase): boolean {
  return base.role === "owner" || base.role === "editor";
}

export function documentPath(baseId: string, name: string): string {
  return `${BASES}/${baseId}/documents/${encodeURIComponent(name)}`;
}

/** The address of a member, who is named as by `memberName`; a group is looked up among those that the user sees. */
export async function memberPath(baseId: string, name: string, members: readonly Member[]): Promise<string> {
  const place = `${BASES}/${baseId}/members`;
  if (!name.startsWith(GROUP_MARK)) return `${place}/${encodeURIComponent(name)}`;
  const known = members.find((each) => each.group_id !== null && memberName(each) === name)?.group_id;
  const seen = known ? [] : await all<{ id: string; name: string }>("user", "/v1/groups");
  const wanted = name.slice(GROUP_MARK.length);
  const found = known ?? seen.find((each) => each.name === wanted || each.id === wanted)?.id ?? wanted;
  return `${place}/groups/${encodeURIComponent(found)}`;
}

export function readPassages(baseId: string, name: string, after: string): Promise<Page<Passage>> {
  const place = after && `&after=${encodeURIComponent(after)}`;
  return get<Page<Passage>>("user", `${BASES}/${baseId}/chunks?limit=50&document=${encodeURIComponent(name)}${place}`);
}

interface Store {
  id: string;
  file_counts: { completed: number };
}

export async function readBases(): Promise<KnowledgeBase[]> {
  const [found, stores] = await Promise.all([all<KnowledgeBase>("user", BASES), all<Store>("user", "/v1/vector_stores")]);
  const counts = new Map(stores.map((each) => [each.id, each.file_counts.completed]));
  return found.map((each) => ({ ...each, documents: counts.get(each.id) }));
}

export async function readBase(id: string): Promise<ReadableBase | RestrictedBase> {
  const name = encodeURIComponent(id);
  const [base, store] = await Promise.all([
    get<ReadableBase | RestrictedBase>("user", `${BASES}/${name}`),
    get<Store>("user", `/v1/vector_stores/${name}`),
  ]);
  return { ...base, documents: store.file_counts.completed };
}

/** Whether passages of a base still wait to be found by meaning. */
export function isEmbedding(base: KnowledgeBase): boolean {
  return isReadable(base) && base.embedded_chunks !== null && base.chunks !== null && base.embedded_chunks < base.chunks;
}

/** In how many minutes all passages are found by meaning; null where that is not known yet. */
export function minutesLeft(base: ReadableBase): number | null {
  return base.embedding_seconds_left === null ? null : Math.max(Math.ceil(base.embedding_seconds_left / 60), 1);
}

export async function createBase(name: string): Promise<ReadableBase> {
  return call<ReadableBase>("user", "POST", BASES, { body: { name } });
}

/** The server wants this one again later; `seconds` is when, where it says so. */
export class TryLater extends Error {
  constructor(override readonly cause: ApiError, readonly seconds: number | null) {
    super(cause.message);
  }
}

const LATER = new Set([0, 429, 502, 503, 504]);

/** Put a document; `onSent` is told which share of it has been sent. `fetch` cannot tell that. */
export function putDocument(baseId: string, name: string, file: Blob, onSent: (share: number) => void, signal: AbortSignal): Promise<StoredDocument> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", documentPath(baseId, name));
    for (const [name, value] of Object.entries(authorization("user"))) request.setRequestHeader(name, value);
    // The server tells a format by the ending of the name, which browsers do less well.
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => onSent(event.total ? event.loaded / event.total : 0);
    request.upload.onload = () => onSent(1);
    request.onload = () => {
      if (request.status < 300) return resolve(JSON.parse(request.responseText) as StoredDocument);
      const error = refusalOf(request.status, request.statusText, request.responseText);
      const seconds = Number(request.getResponseHeader("Retry-After")) || null;
      reject(LATER.has(request.status) ? new TryLater(error, seconds) : error);
    };
    request.onerror = () => reject(new TryLater(new ApiError(0, ""), null));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    if (signal.aborted) return reject(new DOMException("", "AbortError"));
    request.send(file);
  });
}
