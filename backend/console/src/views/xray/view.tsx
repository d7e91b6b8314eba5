// Prompt x-ray: what the model calls of a conversation have sent, and what of it was sent before.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { layoutsOf, readCalls, shareKept, totalsOf, type LayoutCost, type ModelCall, type Segment } from "../../api/prompts";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Pick } from "../../components/field";
import type { Conversation } from "../../api/types";
import { useLoaded } from "../../components/loaded";
import { complain, Empty, Failure, Loading } from "../../components/notices";
import { ViewPage } from "../../components/view_page";
import { SentText } from "../../components/sent_text";
import { shownText } from "../../components/shown_text";
import { Table } from "../../components/table";
import { addressOf, go } from "../../state/router";
import { numberText, spoken } from "../../words";
import { conversations, loadHistory, titleOf } from "../chat/history";
import { Bars, Legend, stateOf } from "./bars";
import { XRAY_WORDS } from "./words";
import "./xray.css";

export function XrayView({ parts }: { parts: string[] }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const [isListed, setListed] = useState(false);
  useEffect(() => {
    loadHistory().catch(complain).finally(() => setListed(true));
  }, []);
  const id = parts[0] ?? newestChat()?.id ?? "";
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

/** The newest conversation of the chat, which alone gives titles: those of "As two people" have one turn and nothing to compare. */
function newestChat(): Conversation | undefined {
  return conversations.value.find((each) => each.metadata["title"]) ?? conversations.value[0];
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
      {loaded.state === "ready" && (loaded.value.length ? <Calls calls={loaded.value} conversationId={id} /> : <p class="hint">{words.noCalls}</p>)}
    </>
  );
}

function Calls({ calls, conversationId }: { calls: ModelCall[]; conversationId: string }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const [pointed, setPointed] = useState<Segment | null>(null);
  const [opened, setOpened] = useState<Segment | null>(null);
  return (
    <>
      <Figures calls={calls} />
      {calls.every((each) => each.turn === 1) && <p><a href={addressOf("chat", conversationId)}>{words.askAgain}</a></p>}
      <Legend />
      <p class="readout">{pointed ? <SegmentLine segment={pointed} /> : words.hover}</p>
      <Bars calls={calls} onPoint={setPointed} onOpen={setOpened} />
      <CallTable calls={calls} />
      <LayoutTable calls={calls} />
      {opened && (
        <Dialog title={words.kind(opened.kind)} place="side" onClose={() => setOpened(null)}>
          <p class="hint"><SegmentLine segment={opened} /></p>
          <SentText segment={opened} tools={calls.find((each) => each.segments.includes(opened))?.prompt.tools ?? []} label={words.kind(opened.kind)} />
        </Dialog>
      )}
    </>
  );
}

function SegmentLine({ segment }: { segment: Segment }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const position = segment.message?.position;
  const parts = [
    words.segment(words.kind(segment.kind), numberText(segment.sizeBytes), words.states[stateOf(segment)]),
    segment.tokens === null ? "" : words.tokens(numberText(segment.tokens)),
    segment.part === "behind" ? words.behind : !segment.message ? "" : position === null || position === undefined ? words.notInLog : words.position(numberText(position)),
  ];
  return <>{parts.filter(Boolean).join(" · ")}</>;
}

function Figures({ calls }: { calls: ModelCall[] }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  const share = (part: number, whole: number): string => numberText(whole ? part / whole : 0, { style: "percent", maximumFractionDigits: 0 });
  const totals = totalsOf(calls);
  const { cost, cachedTokens } = totals;
  const kept = shareKept(calls);
  return (
    <dl class="figures">
      <div>
        <dt>{words.shareReused} {kept !== null && <span class="without">{words.shareKept(share(Math.floor(kept * 100), 100))}</span>}</dt>
        <dd>{share(totals.reusedBytes, totals.sentBytes)}</dd>
      </div>
      <div>
        <dt>{cachedTokens === null ? words.notTold : words.shareCached}</dt>
        <dd>{cachedTokens === null ? "–" : share(cachedTokens, totals.usedTokens)}</dd>
      </div>
      <div>
        <dt>{cost ? <>{words.cost} <span class="without">{words.costWithout(moneyText(cost.amount + cost.saved, cost.currency))}</span> {words.prices}</> : words.noPrices}</dt>
        <dd>{cost ? moneyText(cost.amount, cost.currency) : "–"}</dd>
      </div>
    </dl>
  );
}

function moneyText(amount: number, currency: string): string {
  return numberText(amount, { style: "currency", currency, minimumFractionDigits: 2, maximumSignificantDigits: 3 });
}

function LayoutTable({ calls }: { calls: ModelCall[] }): JSX.Element {
  const words = spoken(XRAY_WORDS);
  return (
    <Table<LayoutCost>
      caption={words.layouts}
      rows={layoutsOf(calls)}
      keyOf={(each) => each.layout}
      columns={[
        { head: words.layout, cell: (each) => words.layoutNames[each.layout] ?? each.layout },
        { head: words.heads.tokens, numeric: true, cell: (each) => numberText(each.sent_tokens) },
        { head: words.heads.cached, numeric: true, cell: (each) => numberText(each.cached_tokens) },
        { head: words.heads.cost, numeric: true, cell: (each) => numberText(each.cost_tokens) },
      ]}
    />
  );
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
