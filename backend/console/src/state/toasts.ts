// Short notes at the edge of the page: what was done, or what failed outside of any form.
import { signal } from "@preact/signals";

export interface Toast {
  id: number;
  kind: "note" | "error";
  text: string;
}

const SHOWN_MS = 6000;
let last = 0;

export const toasts = signal<Toast[]>([]);

export function toast(text: string, kind: Toast["kind"] = "note"): void {
  const id = ++last;
  toasts.value = [...toasts.value, { id, kind, text }];
  if (kind === "note") setTimeout(() => dismiss(id), SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}
