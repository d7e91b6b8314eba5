// Prompt x-ray: what the model calls of a conversation have sent, and what of it was sent before.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { readCalls, totalsOf, type ModelCall, type Segment, type Totals } from "../../api/prompts";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Pick } from "../../components/field";
import { useLoaded } from "../../components/loaded";
import { Empty, errorText, Failure, Loading } from "../../components/notices";
import { ViewPage } from "../../components/view_page";
import { shownText } from "../../components/shown_text";
import { Table } from "../../components/table";
import { addressOf, go } from "../../state/router";
import { toast } from "../../state/toasts";
import { numberText, spoken } from "../../words";
import { conversations, loadHistory, titleOf } from "../chat/history";
import { Bars, Legend } from "./bars";
import { XRAY_WORDS } from "./words";
import "./xray.css";

export function XrayView({ parts }: { parts: string[] }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const [isListed, setListed] = useState(false);
  useEffect(() => {
    loadHistory().catch((error: unknown) => toast(errorText(error), "error")).finally(() => setListed(true));
  }, []);
  const id = parts[0] ?? conversations.value[0]?.id ?? "";
  return (
    <ViewPage name="xray" words={words}>
      {id ? <OfConversation id={id} /> : isListed ? (
        <Empty title={words.none}>
          <p>{words.noneText}</p>
          <a class="button primary" href={addressOf("chat")}>{words.goChat}</a>
        </Empty>
      ) : <Loading />}
    </ViewPage>
  );
}

function OfConversation({ id }: { id: string }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const [loaded, again] = useLoaded(() => readCalls("user", id), [id]);
  const options = conversations.value.map((each) => ({ value: each.id, name: shownText(titleOf(each)) || each.id }));
  if (!options.some((each) => each.value === id)) options.unshift({ value: id, name: id });
  return (
    <>
      <div class="xray-choice">
        <Pick label={words.conversation} value={id} options={options} onPick={(chosen) => go("xray", chosen)} />
        <Button kind="quiet" icon="again" label={words.refresh} onClick={again} />
      </div>
      {loaded.state === "loading" && <Loading />}
      {loaded.state === "failed" && <Failure error={loaded.error} onRetry={again} />}
      {loaded.state === "ready" && (loaded.value.length ? <Calls calls={loaded.value} /> : <p class="hint">{words.noCalls}</p>)}
    </>
  );
}

function Calls({ calls }: { calls: ModelCall[] }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const [pointed, setPointed] = useState<Segment | null>(null);
  const [opened, setOpened] = useState<Segment | null>(null);
  return (
    <>
      <Figures totals={totalsOf(calls)} />
      <Legend />
      <p class="readout">{pointed ? <SegmentLine segment={pointed} /> : words.hover}</p>
      <Bars calls={calls} onPoint={setPointed} onOpen={setOpened} />
      <CallTable calls={calls} />
      {opened && (
        <Dialog title={words.kind(opened.kind)} place="side" onClose={() => setOpened(null)}>
          <p class="hint"><SegmentLine segment={opened} /></p>
          <pre class="sent" dir="auto" tabindex={0} aria-label={words.kind(opened.kind)}>{sentText(opened, calls)}</pre>
        </Dialog>
      )}
    </>
  );
}

/** The text of a message as people read it; what is no text, such as calls of tools, as the JSON that was sent. */
function sentText(segment: Segment, calls: ModelCall[]): string {
  const message = segment.message;
  if (!message) {
    const call = calls.find((each) => each.segments.includes(segment));
    return shownText(JSON.stringify(call?.prompt.tools ?? [], null, 2));
  }
  const content = typeof message.content === "string" ? message.content : message.content ? JSON.stringify(message.content, null, 2) : "";
  const toolCalls = message.tool_calls ? JSON.stringify(message.tool_calls, null, 2) : "";
  return shownText([content, toolCalls].filter(Boolean).join("\n\n"));
}

function SegmentLine({ segment }: { segment: Segment }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const position = segment.message?.position;
  const parts = [
    words.segment(words.kind(segment.kind), numberText(segment.sizeBytes), segment.isReused),
    segment.tokens === null ? "" : words.tokens(numberText(segment.tokens)),
    !segment.message ? "" : position === null || position === undefined ? words.notInLog : words.position(numberText(position)),
  ];
  return <>{parts.filter(Boolean).join(" · ")}</>;
}

function Figures({ totals }: { totals: Totals }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const share = (part: number, whole: number): string => numberText(whole ? part / whole : 0, { style: "percent", maximumFractionDigits: 0 });
  const { cost, cachedTokens } = totals;
  return (
    <dl class="figures">
      <div>
        <dt>{words.shareReused}</dt>
        <dd>{share(totals.reusedBytes, totals.sentBytes)}</dd>
      </div>
      <div>
        <dt>{cachedTokens === null ? words.notTold : words.shareCached}</dt>
        <dd>{cachedTokens === null ? "–" : share(cachedTokens, totals.usedTokens)}</dd>
      </div>
      <div>
        <dt>{cost ? <>{words.cost} <span class="without">{words.costWithout(moneyText(cost.amount + cost.saved, cost.currency))}</span></> : words.noPrices}</dt>
        <dd>{cost ? moneyText(cost.amount, cost.currency) : "–"}</dd>
      </div>
    </dl>
  );
}

function moneyText(amount: number, currency: string): string {
  return numberText(amount, { style: "currency", currency, minimumFractionDigits: 2, maximumSignificantDigits: 3 });
}

function CallTable({ calls }: { calls: ModelCall[] }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const heads = words.heads;
  const optional = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : numberText(value));
  return (
    <Table<ModelCall>
      caption={words.figures}
      rows={calls}
      keyOf={(each) => `${each.responseId}/${each.prompt.call}`}
      columns={[
        { head: heads.call, cell: (each) => words.call(each.turn, each.prompt.call) },
        { head: heads.bytes, numeric: true, cell: (each) => numberText(each.sizeBytes) },
        { head: heads.reused, numeric: true, cell: (each) => numberText(each.prompt.reused_bytes) },
        { head: heads.tokens, numeric: true, cell: (each) => optional(each.prompt.gauge?.used_tokens) },
        { head: heads.cached, numeric: true, cell: (each) => optional(each.prompt.cached_tokens) },
        { head: heads.cost, numeric: true, cell: ({ prompt: { cost } }) => (cost ? moneyText(cost.amount, cost.currency) : "–") },
        { head: heads.saved, numeric: true, cell: ({ prompt: { cost } }) => (cost ? moneyText(cost.saved, cost.currency) : "–") },
      ]}
    />
  );
}
