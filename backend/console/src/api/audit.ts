// The audit of restricted searches, as administrators read it.
import { get, type Page } from "./client";

export interface AuditRecord {
  id: string;
  created_at: number;
  user_hash: string;
  conversation_id: string;
  turn_id: string;
  search_id: string | null;
  knowledge_bases: { id: string; version: number }[];
  versions: { model: string; policy_version: string; gate_version: string; prompt_version: string } | null;
  decision: "answer" | "refuse";
  reason: string;
  gate_codes: string[];
  rewrites: number;
  latency_ms: number;
  chunks_found: number;
  chunks_sent: number;
  chunks_distinct: number;
  canary_hits: number;
  is_cached: boolean;
  budget_before: BudgetLeft[] | null;
  budget_after: BudgetLeft[] | null;
  preview: string;
}

export interface BudgetLeft {
  knowledge_base_id: string;
  conversation: number;
  day: number;
  month: number;
  chunks: number | null;
}

/** What the server selects by; empty is no condition. */
export interface AuditQuery {
  user_id: string;
  knowledge_base_id: string;
  reason: string;
}

const PATH = "/v1/audit/safe_summaries";

function addressOf(query: Partial<AuditQuery>, after: string): string {
  const asked = new URLSearchParams({ limit: "100" });
  for (const [name, value] of Object.entries({ ...query, after })) if (value) asked.set(name, value);
  return `${PATH}?${asked.toString()}`;
}

/** Read the newest records that the query selects, until one is older than `since` or there are `most`. */
export async function readAudit(query: Partial<AuditQuery>, most: number, since = 0): Promise<{ records: AuditRecord[]; hasMore: boolean }> {
  const records: AuditRecord[] = [];
  for (let after = ""; ; ) {
    const page = await get<Page<AuditRecord>>("admin", addressOf(query, after));
    records.push(...page.data);
    after = page.last_id;
    const isOld = (records.at(-1)?.created_at ?? 0) < since;
    if (!page.has_more || isOld) return { records: records.filter((each) => each.created_at >= since), hasMore: false };
    if (records.length >= most) return { records: records.filter((each) => each.created_at >= since), hasMore: true };
  }
}
