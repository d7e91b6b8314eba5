// Where the person writes, and chooses model and bases for the next turn.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { Button } from "../../components/button";
import { Pick } from "../../components/field";
import { Icon } from "../../components/icons";
import { shownText } from "../../components/shown_text";
import { spoken } from "../../words";
import { bases, chooseBases, chooseModel, chosenBases, chosenModel, models, onlyBase } from "./choices";
import { CHAT_WORDS } from "./words";

const MOST_LINES_PX = 220;
/** What is written and not sent yet; it outlives a look at another view. */
export const draft = signal("");

interface ComposerProps {
  isRunning: boolean;
  onAsk: (text: string) => void;
  onStop: () => void;
}

export function Composer({ isRunning, onAsk, onStop }: ComposerProps): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (!area.current) return;
    area.current.style.height = "auto";
    area.current.style.height = `${Math.min(area.current.scrollHeight + 2, MOST_LINES_PX)}px`;
  }, [draft.value]);

  function submit(event: Event): void {
    event.preventDefault();
    const text = draft.value.trim();
    if (!text || isRunning) return;
    draft.value = "";
    onAsk(text);
  }

  return (
    <form class="composer" onSubmit={submit}>
      {onlyBase.value && <p class="hint">{words.onlyBase(shownText(onlyBase.value.name), bases.value.length)}</p>}
      <textarea
        ref={area}
        rows={1}
        aria-label={words.question}
        placeholder={words.placeholder}
        value={draft.value}
        onInput={(event) => { draft.value = event.currentTarget.value; }}
        onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event); }}
      />
      <div class="composer-foot">
        <BasesMenu />
        <ModelPick />
        <span class="push" />
        {isRunning ? <Button kind="primary" icon="stop" onClick={onStop}>{words.stop}</Button> : <Button type="submit" kind="primary" icon="send" label={words.send} disabled={!draft.value.trim()} />}
      </div>
    </form>
  );
}

function ModelPick(): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const options = models.value.map((each) => ({ value: each.id, name: each.owned_by === "agent" ? `${each.id} · ${words.agents}` : each.id }));
  return <Pick quiet label={words.model} value={chosenModel.value} options={options} onPick={chooseModel} />;
}

function BasesMenu(): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const ref = useRef<HTMLDetailsElement>(null);
  const chosen = bases.value.filter((each) => chosenBases.value.includes(each.id));
  useEffect(() => {
    const close = (event: Event): void => {
      if (ref.current && event.target instanceof Node && !ref.current.contains(event.target)) ref.current.open = false;
    };
    addEventListener("click", close);
    return () => removeEventListener("click", close);
  }, []);
  function toggle(id: string, isChosen: boolean): void {
    chooseBases(isChosen ? [...chosenBases.value, id] : chosenBases.value.filter((each) => each !== id));
  }
  return (
    <details
      class="menu"
      ref={ref}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !ref.current) return;
        ref.current.open = false;
        ref.current.querySelector("summary")?.focus();
      }}
    >
      <summary class={`button quiet${chosen.length ? " chosen" : ""}`}>
        <Icon name="book" />
        <span>{chosen.length ? shownText(words.basesChosen(chosen.map((each) => each.name))) : words.noBases}</span>
        <Icon name="down" />
      </summary>
      <fieldset class="menu-list">
        <legend class="unseen">{words.bases}</legend>
        {bases.value.length === 0 && <p class="hint">{words.noBasesYet}</p>}
        {bases.value.map((each) => (
          <label key={each.id}>
            <input type="checkbox" checked={chosenBases.value.includes(each.id)} onChange={(event) => toggle(each.id, event.currentTarget.checked)} />
            <span dir="auto">{shownText(each.name)}</span>
            {each.role === "restricted_analyst" && <span class="tag">{words.restricted}</span>}
          </label>
        ))}
      </fieldset>
    </details>
  );
}
