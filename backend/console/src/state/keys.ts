// The keys that the person has given to this tab. They live as long as the tab, and are sent to this server alone.
import { signal } from "@preact/signals";
import { isRecord, readStored, writeStored } from "./stored";

/** Whose keys the page can hold: a user's, a restricted analyst's, an administrator's. */
export const KEY_NAMES = ["user", "restricted", "admin"] as const;
export type KeyName = (typeof KEY_NAMES)[number];
export type Keys = Partial<Record<KeyName, string>>;

const STORED = "ballast.keys";

const isKeys = (found: unknown): found is Keys =>
  isRecord(found) && Object.entries(found).every(([name, key]) => KEY_NAMES.includes(name as KeyName) && typeof key === "string");

export const keys = signal<Keys>(readStored(sessionStorage, STORED, {}, isKeys));

export function setKeys(given: Keys): void {
  const kept = Object.fromEntries(Object.entries(given).filter(([, key]) => key));
  keys.value = kept;
  writeStored(sessionStorage, STORED, Object.keys(kept).length ? kept : null);
}

/** Take keys out of the address, now and whenever they are put there: they come to stand in no history and no picture. */
export function followKeysInAddress(): void {
  takeKeysFromAddress();
  addEventListener("hashchange", takeKeysFromAddress);
}

function takeKeysFromAddress(): void {
  const fragment = location.hash.slice(1);
  if (!fragment || fragment.startsWith("/")) return;
  const given = new URLSearchParams(fragment);
  const found: Keys = {};
  for (const name of KEY_NAMES) {
    const key = given.get(name);
    if (key) found[name] = key;
  }
  history.replaceState(null, "", location.pathname + location.search);
  if (Object.keys(found).length) setKeys(found);
}
