// What a base says of itself, to whom, and what of it is withheld.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { BASES, mayWrite, type Description, type ReadableBase } from "../../api/knowledge";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Field } from "../../components/field";
import { complain, errorText } from "../../components/notices";
import { shownText } from "../../components/shown_text";
import { go } from "../../state/router";
import { toast } from "../../state/toasts";
import { numberText, spoken } from "../../words";
import { AnalystCard, asTold, withheldText } from "./analyst";
import { GradeOfBase } from "./grade";
import { KNOWLEDGE_WORDS } from "./words";

const LONGEST_HINT = 200;
const SWITCHES = ["embed", "restricted_translation"] as const;

type Texts = Record<"name" | "summary" | "topics" | "routing_hint" | "routing_keywords", string>;
interface Fault {
  param: string;
  text: string;
}

const linesOf = (text: string): string[] => text.split("\n").map((line) => line.trim()).filter(Boolean);

function textsOf(base: ReadableBase): Texts {
  const { name, summary, topics, routing_hint, routing_keywords } = base;
  return { name, summary, routing_hint, topics: topics.join("\n"), routing_keywords: routing_keywords.join("\n") };
}

export function DescriptionTab({ base, onChange }: { base: ReadableBase; onChange: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [shown, setShown] = useState(base);
  const [texts, setTexts] = useState(textsOf(base));
  const [fault, setFault] = useState<Fault | null>(null);
  // One after another, so that the answer shown last is that of the change made last.
  const saving = useRef(Promise.resolve());
  if (!mayWrite(base)) return <p class="hint">{words.onlyEditors}</p>;

  function save(changes: Partial<Description>): void {
    saving.current = saving.current.then(() => send(changes));
  }
  async function send(changes: Partial<Description>): Promise<void> {
    try {
      const saved = await call<ReadableBase>("user", "PATCH", `${BASES}/${base.id}`, { body: changes });
      setShown(saved);
      setFault(null);
      toast(words.saved);
      onChange();
    } catch (error) {
      setFault({ param: (error instanceof ApiError && error.param?.replace(/\[.*/, "")) || "", text: errorText(error) });
    }
  }
  return (
    <div class="describing">
      <form class="stack" onSubmit={(event) => { event.preventDefault(); save({ ...texts, topics: linesOf(texts.topics), routing_keywords: linesOf(texts.routing_keywords) }); }}>
        <Texts base={shown} texts={texts} fault={fault} onChange={setTexts} />
        {fault && !(fault.param in texts) && <p class="wrong" role="alert">{fault.text}</p>}
        <div class="actions"><Button type="submit" kind="primary">{words.save}</Button></div>
      </form>
      <div class="stack">
        <AnalystCard base={asTold(shown)} />
        <GradeOfBase base={shown} onPick={(changes) => save(changes)} />
        <Switches base={shown} onSwitch={(changes) => save(changes)} />
        {base.role === "owner" && <DeleteBase base={base} />}
      </div>
    </div>
  );
}

interface TextsProps {
  base: ReadableBase;
  texts: Texts;
  fault: Fault | null;
  onChange: (texts: Texts) => void;
}

function Texts({ base, texts, fault, onChange }: TextsProps): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const hints: Texts = {
    name: "",
    routing_hint: words.hintHint(numberText(LONGEST_HINT - [...texts.routing_hint].length)),
    routing_keywords: words.keywordsHint,
    summary: words.summaryHint,
    topics: words.topicsHint,
  };
  const labels: Texts = { name: words.name, routing_hint: words.hint, routing_keywords: words.keywords, summary: words.summary, topics: words.topics };
  const input = (name: keyof Texts, ids: object): JSX.Element => {
    const bound = { ...ids, dir: "auto" as const, value: texts[name], onInput: (event: { currentTarget: { value: string } }) => onChange({ ...texts, [name]: event.currentTarget.value }) };
    return name === "name" ? <input {...bound} type="text" maxLength={LONGEST_HINT} /> : <textarea {...bound} rows={name === "summary" || name === "routing_keywords" ? 3 : 2} />;
  };
  return (
    <>
      {(Object.keys(labels) as (keyof Texts)[]).map((name) => (
        <div key={name} class="stack close">
          <Field label={labels[name]} {...(hints[name] ? { hint: hints[name] } : {})} {...(fault?.param === name ? { error: fault.text } : {})}>
            {(ids) => input(name, ids)}
          </Field>
          <Withheld base={base} field={name} />
        </div>
      ))}
    </>
  );
}

/** What of a field is withheld, and why; keywords one by one. */
function Withheld({ base, field }: { base: ReadableBase; field: keyof Texts }): JSX.Element {
  const keywords = field === "routing_keywords" ? base.routing_keywords.map((each, place) => [`${field}[${place}]`, each] as const) : [[field, ""] as const];
  const told = keywords.map(([name, keyword]) => [keyword, withheldText(base, name)] as const).filter(([, why]) => why);
  return <>{told.map(([keyword, why]) => <p class="withheld" key={keyword}>{keyword && <strong dir="auto">{shownText(keyword)}: </strong>}{why}</p>)}</>;
}

function Switches({ base, onSwitch }: { base: ReadableBase; onSwitch: (changes: Partial<Description>) => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const isOwner = base.role === "owner";
  const told = { embed: [words.embed, words.embedHint], restricted_translation: [words.translation, words.translationHint] } as const;
  return (
    <div class="switches">
      {SWITCHES.map((name) => (
        <label key={name} class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={base[name]}
            disabled={!isOwner}
            onChange={(event) => onSwitch({ [name]: event.currentTarget.checked })}
          />
          <span><strong>{told[name][0]}</strong><span class="hint">{told[name][1]}{!isOwner && ` ${words.ownersOnly}`}</span></span>
        </label>
      ))}
    </div>
  );
}

function DeleteBase({ base }: { base: ReadableBase }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [isAsking, setAsking] = useState(false);
  async function remove(): Promise<void> {
    try {
      await call("user", "DELETE", `${BASES}/${base.id}`);
      go("knowledge");
    } catch (error) {
      setAsking(false);
      complain(error);
    }
  }
  return (
    <div class="actions">
      <Button kind="danger" icon="bin" onClick={() => setAsking(true)}>{words.deleteBase}</Button>
      {isAsking && (
        <Dialog title={words.deleteTitle} onClose={() => setAsking(false)}>
          <p dir="auto">{words.deleteText(shownText(base.name))}</p>
          <div class="actions">
            <Button kind="danger" icon="bin" onClick={() => void remove()}>{words.removeIt}</Button>
            <Button kind="quiet" onClick={() => setAsking(false)}>{words.cancel}</Button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
