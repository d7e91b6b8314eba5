// What a browser keeps. Where it keeps nothing (a private window with storage off), the page works until it is closed.

export function readStored<Value>(storage: Storage, key: string, fallback: Value, isValue: (found: unknown) => found is Value): Value {
  try {
    const found: unknown = JSON.parse(storage.getItem(key) ?? "null");
    return isValue(found) ? found : fallback;
  } catch {
    return fallback;
  }
}

export function writeStored(storage: Storage, key: string, value: unknown): void {
  try {
    if (value === null) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(value));
  } catch {
    // The storage is full or switched off.
  }
}

export function isRecord(found: unknown): found is Record<string, unknown> {
  return typeof found === "object" && found !== null && !Array.isArray(found);
}
