// Short notes at the edge of the page: what was done, or what failed outside of any form.
import { signal } from "@preact/signals";

export interface Toast {
  id: number;
  /** `away` is an error that ends once the server answers again. */
  kind: "note" | "error" | "away";
  text: string;
}

const SHOWN_MS = 6000;
let last = 0;

export const toasts = signal<Toast[]>([]);

export function toast(text: string, kind: Toast["kind"] = "note"): void {
  const id = ++last;
  // What failed twice is said once.
  toasts.value = [...toasts.value.filter((each) => each.text !== text), { id, kind, text }];
  if (kind === "note") setTimeout(() => dismiss(id), SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

/** The server has answered. */
export function reached(): void {
  if (toasts.value.some((each) => each.kind === "away")) toasts.value = toasts.value.filter((each) => each.kind !== "away");
}
