// Records of restricted searches: a table of them, and all that one says.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { AuditRecord, BudgetLeft } from "../../api/audit";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { shownText } from "../../components/shown_text";
import { Table } from "../../components/table";
import { checkText, reasonText } from "../../reasons";
import { numberText, spoken, timeText } from "../../words";
import { least } from "./figures";
import { AUDIT_WORDS } from "./words";

const SHOWN_AT_ONCE = 100;

interface RecordsProps {
  records: AuditRecord[];
  names: Map<string, string>;
  onOpen: (record: AuditRecord) => void;
}

export function Records({ records, names, onOpen }: RecordsProps): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const heads = words.heads;
  const timeOf = (each: AuditRecord): string => timeText(each.created_at, { dateStyle: "medium", timeStyle: "medium" });
  return (
    <>
      <Table<AuditRecord>
        caption={words.table}
        rows={records.slice(0, most)}
        keyOf={(each) => each.id}
        columns={[
          { head: heads.time, cell: (each) => <button type="button" class="link soft" title={words.open(timeOf(each))} onClick={() => onOpen(each)}>{timeOf(each)}</button> },
          { head: heads.decision, cell: (each) => <Decision record={each} /> },
          { head: heads.why, cell: (each) => <Why record={each} /> },
          { head: heads.base, cell: (each) => <span class="name" dir="auto">{basesText(each, names)}</span> },
          { head: heads.user, cell: (each) => (each.user_hash ? <code title={each.user_hash}>{each.user_hash.slice(0, 8)}</code> : words.nobody) },
          { head: heads.budget, numeric: true, cell: leftText },
          { head: heads.took, numeric: true, cell: (each) => tookText(each) },
        ]}
      />
      {records.length > most && <div class="actions"><Button onClick={() => setMost(most + SHOWN_AT_ONCE)}>+ {numberText(Math.min(SHOWN_AT_ONCE, records.length - most))}</Button></div>}
    </>
  );
}

function Decision({ record }: { record: AuditRecord }): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  const isAnswer = record.decision === "answer";
  return <span class={`decision ${record.decision}`}>{isAnswer ? words.answered : words.refused}</span>;
}

function Why({ record }: { record: AuditRecord }): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  return (
    <>
      {reasonText(record.reason)}
      {record.gate_codes.length > 0 && <span class="hint"> · {words.checks(record.gate_codes.map(checkText).join(", "))}</span>}
    </>
  );
}

function basesText(record: AuditRecord, names: Map<string, string>): string {
  return record.knowledge_bases.map((each) => shownText(names.get(each.id) ?? each.id)).join(", ") || "–";
}

function leftText(record: AuditRecord): string {
  const words = spoken(AUDIT_WORDS);
  const [day, month] = [least(record, "day"), least(record, "month")];
  return day === null || month === null ? words.uncharged : words.left(numberText(day), numberText(month));
}

function tookText(record: AuditRecord): string {
  return numberText(record.latency_ms / 1000, { style: "unit", unit: "second", maximumFractionDigits: 1 });
}

export function RecordDialog({ record, names, onClose }: { record: AuditRecord; names: Map<string, string>; onClose: () => void }): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  const budget = (left: BudgetLeft[] | null): ComponentChildren =>
    left?.map((each) => <span key={each.knowledge_base_id}>{words.budget(numberText(each.conversation), numberText(each.day), numberText(each.month))}</span>) ?? words.uncharged;
  const { versions } = record;
  const shown: Record<string, ComponentChildren> = {
    decision: <Decision record={record} />,
    reason: reasonText(record.reason),
    gate_codes: record.gate_codes.map(checkText).join(", ") || "–",
    knowledge_bases: record.knowledge_bases.map((each) => <span key={each.id} dir="auto">{shownText(names.get(each.id) ?? each.id)} · {numberText(each.version)}</span>),
    chunks_found: numberText(record.chunks_found),
    chunks_sent: numberText(record.chunks_sent),
    rewrites: numberText(record.rewrites),
    canary_hits: numberText(record.canary_hits),
    is_cached: record.is_cached ? words.yes : words.no,
    budget_before: budget(record.budget_before),
    budget_after: budget(record.budget_after),
    latency_ms: tookText(record),
    versions: versions ? `${versions.model} · ${versions.policy_version} / ${versions.gate_version} / ${versions.prompt_version}` : "–",
    ...Object.fromEntries((["user_hash", "turn_id", "conversation_id", "search_id", "id"] as const).map((name) => [name, <code key={name}>{record[name] || "–"}</code>])),
  };
  return (
    <Dialog title={words.record} place="side" onClose={onClose}>
      <section class="analyst-card" aria-label={words.preview}>
        <h3>{words.preview}</h3>
        <p dir="auto">{record.preview ? shownText(record.preview) : words.nothing}</p>
      </section>
      <dl class="record">
        {Object.entries(shown).map(([name, value]) => <div key={name}><dt>{words.fields[name]}</dt><dd>{value}</dd></div>)}
      </dl>
    </Dialog>
  );
}
