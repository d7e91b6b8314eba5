// Chat: questions and answers with their sources.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Turn } from "../../api/turn";
import { isRunning } from "../../api/turn";
import { Button } from "../../components/button";
import { complain, Failure, Loading } from "../../components/notices";
import { shownText } from "../../components/shown_text";
import { addressOf } from "../../state/router";
import { spoken } from "../../words";
import { bases, chooseBasesOfChat, chosenModel, loadChoices } from "./choices";
import { CodeDialog } from "./code_dialog";
import { Composer } from "./composer";
import { Passages } from "./passages";
import { ask, leave, loading, runningTurn, show, stop, turns } from "./session";
import { REAL_MODEL, STAND_IN, suggestionsFor } from "./suggestions";
import { TurnView, type Source } from "./turn_view";
import { CHAT_WORDS } from "./words";
import "./chat.css";

const NEAR_END_PX = 120;

export function ChatView({ parts }: { parts: string[] }): JSX.Element {
  const id = parts[0] ?? "";
  const [source, setSource] = useState<Source | null>(null);
  const [coded, setCoded] = useState<Turn | null>(null);
  const opener = useRef<Element | null>(null);
  const scrolled = useStickyEnd();
  useEffect(() => void loadChoices().catch(complain), []);
  useEffect(() => {
    setSource(null);
    void show(id);
  }, [id]);
  useEffect(() => leave, []);

  function open(chosen: Source): void {
    opener.current = document.activeElement;
    setSource(chosen);
  }
  function close(): void {
    setSource(null);
    if (opener.current instanceof HTMLElement) opener.current.focus();
  }
  const last = turns.value.at(-1) ?? null;
  const place = (turn: Turn): Turn | null => turns.value[turns.value.indexOf(turn) - 1] ?? null;
  return (
    <div class={`chat${source ? " with-passages" : ""}`}>
      <div class="talk">
        <div class="talk-scroll" ref={scrolled}>
          <div class="talk-inside">
            {chosenModel.value === STAND_IN && <p class="hint banner" role="note">{spoken(CHAT_WORDS).standIn} <code>{REAL_MODEL}</code></p>}
            <Beginning />
            {turns.value.map((turn) => (
              <TurnView
                key={turn.id || "asked"}
                turn={turn}
                shownSource={source}
                onSource={open}
                onAskAgain={(text) => void ask({ text, previous: place(turn), isFork: true })}
                onCode={() => setCoded(turn)}
              />
            ))}
          </div>
        </div>
        <Status turn={last} />
        <Composer isRunning={Boolean(runningTurn())} onAsk={(text) => void ask({ text, previous: last })} onStop={() => void stop().catch(complain)} />
      </div>
      {source && <Passages source={source} onClose={close} />}
      {coded && <CodeDialog turn={coded} onClose={() => setCoded(null)} />}
    </div>
  );
}

/** What stands where there are no turns. */
function Beginning(): JSX.Element | null {
  const words = spoken(CHAT_WORDS);
  const state = loading.value;
  if (state === "yes" && turns.value.length === 0) return <Loading />;
  if (typeof state === "object") return <Failure error={state.error} />;
  if (turns.value.length > 0) return <h1 class="unseen">{shownText(turns.value[0]?.asked ?? "")}</h1>;
  const suggested = suggestionsFor(bases.value);
  return (
    <div class="beginning">
      <h1>{words.title}</h1>
      <p class="lead">{words.lead}</p>
      {suggested.length > 0 && (
        <section aria-label={words.suggestions}>
          <ul class="suggestions">
            {suggested.map((each) => (
              <li key={each.text}>
                <Button onClick={() => { chooseBasesOfChat([each.baseId]); void ask({ text: each.text, previous: null }); }}>{each.text}</Button>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-label={words.promises}>
        <ul class="promises">
          {(["people", "xray"] as const).map((view) => (
            <li key={view}>
              <a href={addressOf(view)}><strong>{words.promise[view].title}</strong> {words.promise[view].text} <span class="to">{words.promise[view].view}&nbsp;→</span></a>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

/** Tells those who do not see the page that an answer has begun or ended. */
function Status({ turn }: { turn: Turn | null }): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const text = !turn ? "" : isRunning(turn) ? words.waiting : turn.status === "completed" ? words.answer : "";
  return <p class="unseen" role="status">{text}</p>;
}

/** Keep the end in sight while an answer grows, unless the person has scrolled away from it. */
function useStickyEnd(): { current: HTMLDivElement | null } {
  const ref = useRef<HTMLDivElement>(null);
  const isNearEnd = useRef(true);
  useEffect(() => {
    const area = ref.current;
    const look = (): void => {
      if (area) isNearEnd.current = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_END_PX;
    };
    area?.addEventListener("scroll", look, { passive: true });
    return () => area?.removeEventListener("scroll", look);
  }, []);
  useEffect(() => {
    if (ref.current && isNearEnd.current) ref.current.scrollTop = ref.current.scrollHeight;
  }, [turns.value]);
  return ref;
}
