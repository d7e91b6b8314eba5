import type { JSX } from "preact";
import type { Segment } from "../api/prompts";
import { shownText } from "./shown_text";

/** The text of a message as people read it; what is no text, such as calls of tools, as the JSON that was sent. */
export function SentText({ segment, tools, label }: { segment: Segment; tools: unknown[]; label: string }): JSX.Element {
  const json = (found: unknown): string => (found ? JSON.stringify(found, null, 2) : "");
  const { message } = segment;
  const parts = message ? [typeof message.content === "string" ? message.content : json(message.content), json(message.tool_calls)] : [json(tools)];
  return <pre class="sent" dir="auto" tabindex={0} aria-label={label}>{shownText(parts.filter(Boolean).join("\n\n"))}</pre>;
}
