// With what the next turn runs: the model or agent, and the bases it may search. Both are remembered by the browser.
import { computed, signal } from "@preact/signals";
import { all, get, type Page } from "../../api/client";
import type { KnowledgeBase, Model } from "../../api/types";
import { readStored, writeStored } from "../../state/stored";

const MODEL_KEY = "ballast.model";
const BASES_KEY = "ballast.bases";
const isText = (found: unknown): found is string => typeof found === "string";
/** So many bases can be searched at once without making an answer worse or a prompt long. */
const FEW = 5;
const isTexts = (found: unknown): found is string[] => Array.isArray(found) && found.every(isText);

export const models = signal<Model[]>([]);
export const bases = signal<KnowledgeBase[]>([]);
export const chosenModel = signal(readStored(localStorage, MODEL_KEY, "", isText));
/** What the person has chosen in this browser; null until then. */
const picked = signal<string[] | null>(readStored<string[] | null>(localStorage, BASES_KEY, null, isTexts));

/** What the chat that is shown searches, where a suggestion or its last turn has said so; a new chat knows nothing of it. */
const ofChat = signal<string[] | null>(null);

/** What is chosen, as far as it is there; where the person has chosen nothing that is there, what to begin with. */
export const chosenBases = computed<string[]>(() => {
  if (ofChat.value) return ofChat.value.filter((id) => bases.value.some((each) => each.id === id));
  const kept = picked.value?.filter((id) => bases.value.some((each) => each.id === id));
  return kept && (kept.length > 0 || picked.value?.length === 0) ? kept : toBeginWith();
});

/** The one base that is searched where there are too many to search them all and none has been chosen. */
export const onlyBase = computed<KnowledgeBase | null>(() => {
  const begun = toBeginWith();
  const isUnasked = readable().length > FEW && chosenBases.value.length === 1 && chosenBases.value[0] === begun[0];
  return (isUnasked && bases.value.find((each) => each.id === begun[0])) || null;
});

/**
 * A first question is to have sources. So all bases are searched where they are few, and else the newest one, which is
 * listed first. One restricted base would restrict the whole turn, also what is found in the others: such bases are
 * searched unasked only where there are no others. An agent brings bases of its own.
 */
function toBeginWith(): string[] {
  if (models.value.find((each) => each.id === chosenModel.value)?.owned_by === "agent") return [];
  const offered = readable().map((each) => each.id);
  return offered.length > FEW ? offered.slice(0, 1) : offered;
}

function readable(): KnowledgeBase[] {
  const read = bases.value.filter((each) => each.role !== "restricted_analyst");
  return read.length ? read : bases.value;
}

export function chooseModel(id: string): void {
  chosenModel.value = id;
  writeStored(localStorage, MODEL_KEY, id);
}

/** Choose for the chat that is shown alone; with null it has what new chats have. */
export function chooseBasesOfChat(ids: string[] | null): void {
  ofChat.value = ids;
}

/** Choose as the person does: for this chat and those that they begin later. */
export function chooseBases(ids: string[]): void {
  ofChat.value = null;
  picked.value = ids;
  writeStored(localStorage, BASES_KEY, ids);
}

let known: Promise<void> = Promise.resolve();

/** Read what there is to choose from. */
export function loadChoices(): Promise<void> {
  return (known = readChoices());
}

/** Wait until it is known what there is to choose from, or that it cannot be read. */
export function choicesKnown(): Promise<void> {
  return known.catch(() => undefined);
}

async function readChoices(): Promise<void> {
  const [offered, readable] = await Promise.all([
    get<Page<Model>>("user", "/v1/models"),
    all<KnowledgeBase>("user", "/v1/knowledge_bases"),
  ]);
  models.value = offered.data;
  bases.value = readable;
  if (!offered.data.some((each) => each.id === chosenModel.value)) chosenModel.value = offered.data[0]?.id ?? "";
}
