// Where the person is: `#/view/part/part`. The address is the whole truth, so that it can be kept and shared.
import { signal } from "@preact/signals";

export interface Place {
  view: string;
  parts: string[];
}

function placeOf(hash: string): Place {
  const [view = "", ...parts] = hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  return { view: view || "chat", parts };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const place = signal<Place>({ view: "chat", parts: [] });

export function addressOf(view: string, ...parts: string[]): string {
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}`;
}

export function go(view: string, ...parts: string[]): void {
  location.hash = addressOf(view, ...parts);
}

/** Go there without a step in the browser's history: what was shown is only named now. */
export function rename(view: string, ...parts: string[]): void {
  history.replaceState(null, "", addressOf(view, ...parts));
  place.value = placeOf(location.hash);
}

export function followAddress(): void {
  place.value = placeOf(location.hash);
  addEventListener("hashchange", () => {
    place.value = placeOf(location.hash);
  });
}
