// One turn: the question, what was done for it, the answer with its sources, and what can be done with it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { isRunning, textOf, type Turn } from "../../api/turn";
import type { Annotation, ContentPart, Item } from "../../api/types";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy";
import { Markdown, numberAt, type Citation } from "../../components/markdown";
import { placedName } from "../../components/place_text";
import { shownText } from "../../components/shown_text";
import { numberText, spoken } from "../../words";
import { addressOf } from "../../state/router";
import { Icon } from "../../components/icons";
import { CHAT_WORDS } from "./words";

const MOST_SAID = 600;

export interface Source {
  turn: Turn;
  annotation: Annotation;
  /** Its place among what the answer cites, from 1. */
  number: number;
  /** The words of the answer around the place that is cited. */
  said: string;
}

interface TurnViewProps {
  turn: Turn;
  shownSource: Source | null;
  onSource: (source: Source) => void;
  onAskAgain: (text: string) => void;
  onCode: () => void;
}

export function TurnView({ turn, shownSource, onSource, onAskAgain, onCode }: TurnViewProps): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const [isEditing, setEditing] = useState(false);
  const isBusy = isRunning(turn);
  return (
    <article class="turn" aria-busy={isBusy} data-response={turn.id} data-status={turn.status}>
      {isEditing ? (
        <EditForm text={turn.asked} onCancel={() => setEditing(false)} onSave={(text) => { setEditing(false); onAskAgain(text); }} />
      ) : (
        <section class="asked" aria-label={words.you}><p dir="auto">{shownText(turn.asked)}</p></section>
      )}
      <section class="answer" aria-label={words.answer}>
        {turn.thinking && <details class="thoughts"><summary>{words.thoughts}</summary><p dir="auto">{shownText(turn.thinking)}</p></details>}
        {turn.output.map((item, place) => <OutputItem key={item.id || place} item={item} turn={turn} shownSource={shownSource} onSource={onSource} />)}
        {isBusy && !turn.output.some((item) => item.type === "message" && textOf(item)) && <p class="waiting">{words.waiting}</p>}
        <Ending turn={turn} />
      </section>
      {!isBusy && !isEditing && (
        <div class="turn-actions">
          <CopyButton text={turn.output.filter((item) => item.type === "message").map(textOf).join("\n\n")} label={words.copyAnswer} />
          <Button kind="quiet" icon="again" label={words.again} onClick={() => onAskAgain(turn.asked)} />
          <Button kind="quiet" icon="pen" label={words.edit} onClick={() => setEditing(true)} />
          <Button kind="quiet" icon="code" label={words.code} onClick={onCode} />
          {turn.id && <a class="button quiet" href={addressOf("xray", turn.conversationId)}><Icon name="xray" />{words.xray}</a>}
          {turn.usage && (
            <span class="usage">
              {words.tokens(numberText(turn.usage.input_tokens), numberText(turn.usage.input_tokens_details?.cached_tokens ?? 0))}
            </span>
          )}
        </div>
      )}
    </article>
  );
}

function EditForm({ text, onSave, onCancel }: { text: string; onSave: (text: string) => void; onCancel: () => void }): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const [draft, setDraft] = useState(text);
  return (
    <form
      class="edit-form"
      onSubmit={(event) => { event.preventDefault(); if (draft.trim()) onSave(draft.trim()); }}
      onKeyDown={(event) => { if (event.key === "Escape") onCancel(); }}
    >
      <textarea aria-label={words.question} rows={3} value={draft} ref={(area) => { if (area && document.activeElement !== area) area.focus(); }} onInput={(event) => setDraft(event.currentTarget.value)} />
      <div class="actions">
        <Button type="submit" kind="primary" disabled={!draft.trim()}>{words.save}</Button>
        <Button kind="quiet" onClick={onCancel}>{words.cancel}</Button>
      </div>
    </form>
  );
}

interface OutputItemProps {
  item: Item;
  turn: Turn;
  shownSource: Source | null;
  onSource: (source: Source) => void;
}

function OutputItem({ item, turn, shownSource, onSource }: OutputItemProps): JSX.Element | null {
  const words = spoken(CHAT_WORDS);
  switch (item.type) {
    case "message": {
      const parts = partsOf(item);
      const numbers = new Map<string, number>();
      const cited = parts.map((part) => sourcesOf(part, turn, numbers));
      return (
        <>
          {parts.map((part, place) => (
            <Markdown key={place} text={part.text ?? part.refusal ?? ""} citations={(cited[place] ?? []).map((each) => citation(each, shownSource, onSource))} />
          ))}
          <Sources cited={cited.flat()} onSource={onSource} />
        </>
      );
    }
    case "file_search_call":
      return <p class="step">{item.queries?.length ? words.searched(item.queries.map(shownText)) : words.searching}</p>;
    case "function_call":
    case "custom_tool_call":
    case "mcp_call":
      return <p class="step">{words.called(shownText(item.name ?? ""))}</p>;
    case "compaction":
      return <p class="step">{words.compacted}</p>;
    default:
      return null;
  }
}

function partsOf(item: Item): ContentPart[] {
  return typeof item.content === "string" ? [{ type: "output_text", text: item.content }] : (item.content ?? []);
}

/** Return what is said between the citation before and the one that ends a text: what the latter is for. */
function saidBefore(text: string): string {
  return text.replace(/(\s*\[\d+\])+\s*$/, "").split(/\n\n|\[\d+\]/).at(-1) ?? "";
}

/**
 * Return what a text cites, in the order of use. The model's numbers count on through a conversation; `numbers` gives each
 * the one that a reader of this answer sees, and grows.
 */
function sourcesOf(part: ContentPart, turn: Turn, numbers: Map<string, number>): Source[] {
  const characters = [...(part.text ?? "")];
  const cited = (part.annotations ?? []).filter((each) => each.type === "file_citation");
  return cited.sort((a, b) => (a.index ?? 0) - (b.index ?? 0)).map((annotation) => {
    const index = annotation.index ?? 0;
    const said = saidBefore(characters.slice(Math.max(0, index - MOST_SAID), index).join(""));
    const written = numberAt(part.text ?? "", index) || `${annotation.file_id} ${index}`;
    const number = numbers.get(written) ?? numbers.size + 1;
    numbers.set(written, number);
    return { turn, annotation, said, number };
  });
}

/** The documents behind the numbers of an answer. */
function Sources({ cited, onSource }: { cited: Source[]; onSource: (source: Source) => void }): JSX.Element | null {
  const words = spoken(CHAT_WORDS);
  const once = cited.filter((each, place) => cited.findIndex((other) => other.number === each.number) === place);
  if (once.length === 0) return null;
  return (
    <ul class="sources" aria-label={words.sources}>
      {once.map((each) => (
        <li key={each.number}>
          <button type="button" class="link" dir="auto" onClick={() => onSource(each)}>[{each.number}] {placedName(each.annotation.filename ?? "", each.annotation)}</button>
        </li>
      ))}
    </ul>
  );
}

function citation(source: Source, shownSource: Source | null, onSource: (source: Source) => void): Citation {
  const name = placedName(source.annotation.filename ?? "", source.annotation);
  return {
    index: source.annotation.index ?? 0,
    chip: (
      <button
        type="button"
        class="cite"
        aria-label={spoken(CHAT_WORDS).source(String(source.number), name)}
        title={name}
        aria-pressed={shownSource?.annotation === source.annotation}
        onClick={() => onSource(source)}
      >
        {source.number}
      </button>
    ),
  };
}

function Ending({ turn }: { turn: Turn }): JSX.Element | null {
  const words = spoken(CHAT_WORDS);
  if (turn.status === "cancelled") return <p class="ending">{words.stopped}</p>;
  if (turn.status === "failed") return <p class="ending wrong" role="alert">{turn.error || words.failed}</p>;
  if (turn.status !== "incomplete") return null;
  const reason = turn.reason === "max_output_tokens" || turn.reason === "content_filter" ? turn.reason : "other";
  return <p class="ending">{words.cut[reason]}</p>;
}
