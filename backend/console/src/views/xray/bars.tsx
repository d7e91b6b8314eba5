// The bars: one for each model call, as wide as what it sent.
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { ModelCall, Segment } from "../../api/prompts";
import { numberText, spoken } from "../../words";
import { XRAY_WORDS } from "./words";

interface BarsProps {
  calls: ModelCall[];
  onPoint: (segment: Segment | null) => void;
  onOpen: (segment: Segment) => void;
}

export function stateOf({ part, isReused }: Segment): "old" | "behind" | "fresh" {
  return isReused ? "old" : part === "behind" ? "behind" : "fresh";
}

export function Bars({ calls, onPoint, onOpen }: BarsProps): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const widest = Math.max(...calls.map((each) => each.sizeBytes), 1);
  return (
    <ol class="bars" onMouseLeave={() => onPoint(null)}>
      {calls.map((call) => (
        <li key={`${call.responseId}/${call.prompt.call}`}>
          {call.prompt.epoch_reason && <p class="epoch">{words.epoch(call.prompt.epoch, call.prompt.epoch_reason)}</p>}
          <h2>{words.call(call.turn, call.prompt.call)}</h2>
          {call.prompt.shortfall === "policy" && <p class="hint">{words.moved(call.prompt.rewritten_tokens)}</p>}
          {call.prompt.cache_miss && <p class="hint">{words.missed(call.prompt.cache_miss, call.prompt.cache_diagnosis)}</p>}
          <Bar call={call} share={call.sizeBytes / widest} onPoint={onPoint} onOpen={onOpen} />
        </li>
      ))}
    </ol>
  );
}

/** A bar is one stop of the Tab key; arrows go from part to part, because parts may be as narrow as they are short. */
function Bar({ call, share, onPoint, onOpen }: { call: ModelCall; share: number } & Omit<BarsProps, "calls">): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const id = useId();
  const [chosen, setChosen] = useState<number | null>(null);
  const { segments } = call;
  const { cached_tokens: cached, gauge } = call.prompt;
  const cachedShare = cached && gauge?.used_tokens ? Math.min(1, cached / gauge.used_tokens) : 0;

  function choose(place: number): void {
    const within = Math.max(0, Math.min(segments.length - 1, place));
    setChosen(within);
    onPoint(segments[within] ?? null);
  }
  function press(event: KeyboardEvent): void {
    const at = chosen ?? 0;
    const places: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: segments.length - 1 };
    const place = places[event.key];
    if (place !== undefined) choose(place);
    else if (event.key === "Enter" || event.key === " ") { if (segments[at]) onOpen(segments[at]); }
    else return;
    event.preventDefault();
  }
  return (
    <div class="bar-frame" style={{ width: `${share * 100}%` }}>
      <div
        class="bar"
        role="listbox"
        tabindex={0}
        aria-orientation="horizontal"
        aria-label={words.call(call.turn, call.prompt.call)}
        {...(chosen === null ? {} : { "aria-activedescendant": `${id}-${chosen}` })}
        onFocus={() => choose(chosen ?? 0)}
        onKeyDown={press}
      >
        {segments.map((segment, place) => (
          <div
            key={place}
            id={`${id}-${place}`}
            role="option"
            aria-selected={place === chosen}
            class={`segment part-${segment.part}${segment.isReused ? " reused" : ""}`}
            style={{ flexGrow: segment.sizeBytes }}
            aria-label={words.segment(words.kind(segment.kind), numberText(segment.sizeBytes), words.states[stateOf(segment)])}
            onMouseEnter={() => onPoint(segment)}
            onClick={() => { choose(place); onOpen(segment); }}
          />
        ))}
      </div>
      <div class="cached-line" style={{ width: `${cachedShare * 100}%` }} />
    </div>
  );
}

export function Legend(): JSX.Element {
  const words = spoken(XRAY_WORDS);
  return (
    <ul class="legend">
      {(["tools", "system", "context", "history", "behind"] as const).map((part) => (
        <li key={part}><span class={`swatch segment part-${part}`} />{words.parts[part]}</li>
      ))}
      <li><span class="swatch segment part-history reused" />{words.reused}</li>
      <li><span class="swatch cached-line" />{words.cached}</li>
    </ul>
  );
}
