// What each of the two has got: the reader passages and an answer, the analyst a decision and what was released.
import type { ComponentChildren, JSX } from "preact";
import type { AuditRecord } from "../../api/audit";
import type { Grade } from "../../api/knowledge";
import { isRunning, textOf, type Turn } from "../../api/turn";
import type { SearchResult } from "../../api/types";
import { Markdown } from "../../components/markdown";
import { MarkedPassage, sharedCount } from "../../components/marked_passage";
import { shownText } from "../../components/shown_text";
import { checkText, reasonText } from "../../reasons";
import { has } from "../../state/session";
import { spoken } from "../../words";
import { SentToModel } from "./sent_to_model";
import { DEMO_MODEL, PEOPLE_WORDS } from "./words";

const MOST_PASSAGES = 6;

function answerOf(turn: Turn): string {
  return turn.output.filter((item) => item.type === "message").map(textOf).join("\n\n");
}

/** The passages that the answer shares words with first; each once. */
function passagesOf(turn: Turn): SearchResult[] {
  const said = answerOf(turn);
  const found = turn.output.flatMap((item) => item.results ?? []);
  const unique = [...new Map(found.map((each) => [each.text, each])).values()];
  return unique.sort((a, b) => sharedCount(b.text, said) - sharedCount(a.text, said)).slice(0, MOST_PASSAGES);
}

export function ReaderSide({ turn }: { turn: Turn }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  const said = answerOf(turn);
  const passages = passagesOf(turn);
  return (
    <div data-status={turn.status}>
      <Step title={words.answer}><Answer turn={turn} /></Step>
      {passages.length > 0 && (
        <Step title={words.passages}>
          {passages.map((each, place) => (
            <details key={each.text} open={place === 0}>
              <summary dir="auto">{shownText(each.filename)}</summary>
              <MarkedPassage passage={each.text} answer={said} />
            </details>
          ))}
        </Step>
      )}
    </div>
  );
}

export function AnalystSide({ turn, records, grade }: { turn: Turn; records: AuditRecord[] | null; grade: Grade }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  const hasEnded = !isRunning(turn);
  const hasSearched = turn.output.some((item) => item.type === "file_search_call");
  return (
    <div data-status={turn.status}>
      {!hasEnded && <Step title={words.preScreen}><p class="hint">{words.waiting}</p></Step>}
      <p class="hint">{words.graded[grade]}</p>
      {records?.map((record) => <Judged key={record.id} record={record} grade={grade} />)}
      {hasEnded && !has("admin") && <p class="hint">{words.noAudit}</p>}
      {hasEnded && !hasSearched && <p class="hint">{words.noSearch}</p>}
      <Step title={words.released}>
        {records?.length && records.every((each) => each.decision === "refuse") ? <p class="nothing">{words.nothing}</p> : null}
        <Answer turn={turn} />
        {hasEnded && turn.model === DEMO_MODEL && <p class="hint">{words.standIn}</p>}
        {hasEnded && turn.id && <SentToModel key={turn.id} responseId={turn.id} />}
      </Step>
    </div>
  );
}

function searched(record: AuditRecord): string {
  const words = spoken(PEOPLE_WORDS);
  if (record.is_cached) return words.stored;
  return record.chunks_found > 0 ? words.searchedSealed(record.chunks_found, record.chunks_sent) : words.foundNothing;
}

function Judged({ record, grade }: { record: AuditRecord; grade: Grade }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  const reason = reasonText(record.reason);
  const isEarly = record.decision === "refuse" && record.search_id === null;
  const left = record.budget_after?.[0];
  return (
    <>
      <Step title={words.preScreen} verdict={isEarly ? "refused" : "passed"}>
        <p>{isEarly ? words.refusedEarly(reason) : words.passed}</p>
      </Step>
      {!isEarly && (
        <Step title={words.decision} verdict={record.decision === "answer" ? "passed" : "refused"}>
          <p>{searched(record)}</p>
          {record.rewrites > 0 && <p>{words.rewritten}</p>}
          {record.gate_codes.length > 0 && <p>{words.gates(record.gate_codes.map(checkText).join(", "))}</p>}
          <p>{record.decision === "answer" ? words.answered(reason) : words.refused(reason)}</p>
          {grade === "strict" && record.preview && <p>{words.coded} <code>{record.preview}</code></p>}
          {left && <p class="hint">{words.budget(left.day, left.month)}</p>}
        </Step>
      )}
    </>
  );
}

function Answer({ turn }: { turn: Turn }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  if (turn.status === "failed") return <p class="wrong" role="alert">{turn.error || words.failed}</p>;
  const said = answerOf(turn);
  return said ? <Markdown text={said} /> : <p class="hint">{words.waiting}</p>;
}

function Step({ title, verdict, children }: { title: string; verdict?: "passed" | "refused"; children: ComponentChildren }): JSX.Element {
  return (
    <div class={`judged ${verdict ?? ""}`}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}
