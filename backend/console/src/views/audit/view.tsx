// Audit: what became of restricted searches, for administrators.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { readAudit, type AuditQuery, type AuditRecord } from "../../api/audit";
import { all } from "../../api/client";
import { BASES } from "../../api/knowledge";
import type { KnowledgeBase } from "../../api/types";
import { Button } from "../../components/button";
import { useLoaded } from "../../components/loaded";
import { Empty, Failure, Loading } from "../../components/notices";
import { ViewPage } from "../../components/view_page";
import { Plot } from "../../components/plot";
import { has } from "../../state/session";
import { numberText, spoken } from "../../words";
import { csvOf, overTime } from "./figures";
import { Filters, type Chosen } from "./filters";
import { RecordDialog, Records } from "./records";
import { AUDIT_WORDS } from "./words";
import "./audit.css";

const MOST_RECORDS = 2000;
const PERIOD_SECONDS = { day: 86_400, week: 7 * 86_400, month: 30 * 86_400, all: Infinity };

export function AuditView(_: { parts: string[] }): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  return (
    <ViewPage name="audit" words={words}>
      {has("admin") ? <WithKey /> : <Empty title={words.noKey}><p>{words.noKeyText}</p></Empty>}
    </ViewPage>
  );
}

interface Found {
  records: AuditRecord[];
  hasMore: boolean;
  readAt: number;
}

async function readFound(chosen: Chosen): Promise<Found> {
  const readAt = Date.now() / 1000;
  const { user_id, knowledge_base_id, reason } = chosen;
  const query: AuditQuery = { user_id, knowledge_base_id, reason };
  const found = await readAudit(query, MOST_RECORDS, Math.max(0, readAt - PERIOD_SECONDS[chosen.period]));
  return { ...found, readAt };
}

function WithKey(): JSX.Element {
  const [chosen, setChosen] = useState<Chosen>({ user_id: "", knowledge_base_id: "", reason: "", decision: "", period: "week" });
  const [loaded, again] = useLoaded(() => readFound(chosen), [chosen.user_id, chosen.knowledge_base_id, chosen.reason, chosen.period]);
  const [bases] = useLoaded(() => all<KnowledgeBase>("user", BASES), []);
  const names = new Map(bases.state === "ready" ? bases.value.map((each) => [each.id, each.name]) : []);
  return (
    <>
      <Filters chosen={chosen} names={names} onChoose={setChosen} onAgain={again} />
      {loaded.state === "loading" && <Loading />}
      {loaded.state === "failed" && <Failure error={loaded.error} onRetry={again} />}
      {loaded.state === "ready" && <Results found={loaded.value} decision={chosen.decision} names={names} />}
    </>
  );
}

function Results({ found, decision, names }: { found: Found; decision: Chosen["decision"]; names: Map<string, string> }): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  const [opened, setOpened] = useState<AuditRecord | null>(null);
  const records = found.records.filter((each) => !decision || each.decision === decision);
  const refused = records.filter((each) => each.decision === "refuse").length;
  return (
    <>
      <div class="audit-count">
        <p role="status">{records.length ? words.count(numberText(records.length), numberText(refused)) : words.none}</p>
        <Button icon="down" disabled={records.length === 0} onClick={() => download("audit.csv", csvOf(records))}>{words.csv}</Button>
      </div>
      {found.hasMore && <p class="hint">{words.most(numberText(found.records.length))}</p>}
      {records.length > 0 && (
        <>
          <Plot title={words.plot} kind="bars" {...overTime(records, words, found.readAt)} leastTop={4} />
          <Records records={records} names={names} onOpen={setOpened} />
        </>
      )}
      {opened && <RecordDialog record={opened} names={names} onClose={() => setOpened(null)} />}
    </>
  );
}

function download(name: string, text: string): void {
  // Spreadsheets take a file for UTF-8 where it begins with this mark.
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
