// Files that are still to be uploaded, kept by the browser so that a reload does not lose them: each for the tab that was
// given it, until it is uploaded, and for a day at most.
import type { ApiError } from "../../api/client";

export interface KeptFile {
  id: string;
  tab: string;
  baseId: string;
  name: string;
  sizeBytes: number;
  keptAt: number;
  /** Null when it is no longer needed, because the server has refused it. */
  file: Blob | null;
  fault: Pick<ApiError, "status" | "message" | "param"> | null;
}

const STORE = "files";
const TAB = "ballast.tab";
const LONGEST_MS = 24 * 3600 * 1000;
let opened: Promise<IDBDatabase> | null = null;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("ballast.uploads", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

/** Do one thing to the store; where the browser keeps nothing, uploads live as long as the page. */
async function stored<Value>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<Value> | void): Promise<Value | null> {
  try {
    const transaction = (await database()).transaction(STORE, mode);
    return await new Promise((resolve, reject) => {
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request ? request.result : null);
      transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return null;
  }
}

/** Return a name for this tab that a reload does not change. */
export function tabName(): string {
  try {
    const found = sessionStorage.getItem(TAB) ?? newId();
    sessionStorage.setItem(TAB, found);
    return found;
  } catch {
    return newId();
  }
}

export function newId(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((each) => each.toString(36)).join("-");
}

export async function keep(files: KeptFile[]): Promise<void> {
  await stored("readwrite", (store) => files.forEach((each) => store.put(each)));
}

export async function forget(ids: string[]): Promise<void> {
  await stored("readwrite", (store) => ids.forEach((each) => store.delete(each)));
}

/** Return what this tab has kept, in the order in which it was given; what nobody has fetched for a day is deleted. */
export async function keptFiles(): Promise<KeptFile[]> {
  const found = (await stored<KeptFile[]>("readonly", (store) => store.getAll())) ?? [];
  const isOld = (each: KeptFile): boolean => Date.now() - each.keptAt > LONGEST_MS;
  await forget(found.filter(isOld).map((each) => each.id));
  return found.filter((each) => each.tab === tabName() && !isOld(each)).sort((a, b) => a.keptAt - b.keptAt);
}
