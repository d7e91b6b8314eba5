// The codes by which the audit says why a restricted search was answered or refused, and which checks a text has failed.
import { spoken, type Words } from "./words";

const REASONS: Words<Record<string, string>> = {
  en: {
    diagnosis: "a diagnosis", gap: "gaps", risk: "risks", priority: "priorities", advice: "advice",
    knowledge_base_question: "it asks about the knowledge base itself", exact_value: "it asks for an exact value", verbatim: "it asks for the words of the text",
    definition: "it asks for a definition", structure: "it asks how the documents are built", enumeration: "it asks to name or to list what is there",
    policy_probe: "it probes the rules", encoding: "it asks for the text in another form", injection_suspected: "it gives orders to the model", out_of_scope: "it is no question that restricted access answers",
    model_unavailable: "the secondary model was away", timeout: "the summary took too long", invalid_output: "the summary had not the agreed form",
    insufficient_evidence: "too little was found", budget_conversation: "the budget of the conversation is used up", budget_day: "the budget of the day is used up",
    budget_month: "the budget of the month is used up", budget_chunks: "too much of the base has been asked for", budget_facts: "too much of a document has been told", paused: "searches are paused", circuit_open: "the secondary model is cut off",
    access_changed: "access has changed", base_changed: "the base has changed", audit_unavailable: "the audit was away", bad_ticket: "the ticket was not valid",
  },
  zh: {
    diagnosis: "诊断", gap: "薄弱之处", risk: "风险", priority: "优先事项", advice: "建议",
    knowledge_base_question: "问的是知识库本身", exact_value: "索要确切数值", verbatim: "索要原文", definition: "索要定义", structure: "询问文档结构",
    enumeration: "要求说出或列举内容", policy_probe: "试探规则", encoding: "要求换一种形式给出原文", injection_suspected: "在向模型下指令", out_of_scope: "不属于受限访问可回答的问题",
    model_unavailable: "二级模型不可用", timeout: "摘要超时", invalid_output: "摘要不符合约定格式", insufficient_evidence: "依据不足",
    budget_conversation: "本对话的额度已用完", budget_day: "今日额度已用完", budget_month: "本月额度已用完", budget_chunks: "查询的内容已过多", budget_facts: "一份文档透露的内容已过多", paused: "检索已暂停",
    circuit_open: "二级模型已被切断", access_changed: "权限有变", base_changed: "知识库有变", audit_unavailable: "审计不可用", bad_ticket: "票据无效",
  },
};

const CHECKS: Words<Record<string, string>> = {
  en: {
    schema: "the agreed form", unicode: "characters of no known word", figures: "figures, dates and amounts", markup: "signs that no sentence needs",
    identifiers: "names and unusual words of the base", overlap: "a passage of the base", decoders: "words in no dictionary", structure: "the build of documents",
    instruction: "an order to a model", canary: "a planted token", language: "another language", containment: "what a passage says",
  },
  zh: {
    schema: "约定格式", unicode: "不属于任何词的字符", figures: "数字、日期与金额", markup: "句子不需要的符号",
    identifiers: "知识库中的名称和生僻词", overlap: "知识库中的段落", decoders: "词典中没有的词", structure: "文档结构",
    instruction: "给模型的指令", canary: "埋设的标记", language: "另一种语言", containment: "段落所说的内容",
  },
};
const BLOCKED = "gate_blocked_";

export const REASON_CODES = [...Object.keys(REASONS.en), ...Object.keys(CHECKS.en).map((check) => BLOCKED + check)];

export function checkText(code: string): string {
  return spoken(CHECKS)[code] ?? code;
}

export function reasonText(code: string): string {
  if (!code.startsWith(BLOCKED)) return spoken(REASONS)[code] ?? code;
  return spoken(BLOCKED_WORDS)(checkText(code.slice(BLOCKED.length)));
}

const BLOCKED_WORDS: Words<(check: string) => string> = {
  en: (check) => `the gate found ${check}`,
  zh: (check) => `闸门发现：${check}`,
};
