// Search in a base: as somebody who may read it, and what a restricted analyst would get.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError, call, get } from "../../api/client";
import { BASES, type Hit, type ReadableBase, type RestrictedBase } from "../../api/knowledge";
import { Button } from "../../components/button";
import { Field, Pick } from "../../components/field";
import { Failure } from "../../components/notices";
import { MarkedPassage } from "../../components/marked_passage";
import { placedName } from "../../components/place_text";
import { shownText } from "../../components/shown_text";
import { keys } from "../../state/keys";
import { addressOf } from "../../state/router";
import { numberText, spoken } from "../../words";
import { AnalystCard, asTold } from "./analyst";
import { KNOWLEDGE_WORDS } from "./words";

type Role = "reader" | "analyst";
type Told = Parameters<typeof AnalystCard>[0]["base"];
type Found = { as: "reader"; query: string; hits: Hit[] } | { as: "analyst"; query: string; told: Told; refusal: string } | { failure: unknown };

const MOST_HITS = 20;

async function searchAs(role: Role, base: ReadableBase, query: string): Promise<Found> {
  const body = { query, max_results: MOST_HITS };
  if (role === "reader") {
    const { data } = await call<{ data: Hit[] }>("user", "POST", `${BASES}/${base.id}/search`, { body });
    return { as: "reader", query, hits: data };
  }
  return { as: "analyst", query, ...(await askedByAnalyst(base, body)) };
}

/** Try it with the restricted key of this tab, where that is of a restricted member; else from what is withheld. */
async function askedByAnalyst(base: ReadableBase, body: object): Promise<{ told: Told; refusal: string }> {
  const words = spoken(KNOWLEDGE_WORDS);
  if (!keys.value.restricted) return { told: asTold(base), refusal: "" };
  try {
    const told = await get<RestrictedBase>("restricted", `${BASES}/${base.id}`);
    if (told.role !== "restricted_analyst") return { told: asTold(base), refusal: words.analystNoMember };
    const refusal = await call("restricted", "POST", `${BASES}/${base.id}/search`, { body }).then(() => "", (error: unknown) => {
      if (error instanceof ApiError && error.status === 403) return words.analystKey(error.message);
      throw error;
    });
    return { told, refusal };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { told: asTold(base), refusal: words.analystNoMember };
    throw error;
  }
}

export function SearchTab({ base }: { base: ReadableBase }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [query, setQuery] = useState("");
  const [role, setRole] = useState<Role>("reader");
  const [found, setFound] = useState<Found | null>(null);
  const search = (as: Role): void => {
    if (!query.trim()) return setFound(null);
    searchAs(as, base, query.trim()).then(setFound, (failure: unknown) => setFound({ failure }));
  };
  return (
    <>
      <form class="search-form" role="search" onSubmit={(event) => { event.preventDefault(); search(role); }}>
        <Field label={words.query}>
          {(ids) => <input {...ids} type="search" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />}
        </Field>
        <div class="actions">
          <Pick<Role>
            label={words.as}
            value={role}
            onPick={(chosen) => { setRole(chosen); search(chosen); }}
            options={[{ value: "reader", name: words.asReader }, { value: "analyst", name: words.asAnalyst }]}
          />
          <Button type="submit" kind="primary" disabled={!query.trim()}>{words.search}</Button>
        </div>
      </form>
      <div aria-live="polite">{found && <Result found={found} base={base} />}</div>
    </>
  );
}

function Result({ found, base }: { found: Found; base: ReadableBase }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  if ("failure" in found) return <Failure error={found.failure} />;
  if (found.as === "reader") return <Hits hits={found.hits} query={found.query} />;
  return (
    <div class="stack">
      <AnalystCard base={found.told} />
      <section class="judged refused" aria-label={words.analystSearch}>
        <h2>{words.analystSearch}</h2>
        <p>{words.analystRefused}</p>
        {found.refusal && <p class="hint">{found.refusal}</p>}
      </section>
      <div class="actions"><a class="button" href={addressOf("people", base.id, found.query)}>{words.askBoth}</a></div>
    </div>
  );
}

/** The words of a search by which a passage is told from others, not those that stand everywhere. */
function telling(query: string): string {
  return query.split(/\s+/).filter((word) => word.length > 3 || /\p{Script=Han}/u.test(word)).join(" ");
}

function Hits({ hits, query }: { hits: Hit[]; query: string }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  if (hits.length === 0) return <p class="hint">{words.noHits}</p>;
  return (
    <section class="stack" aria-label={words.hits(hits.length)}>
      <h2 class="count">{words.hits(hits.length)}</h2>
      <ol class="hits">
        {hits.map((each) => (
          <li key={each.chunk}>
            <div class="hit-head">
              <h3 dir="auto">{[placedName(each.document, each), ...each.heading_path.map(shownText)].join(" › ")}</h3>
              <span class="score">
                <meter min={0} max={1} value={each.score} aria-label={words.score(numberText(each.score, { maximumFractionDigits: 2 }))} />
                {numberText(each.score, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}
              </span>
            </div>
            <MarkedPassage passage={each.text} answer={telling(query)} leastRun={1} />
          </li>
        ))}
      </ol>
    </section>
  );
}
