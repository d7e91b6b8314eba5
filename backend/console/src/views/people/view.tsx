// As two people: one question side by side, as a reader and as a restricted analyst.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { all, get, type Page } from "../../api/client";
import type { AuditRecord } from "../../api/audit";
import { isReadable, type ReadableBase } from "../../api/knowledge";
import { isRunning, type Turn } from "../../api/turn";
import type { KnowledgeBase, Model } from "../../api/types";
import { Button } from "../../components/button";
import { Field, Pick } from "../../components/field";
import { useLoaded } from "../../components/loaded";
import { complain, Empty, Failure, Loading } from "../../components/notices";
import { ViewPage } from "../../components/view_page";
import { shownText } from "../../components/shown_text";
import { keys } from "../../state/keys";
import { has } from "../../state/session";
import { language } from "../../state/preferences";
import { spoken } from "../../words";
import { chooseModel, chosenModel } from "../chat/choices";
import { AnalystSide, ReaderSide } from "./sides";
import { askAs, auditOf } from "./asking";
import { PEOPLE_QUESTIONS, PEOPLE_WORDS } from "./words";
import "./people.css";

interface Shared {
  bases: ReadableBase[];
  models: Model[];
}

/** The bases that one key may read and in which the other one is restricted, and the models that both may use. */
async function readShared(): Promise<Shared> {
  const [own, others, offered, offeredToo] = await Promise.all([
    all<KnowledgeBase>("user", "/v1/knowledge_bases"),
    all<KnowledgeBase>("restricted", "/v1/knowledge_bases"),
    get<Page<Model>>("user", "/v1/models"),
    get<Page<Model>>("restricted", "/v1/models"),
  ]);
  const restricted = new Set(others.filter((each) => each.role === "restricted_analyst").map((each) => each.id));
  const both = new Set(offeredToo.data.map((each) => each.id));
  return {
    bases: own.filter(isReadable).filter((each) => restricted.has(each.id)),
    models: offered.data.filter((each) => both.has(each.id) && each.owned_by !== "agent"),
  };
}

export function PeopleView({ parts }: { parts: string[] }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  return (
    <ViewPage name="people" words={words}>
      {keys.value.restricted ? <WithKeys parts={parts} /> : <Empty title={words.noKey}><p>{words.noKeyText}</p></Empty>}
    </ViewPage>
  );
}

function WithKeys({ parts }: { parts: string[] }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  const [loaded, again] = useLoaded(readShared, []);
  if (loaded.state === "loading") return <Loading />;
  if (loaded.state === "failed") return <Failure error={loaded.error} onRetry={again} />;
  if (loaded.value.bases.length === 0) return <Empty title={words.noBase}><p>{words.noBaseText}</p></Empty>;
  return <Asking key={parts.join("/")} {...loaded.value} given={parts} />;
}

/** `given` is the base to begin with, and a question that waits to be asked. */
function Asking({ bases, models, given }: Shared & { given: string[] }): JSX.Element {
  const words = spoken(PEOPLE_WORDS);
  const [baseId, setBase] = useState((bases.find((each) => each.id === given[0]) ?? bases[0])?.id ?? "");
  const [text, setText] = useState(given[1] ?? "");
  const [reader, setReader] = useState<Turn | null>(null);
  const [analyst, setAnalyst] = useState<Turn | null>(null);
  const [records, setRecords] = useState<AuditRecord[] | null>(null);
  const leaving = useRef<AbortController | null>(null);
  useEffect(() => () => leaving.current?.abort(), []);
  const model = models.some((each) => each.id === chosenModel.value) ? chosenModel.value : (models[0]?.id ?? "");
  const isBusy = [reader, analyst].some((turn) => turn && isRunning(turn));

  async function ask(question: string): Promise<void> {
    leaving.current?.abort();
    const { signal } = (leaving.current = new AbortController());
    const asked = { text: question, model, baseId };
    setRecords(null);
    setText(question);
    const [, restricted] = await Promise.all([askAs("user", asked, signal, setReader), askAs("restricted", asked, signal, setAnalyst)]);
    if (signal.aborted || !has("admin") || !restricted.id) return;
    try {
      setRecords(await auditOf(restricted, baseId));
    } catch (error) {
      complain(error);
    }
  }

  const questions = bases.find((each) => each.id === baseId)?.name === PEOPLE_QUESTIONS.base ? PEOPLE_QUESTIONS[language.value] : [];
  return (
    <>
      <form class="people-form" onSubmit={(event) => { event.preventDefault(); if (text.trim() && !isBusy) void ask(text.trim()); }}>
        <Field label={words.question}>
          {(ids) => <input {...ids} type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />}
        </Field>
        <div class="actions">
          <Pick label={words.base} value={baseId} onPick={setBase} options={bases.map((each) => ({ value: each.id, name: shownText(each.name) }))} />
          <Pick label={words.model} value={model} onPick={chooseModel} options={models.map((each) => ({ value: each.id, name: each.id }))} />
          <Button type="submit" kind="primary" disabled={isBusy || !text.trim()}>{words.ask}</Button>
        </div>
        {questions.length > 0 && (
          <section aria-label={words.suggestions} class="actions">
            {questions.map((each) => <Button key={each} disabled={isBusy} onClick={() => void ask(each)}>{each}</Button>)}
          </section>
        )}
      </form>
      <div class="two">
        <section class="person" aria-labelledby="as-reader">
          <h2 id="as-reader">{words.reader}</h2>
          {reader ? <ReaderSide turn={reader} /> : <p class="hint">{words.empty}</p>}
        </section>
        <section class="person" aria-labelledby="as-analyst">
          <h2 id="as-analyst">{words.analyst}</h2>
          {analyst ? <AnalystSide turn={analyst} records={records} grade={bases.find((each) => each.id === baseId)?.restricted_grade ?? "open"} /> : <p class="hint">{words.empty}</p>}
        </section>
      </div>
    </>
  );
}
