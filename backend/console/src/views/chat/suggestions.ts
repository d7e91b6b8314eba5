// Questions over the knowledge of `make run`, which the demo's model answers; none are offered over other knowledge.
import { language } from "../../state/preferences";
import type { KnowledgeBase } from "../../api/types";

const QUESTIONS = {
  en: [
    { base: "Operations handbook", text: "How soon must a page be acknowledged, and what happens when nobody answers?" },
    { base: "Operations handbook", text: "When must nothing be deployed?" },
    { base: "Operations handbook", text: "How long are backups kept, and how long does a restore take?" },
  ],
  zh: [
    { base: "北码头运维手册", text: "告警之后多久必须响应？" },
    { base: "北码头运维手册", text: "备份保留多久？恢复需要多长时间？" },
    { base: "北码头运维手册", text: "柜门打不开时应该怎么办？" },
  ],
};

/** The model of `make run` where no other is set, and the line that sets one. */
export const STAND_IN = "demo-model";
export const REAL_MODEL = "CHAT_SHELL_MODEL=… CHAT_SHELL_MODEL_BASE_URL=… CHAT_SHELL_MODEL_API_KEY=… make run";

export interface Suggestion {
  baseId: string;
  text: string;
}

export function suggestionsFor(bases: KnowledgeBase[]): Suggestion[] {
  const ids = new Map(bases.map((each) => [each.name, each.id]));
  return QUESTIONS[language.value].flatMap(({ base, text }) => {
    const baseId = ids.get(base);
    return baseId ? [{ baseId, text }] : [];
  });
}
