// The public API, called with one of the person's keys.
import { isRecord } from "../state/stored";
import type { KeyName } from "../state/keys";
import { authorization, credentials, readSession, session } from "../state/session";
import { reached } from "../state/toasts";

/** The API has refused, or cannot be reached (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly param: string | null = null,
    readonly code: string | null = null,
  ) {
    super(message);
  }
}

export interface CallOptions {
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, in place of `body`. */
  bytes?: Blob | ArrayBuffer | string;
  contentType?: string;
  signal?: AbortSignal;
}

/** Page of a list, in the form of OpenAI's lists. */
export interface Page<Item> {
  data: Item[];
  first_id: string;
  last_id: string;
  has_more: boolean;
}

export function send(as: KeyName, method: string, path: string, options: CallOptions = {}): Promise<Response> {
  return sendWith(authorization(as), credentials(as), method, path, options);
}

/** Return where a key is valid here. */
export async function tryKey(key: string): Promise<void> {
  await sendWith({ Authorization: `Bearer ${key}` }, "omit", "GET", "/v1/models", {});
}

async function sendWith(known: Record<string, string>, cookies: RequestCredentials, method: string, path: string, options: CallOptions): Promise<Response> {
  const headers = new Headers(known);
  let body: BodyInit | null = null;
  if (options.bytes !== undefined) {
    body = options.bytes;
    if (options.contentType) headers.set("Content-Type", options.contentType);
  } else if (options.body !== undefined) {
    body = JSON.stringify(options.body);
    headers.set("Content-Type", "application/json");
  }
  let answer: Response;
  try {
    answer = await fetch(path, { method, headers, body, signal: options.signal ?? null, cache: "no-store", credentials: cookies });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "");
  }
  reached();
  if (answer.status === 401 && session.value) void readSession();
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

export async function call<Answer>(as: KeyName, method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const answer = await send(as, method, path, options);
  return (await answer.json()) as Answer;
}

export function get<Answer>(as: KeyName, path: string, signal?: AbortSignal): Promise<Answer> {
  return call<Answer>(as, "GET", path, signal ? { signal } : {});
}

/** Read pages until the list ends, or has `most` entries: of a longer one, those that it begins with. */
export async function all<Item>(as: KeyName, path: string, most = 1000): Promise<Item[]> {
  const found: Item[] = [];
  const joint = path.includes("?") ? "&" : "?";
  let after = "";
  while (found.length < most) {
    const page = await get<Page<Item>>(as, `${path}${joint}limit=100${after && `&after=${encodeURIComponent(after)}`}`);
    found.push(...page.data);
    if (!page.has_more) break;
    after = page.last_id;
  }
  return found;
}

async function refusal(answer: Response): Promise<ApiError> {
  return refusalOf(answer.status, answer.statusText, await answer.text().catch(() => ""));
}

/** Read an answer that refuses, in OpenAI's form or in none. */
export function refusalOf(status: number, statusText: string, body: string): ApiError {
  try {
    const found: unknown = JSON.parse(body);
    const error = isRecord(found) && isRecord(found["error"]) ? found["error"] : {};
    return new ApiError(status, text(error["message"]) ?? statusText, text(error["param"]), text(error["code"]));
  } catch {
    return new ApiError(status, statusText);
  }
}

function text(found: unknown): string | null {
  return typeof found === "string" ? found : null;
}
