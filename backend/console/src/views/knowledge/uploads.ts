// Uploads of this tab, a few at a time. They go on while another view is open, after a reload, and while the server is away.
import { effect, signal } from "@preact/signals";
import { ApiError } from "../../api/client";
import { putDocument, TryLater, type StoredDocument } from "../../api/knowledge";
import { holderOf } from "../../state/session";
import { readStored, writeStored } from "../../state/stored";
import type { GivenFile } from "./dropped";
import { forget, keep, keptFiles, newId, tabName, type KeptFile } from "./kept_files";

export type Stage = "waiting" | "sending" | "reading" | "stored" | "failed";

export interface Upload {
  id: string;
  baseId: string;
  name: string;
  sizeBytes: number;
  stage: Stage;
  /** Which share of the file has been sent, from 0 to 1. */
  sent: number;
  document: StoredDocument | null;
  fault: KeptFile["fault"];
  /** The server was away, or busy, when this one was last tried. */
  isDelayed: boolean;
}

/** Where this tab holds the key with which its uploads were begun. */
const OF_KEY = "ballast.uploads.key";
const isText = (found: unknown): found is string => typeof found === "string";

const AT_ONCE = 4;
const MOST_TRIES = 40;
const LONGEST_PAUSE_SECONDS = 15;

export const uploads = signal<Upload[]>([]);
const waitingFiles = new Map<string, Blob>();
let running = 0;
let leaving = new AbortController();

function change(id: string, changes: Partial<Upload>): void {
  uploads.value = uploads.value.map((each) => (each.id === id ? { ...each, ...changes } : each));
}

function uploadOf(kept: KeptFile): Upload {
  const { id, baseId, name, sizeBytes, fault } = kept;
  return { id, baseId, name, sizeBytes, stage: fault ? "failed" : "waiting", sent: 0, document: null, fault, isDelayed: false };
}

/** Upload these files into a base. What is kept of them for a reload is kept before the first one is sent. */
export async function upload(baseId: string, given: GivenFile[]): Promise<void> {
  const from = Date.now();
  const kept: KeptFile[] = given.map(({ name, file }, place) => ({
    id: newId(), tab: tabName(), baseId, name, sizeBytes: file.size, keptAt: from + place / 1e4, file, fault: null,
  }));
  enqueue(kept);
  await keep(kept);
  work();
}

function enqueue(kept: KeptFile[]): void {
  for (const each of kept) if (each.file) waitingFiles.set(each.id, each.file);
  uploads.value = [...uploads.value, ...kept.map(uploadOf)];
}

function work(): void {
  while (running < AT_ONCE) {
    const next = uploads.value.find((each) => each.stage === "waiting" && waitingFiles.has(each.id));
    if (!next) return;
    running += 1;
    change(next.id, { stage: "sending" });
    void send(next, leaving.signal).finally(() => {
      running -= 1;
      work();
    });
  }
}

async function send(one: Upload, signal: AbortSignal): Promise<void> {
  const file = waitingFiles.get(one.id);
  if (!file) return;
  const onSent = (sent: number): void => change(one.id, { sent, stage: sent < 1 ? "sending" : "reading" });
  for (let tried = 1; ; tried++) {
    try {
      const document = await putDocument(one.baseId, one.name, file, onSent, signal);
      settle(one.id, { stage: "stored", document, isDelayed: false });
      return void forget([one.id]);
    } catch (error) {
      if (signal.aborted) return;
      const cause = error instanceof TryLater ? error.cause : error;
      if (error instanceof TryLater && tried < MOST_TRIES) {
        change(one.id, { stage: "sending", sent: 0, isDelayed: true });
        await pause(error.seconds ?? Math.min(2 ** (tried - 1), LONGEST_PAUSE_SECONDS), signal);
        continue;
      }
      const { status, message, param } = cause instanceof ApiError ? cause : new ApiError(0, String(cause));
      const fault = { status, message, param };
      settle(one.id, { stage: "failed", fault, isDelayed: false });
      const { id, baseId, name, sizeBytes } = one;
      return void keep([{ id, tab: tabName(), baseId, name, sizeBytes, keptAt: Date.now(), file: null, fault }]);
    }
  }
}

function settle(id: string, changes: Partial<Upload>): void {
  waitingFiles.delete(id);
  change(id, changes);
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

/** Take uploads of a base from the list; with `stop` those, too, that have not ended. */
export function clear(baseId: string, stop: boolean): void {
  const hasEnded = (each: Upload): boolean => each.stage === "stored" || each.stage === "failed";
  const gone = uploads.value.filter((each) => each.baseId === baseId && (stop || hasEnded(each)));
  const ids = new Set(gone.map((each) => each.id));
  uploads.value = uploads.value.filter((each) => !ids.has(each.id));
  void forget([...ids]);
  if (stop) {
    ids.forEach((id) => waitingFiles.delete(id));
    leaving.abort();
    leaving = new AbortController();
    // What other bases were sending begins again.
    uploads.value = uploads.value.map((each) => (waitingFiles.has(each.id) ? { ...each, stage: "waiting", sent: 0 } : each));
    work();
  }
}

/** Go on with what this tab had been given before it was loaded again. Files of one key are not sent with another. */
export function followUploads(): void {
  let followed: string | null = null;
  effect(() => {
    const key = holderOf("user");
    if (key === followed) return;
    followed = key;
    if (readStored(sessionStorage, OF_KEY, null, isText) === key) return goOn();
    writeStored(sessionStorage, OF_KEY, key);
    drop();
  });
}

function goOn(): void {
  const { signal } = leaving;
  void keptFiles().then((kept) => {
    if (signal.aborted) return;
    enqueue(kept);
    work();
  });
}

function drop(): void {
  leaving.abort();
  leaving = new AbortController();
  waitingFiles.clear();
  uploads.value = [];
  void keptFiles().then((kept) => forget(kept.map((each) => each.id)));
}
