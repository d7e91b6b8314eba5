// Knowledge: bases, their documents, members and descriptions.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { createBase, isEmbedding, isReadable, minutesLeft, readBase, readBases, type ReadableBase, type RestrictedBase } from "../../api/knowledge";
import type { KnowledgeBase } from "../../api/types";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { useLoaded } from "../../components/loaded";
import { Empty, errorText, Failure, Loading } from "../../components/notices";
import { shownText } from "../../components/shown_text";
import { Tabs } from "../../components/tabs";
import { addressOf, go } from "../../state/router";
import { numberText, spoken, timeText } from "../../words";
import { AnalystCard } from "./analyst";
import { DescriptionTab } from "./description";
import { DocumentsTab } from "./documents";
import { MembersTab } from "./members";
import { SearchTab } from "./search";
import { KNOWLEDGE_WORDS } from "./words";
import "./knowledge.css";

const LOOK_AGAIN_MS = 3000;

export function KnowledgeView({ parts }: { parts: string[] }): JSX.Element {
  const [id = "", tab = ""] = parts;
  return id ? <BasePage key={id} id={id} tab={tab} /> : <Overview />;
}

function Overview(): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [loaded, again] = useLoaded(readBases, []);
  const [isCreating, setCreating] = useState(false);
  useEffect(() => {
    if (loaded.state !== "ready" || !loaded.value.some(isEmbedding)) return;
    const timer = setTimeout(again, LOOK_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [loaded]);
  return (
    <div class="page knowledge">
      <header class="with-action">
        <div>
          <h1>{words.title}</h1>
          <p>{words.lead}</p>
        </div>
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>{words.create}</Button>
      </header>
      {loaded.state === "loading" && <Loading />}
      {loaded.state === "failed" && <Failure error={loaded.error} onRetry={again} />}
      {loaded.state === "ready" && (loaded.value.length ? <Cards bases={loaded.value} /> : <Empty title={words.none}><p>{words.noneText}</p></Empty>)}
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </div>
  );
}

function Cards({ bases }: { bases: KnowledgeBase[] }): JSX.Element {
  return (
    <ul class="base-cards">
      {bases.map((each) => (
        <li key={each.id}>
          <a href={addressOf("knowledge", each.id)} dir="auto">
            <h2>{shownText(each.name)}</h2>
            <p class="told" dir="auto">{shownText(isReadable(each) ? each.summary : (each as RestrictedBase).routing_hint)}</p>
            <p class="facts"><Facts base={each} /></p>
          </a>
        </li>
      ))}
    </ul>
  );
}

function Facts({ base }: { base: KnowledgeBase }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const minutes = isReadable(base) && isEmbedding(base) ? minutesLeft(base) : null;
  return (
    <>
      <span class={`role ${base.role}`}>{words.roles[base.role]}</span>
      {isReadable(base) && base.documents !== undefined && <span>{words.documentCount(base.documents, numberText(base.documents))}</span>}
      {isReadable(base) && isEmbedding(base) && <span>{words.embedding(numberText(base.embedded_chunks ?? 0), numberText(base.chunks ?? 0))}</span>}
      {minutes !== null && <span>{words.minutesLeft(minutes)}</span>}
      {isReadable(base) && <span>{words.made(timeText(base.created_at, { dateStyle: "medium" }))}</span>}
    </>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [name, setName] = useState("");
  const [fault, setFault] = useState("");
  async function create(): Promise<void> {
    try {
      const base = await createBase(name.trim());
      onClose();
      go("knowledge", base.id);
    } catch (error) {
      setFault(errorText(error));
    }
  }
  return (
    <Dialog title={words.create} onClose={onClose}>
      <form class="stack" onSubmit={(event) => { event.preventDefault(); void create(); }}>
        <Field label={words.name} hint={words.nameHint} {...(fault ? { error: fault } : {})}>
          {(ids) => <input {...ids} type="text" autofocus maxLength={200} value={name} onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
        <div class="actions">
          <Button type="submit" kind="primary" disabled={!name.trim()}>{words.createIt}</Button>
          <Button kind="quiet" onClick={onClose}>{words.cancel}</Button>
        </div>
      </form>
    </Dialog>
  );
}

function BasePage({ id, tab }: { id: string; tab: string }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [loaded, again] = useLoaded(() => readBase(id), [id]);
  return (
    <div class="page knowledge">
      <nav><a class="back" href={addressOf("knowledge")}>← {words.all}</a></nav>
      {loaded.state === "loading" && <Loading />}
      {loaded.state === "failed" && <Failure error={loaded.error} onRetry={again} />}
      {loaded.state === "ready" && <Base base={loaded.value} tab={tab} onChange={again} />}
    </div>
  );
}

const TAB_NAMES = ["documents", "search", "members", "description"] as const;
type TabName = (typeof TAB_NAMES)[number];

function Base({ base, tab, onChange }: { base: ReadableBase | RestrictedBase; tab: string; onChange: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const chosen: TabName = TAB_NAMES.find((each) => each === tab) ?? "documents";
  return (
    <>
      <header>
        <h1 dir="auto">{shownText(base.name)}</h1>
        <p class="facts"><Facts base={base} /></p>
      </header>
      {isReadable(base) ? (
        <Tabs label={words.parts} chosen={chosen} onChoose={(name) => go("knowledge", base.id, name)} tabs={TAB_NAMES.map((name) => ({ name, title: words.tabs[name] }))}>
          <div class="stack">
            {chosen === "documents" && <DocumentsTab base={base} onChange={onChange} />}
            {chosen === "search" && <SearchTab base={base} />}
            {chosen === "members" && <MembersTab base={base} />}
            {chosen === "description" && <DescriptionTab base={base} onChange={onChange} />}
          </div>
        </Tabs>
      ) : (
        <>
          <p>{words.readsNothing}</p>
          <AnalystCard base={base} />
          <div class="actions"><a class="button primary" href={addressOf("chat")}>{words.goAsk}</a></div>
        </>
      )}
    </>
  );
}
