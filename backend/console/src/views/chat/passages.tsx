// The passage behind a citation, beside the answer.
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { SearchResult } from "../../api/types";
import { Button } from "../../components/button";
import { MarkedPassage, sharedCount } from "../../components/marked_passage";
import { placedName } from "../../components/place_text";
import { spoken } from "../../words";
import type { Source } from "./turn_view";
import { CHAT_WORDS } from "./words";

/** The passages of the cited document that the turn has found, the one that shares most with the answer first. */
function passagesOf({ turn, annotation, said }: Source): SearchResult[] {
  const found = turn.output.flatMap((item) => item.results ?? []).filter((each) => each.file_id === annotation.file_id);
  const unique = [...new Map(found.map((each) => [each.text, each])).values()];
  return unique.sort((a, b) => sharedCount(b.text, said) - sharedCount(a.text, said));
}

export function Passages({ source, onClose }: { source: Source; onClose: () => void }): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const ref = useRef<HTMLElement>(null);
  const [best, ...others] = passagesOf(source);
  // Before the next key: an Escape that comes ahead of the focus would close nothing.
  useLayoutEffect(() => {
    ref.current?.focus();
    ref.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [source]);
  return (
    <aside
      class="passages"
      ref={ref}
      tabindex={-1}
      aria-label={words.passage}
      onKeyDown={(event) => { if (event.key === "Escape") onClose(); }}
    >
      <header>
        <h2 dir="auto"><span class="cite" aria-hidden="true">{source.number}</span> {placedName(source.annotation.filename ?? "", source.annotation)}</h2>
        <Button kind="quiet" icon="close" label={words.closePassage} onClick={onClose} />
      </header>
      {best ? (
        <>
          <p class="hint">{words.passageHint}</p>
          <MarkedPassage passage={best.text} answer={source.said} />
          {others.length > 0 && (
            <details>
              <summary>{words.otherPassages}</summary>
              {others.map((each) => <MarkedPassage key={each.text} passage={each.text} answer={source.said} />)}
            </details>
          )}
        </>
      ) : (
        <p class="hint">{words.noPassage}</p>
      )}
    </aside>
  );
}
