// Who this browser is: the holder of the keys that the tab was given, or whoever has signed in.
import { computed, signal } from "@preact/signals";
import { keys, type KeyName } from "./keys";

export interface Session {
  user_id: string;
  tenant: string;
  role: string;
}

/** Sent by the page alone, so that no other site can use the session's cookie. */
const PAGE_HEADER = "X-Ballast-Page";
const LOOKED_AT_AGAIN_MS = 300_000;

export const offersSignIn = document.querySelector<HTMLMetaElement>('meta[name="sign-in"]')?.content === "on";
export const session = signal<Session | null>(null);
export const hasAccess = computed(() => has("user"));

/** Whether the page can call as this one: by a key of the tab, else by the session. */
export function has(as: KeyName): boolean {
  return Boolean(keys.value[as]) || usesSession(as);
}

/** What stands for who calls, so that nothing of one person is shown to the next. */
export function holderOf(as: KeyName): string {
  return keys.value[as] ?? (usesSession(as) && session.value ? `${session.value.tenant}\n${session.value.user_id}` : "");
}

/** The header by which the server knows who calls; a session is known by its cookie, which scripts cannot read. */
export function authorization(as: KeyName): Record<string, string> {
  return usesSession(as) ? { [PAGE_HEADER]: "1" } : { Authorization: `Bearer ${keys.value[as] ?? ""}` };
}

/** Call with the session's cookie where the session is used, and with no cookie otherwise. */
export function credentials(as: KeyName): RequestCredentials {
  return usesSession(as) ? "same-origin" : "omit";
}

function usesSession(as: KeyName): boolean {
  if (keys.value.user || !session.value) return false;
  return as === "user" || (as === "admin" && !keys.value.admin && session.value.role === "admin");
}

/** Ask who is signed in; the server gives an older session a new cookie with its answer. */
export async function readSession(): Promise<void> {
  if (!offersSignIn) return;
  const answer = await callSession("GET");
  if (answer?.ok) session.value = (await answer.json()) as Session;
  else if (answer?.status === 401) session.value = null;
}

export function followSession(): void {
  if (offersSignIn) setInterval(() => void (session.value && readSession()), LOOKED_AT_AGAIN_MS);
}

/** End the session here, and lead to where it can be ended at the identity provider, too. */
export async function signOut(): Promise<void> {
  const answer = await callSession("DELETE");
  session.value = null;
  const address = answer?.ok ? ((await answer.json()) as { address: string | null }).address : null;
  if (address) location.assign(address);
}

function callSession(method: string): Promise<Response | null> {
  return fetch("/session", { method, headers: { [PAGE_HEADER]: "1" }, credentials: "same-origin", cache: "no-store" }).catch(() => null);
}
