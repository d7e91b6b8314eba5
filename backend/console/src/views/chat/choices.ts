// With what the next turn runs: the model or agent, and the bases it may search. Both are remembered by the browser.
import { signal } from "@preact/signals";
import { all, get, type Page } from "../../api/client";
import type { KnowledgeBase, Model } from "../../api/types";
import { readStored, writeStored } from "../../state/stored";

const MODEL_KEY = "ballast.model";
const BASES_KEY = "ballast.bases";
const isText = (found: unknown): found is string => typeof found === "string";
const isTexts = (found: unknown): found is string[] => Array.isArray(found) && found.every(isText);

export const models = signal<Model[]>([]);
export const bases = signal<KnowledgeBase[]>([]);
export const chosenModel = signal(readStored(localStorage, MODEL_KEY, "", isText));
export const chosenBases = signal<string[]>(readStored(localStorage, BASES_KEY, [], isTexts));

export function chooseModel(id: string): void {
  chosenModel.value = id;
  writeStored(localStorage, MODEL_KEY, id);
}

export function chooseBases(ids: string[]): void {
  chosenBases.value = ids;
  writeStored(localStorage, BASES_KEY, ids);
}

/** Read what there is to choose from, and drop what is no longer there. */
export async function loadChoices(): Promise<void> {
  const [offered, readable] = await Promise.all([
    get<Page<Model>>("user", "/v1/models"),
    all<KnowledgeBase>("user", "/v1/knowledge_bases"),
  ]);
  models.value = offered.data;
  bases.value = readable;
  if (!offered.data.some((each) => each.id === chosenModel.value)) chosenModel.value = offered.data[0]?.id ?? "";
  chosenBases.value = chosenBases.value.filter((id) => readable.some((each) => each.id === id));
}
