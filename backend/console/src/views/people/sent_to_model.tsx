// The proof: what the model that answers the analyst was sent, read with the analyst's own key.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "../../api/client";
import { segmentsOf, type Prompt } from "../../api/prompts";
import { useLoaded } from "../../components/loaded";
import { Failure, Loading } from "../../components/notices";
import { SentText } from "../../components/sent_text";
import { spoken } from "../../words";
import { XRAY_WORDS } from "../xray/words";
import { PEOPLE_WORDS } from "./words";

export function SentToModel({ responseId }: { responseId: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{spoken(PEOPLE_WORDS).sent}</summary>
      {isOpen && <LastCall responseId={responseId} />}
    </details>
  );
}

/** The last call holds what the earlier ones have sent: a prompt's beginning never moves. */
function LastCall({ responseId }: { responseId: string }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const [loaded, again] = useLoaded(() => get<{ data: Prompt[] }>("restricted", `/v1/responses/${responseId}/prompts`), [responseId]);
  if (loaded.state === "loading") return <Loading />;
  if (loaded.state === "failed") return <Failure error={loaded.error} onRetry={again} />;
  const prompt = loaded.value.data.at(-1);
  if (!prompt) return <p class="hint">{words.noCalls}</p>;
  return (
    <div class="sent-parts">
      <p class="hint">{spoken(PEOPLE_WORDS).sentLead}</p>
      {segmentsOf(prompt).map((segment, place) => (
        <details key={place} open={segment.kind === "tool_result"}>
          <summary>{words.kind(segment.kind)}</summary>
          <SentText segment={segment} tools={prompt.tools} label={words.kind(segment.kind)} />
        </details>
      ))}
    </div>
  );
}
