// What is made of audit records: bars over time, and a file for other programs.
import type { AuditRecord } from "../../api/audit";
import type { Series } from "../../components/plot";

const STEPS_SECONDS = [60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400];
const MOST_BARS = 48;

/** Count answers and refusals in stretches of a length at which there are not too many, from the oldest record until now.
 *
 * The clock of the server may be ahead of that of the browser: then "now" is the time of the newest record. */
export function overTime(records: AuditRecord[], names: { answered: string; refused: string }, readAt: number): { times: number[]; stepSeconds: number; series: Series[] } {
  const now = Math.max(readAt, ...records.map((each) => each.created_at));
  const oldest = Math.min(now - 3600, ...records.map((each) => each.created_at));
  const step = STEPS_SECONDS.find((each) => (now - oldest) / each < MOST_BARS) ?? Math.ceil((now - oldest) / MOST_BARS);
  const first = Math.floor(oldest / step);
  const times = Array.from({ length: Math.floor(now / step) - first + 1 }, (_, at) => (first + at) * step);
  const count = (decision: AuditRecord["decision"]): number[] => {
    const counts = times.map(() => 0);
    for (const each of records) if (each.decision === decision) counts[Math.floor(each.created_at / step) - first]! += 1;
    return counts;
  };
  return {
    times,
    stepSeconds: step,
    series: [{ name: names.refused, tone: "wrong", values: count("refuse") }, { name: names.answered, tone: "good", values: count("answer") }],
  };
}

const COLUMNS: [string, (record: AuditRecord) => string | number | boolean | null][] = [
  ["created_at", (each) => new Date(each.created_at * 1000).toISOString()],
  ...(["id", "user_hash", "conversation_id", "turn_id", "search_id", "decision", "reason"] as const).map((name) => [name, (each: AuditRecord) => each[name]] as [string, (record: AuditRecord) => string | null]),
  ["knowledge_bases", (each) => each.knowledge_bases.map((base) => `${base.id}@${base.version}`).join(" ")],
  ["gate_codes", (each) => each.gate_codes.join(" ")],
  ...(["rewrites", "latency_ms", "chunks_found", "chunks_sent", "chunks_distinct", "canary_hits", "is_cached"] as const).map((name) => [name, (each: AuditRecord) => each[name]] as [string, (record: AuditRecord) => number | boolean]),
  ["left_today", (each) => least(each, "day")],
  ["left_this_month", (each) => least(each, "month")],
  ["model", (each) => each.versions?.model ?? ""],
  ["preview", (each) => each.preview],
];

/** Of several bases the one with the least left decides. */
export function least(record: AuditRecord, span: "day" | "month"): number | null {
  const left = (record.budget_after ?? []).map((each) => each[span]);
  return left.length ? Math.min(...left) : null;
}

/** As RFC 4180 has it; what a spreadsheet would run as a formula is kept from it by an apostrophe. */
export function csvOf(records: AuditRecord[]): string {
  const cell = (value: string | number | boolean | null): string => {
    if (typeof value !== "string") return value === null ? "" : String(value);
    const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  };
  const lines = records.map((record) => COLUMNS.map(([, read]) => cell(read(record))).join(","));
  return [COLUMNS.map(([name]) => name).join(","), ...lines, ""].join("\r\n");
}
