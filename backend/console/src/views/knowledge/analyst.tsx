// What a restricted analyst sees of a base.
import type { JSX } from "preact";
import type { ReadableBase, RestrictedBase } from "../../api/knowledge";
import { shownText } from "../../components/shown_text";
import { checkText } from "../../reasons";
import { language } from "../../state/preferences";
import { spoken } from "../../words";
import { KNOWLEDGE_WORDS } from "./words";

type Told = Pick<RestrictedBase, "name" | "routing_hint" | "routing_keywords">;

/** A base as the server shows it to its restricted members, from what it says is withheld. */
export function asTold(base: ReadableBase): Told {
  const gone = new Set(base.left_out);
  return {
    name: gone.has("name") ? spoken(KNOWLEDGE_WORDS).neutralName : base.name,
    routing_hint: gone.has("routing_hint") ? "" : base.routing_hint,
    routing_keywords: base.routing_keywords.filter((_, place) => !gone.has(`routing_keywords[${place}]`)),
  };
}

export function AnalystCard({ base }: { base: Told }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  return (
    <section class="analyst-card" aria-label={words.analystSees}>
      <h2>{words.analystSees}</h2>
      <p class="told-name" dir="auto">{shownText(base.name)}</p>
      <p dir="auto">{shownText(base.routing_hint) || <span class="hint">{words.noHint}</span>}</p>
      {base.routing_keywords.length > 0 && (
        <ul class="keywords">{base.routing_keywords.map((each, place) => <li key={place} dir="auto">{shownText(each)}</li>)}</ul>
      )}
    </section>
  );
}

/** Say why a field is withheld from restricted members; nothing where it is not. */
export function withheldText(base: ReadableBase, field: string): string {
  if (!base.left_out?.includes(field)) return "";
  const words = spoken(KNOWLEDGE_WORDS);
  const list = new Intl.ListFormat(language.value, { type: "conjunction" });
  const phrases = (base.left_out_words?.[field] ?? []).map((each) => words.quoted(shownText(each)));
  return words.isWithheld(list.format((base.left_out_reasons?.[field] ?? []).map(checkText)), list.format(phrases));
}
