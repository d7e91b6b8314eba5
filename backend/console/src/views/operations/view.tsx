// Operations: what the backend does now and has done in the last hour, for administrators.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { readAudit } from "../../api/audit";
import { MetricsAway, quantile } from "../../api/metrics";
import { Button } from "../../components/button";
import { CodeBlock } from "../../components/copy";
import { useLoaded } from "../../components/loaded";
import { Empty, Failure, Loading } from "../../components/notices";
import { ViewPage } from "../../components/view_page";
import { Plot, type Series, type Tone } from "../../components/plot";
import { has } from "../../state/session";
import { numberText, spoken } from "../../words";
import { byMinute, failure, sampleNow, samples, startSampling, STEP_SECONDS, sumBuckets, sumCounts, type Counts, type Sample } from "./samples";
import { OPERATIONS_WORDS } from "./words";
import "./operations.css";

const MEDIAN = 0.5;
const SLOW = 0.95;
const EVERY_SECONDS = 10;

export function OperationsView(_: { parts: string[] }): JSX.Element {
  const words = spoken(OPERATIONS_WORDS);
  return (
    <ViewPage name="operations" words={words}>
      {has("admin") ? <WithKey /> : <Empty title={words.noKey}><p>{words.noKeyText}</p></Empty>}
    </ViewPage>
  );
}

/** Metrics may be open to everybody; that the key is an administrator's is asked of the audit. */
function WithKey(): JSX.Element {
  const [allowed, again] = useLoaded(() => readAudit({}, 1), []);
  if (allowed.state === "loading") return <Loading />;
  if (allowed.state === "failed") return <Failure error={allowed.error} onRetry={again} />;
  return <Watched />;
}

function Watched(): JSX.Element {
  const words = spoken(OPERATIONS_WORDS);
  useEffect(startSampling, []);
  const last = samples.value.at(-1);
  const error = failure.value;
  if (error instanceof MetricsAway && (error.status === 404 || error.status === 403)) return <Moved />;
  return (
    <>
      <div class="watch">
        <p class="hint">{words.sampling(numberText(EVERY_SECONDS))}</p>
        <Button icon="again" onClick={() => void sampleNow()}>{words.readNow}</Button>
      </div>
      {error !== null && <Failure error={error} onRetry={() => void sampleNow()} />}
      {last ? <><Figures last={last} /><Plots /></> : error === null && <Loading />}
    </>
  );
}

function Moved(): JSX.Element {
  const words = spoken(OPERATIONS_WORDS);
  return (
    <Empty title={words.moved}>
      <p>{words.movedText}</p>
      <CodeBlock name="curl" code={`curl http://${location.hostname}:$BACKEND_ADMIN_PORT/metrics`} />
      <p>{words.movedRest}</p>
      <Button icon="again" onClick={() => void sampleNow()}>{words.readNow}</Button>
    </Empty>
  );
}

function Figures({ last: { total, streams } }: { last: Sample }): JSX.Element {
  const words = spoken(OPERATIONS_WORDS);
  const tokens = total.reusedTokens + total.newTokens;
  const median = quantile(MEDIAN, total.firstToken);
  const slow = quantile(SLOW, total.firstToken);
  const told = [
    { figure: numberText(streams), what: words.streamsNow, more: "" },
    { figure: numberText(total.completed + total.failed + total.stopped), what: words.turnsDone, more: words.ofThemFailed(numberText(total.failed)) },
    { figure: median === null ? "–" : secondsText(median), what: words.firstTokenOf, more: slow === null ? "" : words.upTo(secondsText(slow)) },
    { figure: tokens ? shareText(total.reusedTokens / tokens) : "–", what: words.cachedOf, more: words.cachedHint },
  ];
  return (
    <dl class="figures">
      {told.map(({ figure, what, more }) => <div key={what}><dt>{what}{more && <span class="more">{more}</span>}</dt><dd>{figure}</dd></div>)}
    </dl>
  );
}

function Plots(): JSX.Element {
  const words = spoken(OPERATIONS_WORDS);
  const { times, minutes } = byMinute(samples.value, Date.now() / 1000);
  const counted = (name: string, tone: Tone, read: (counts: Counts) => number): Series => ({ name, tone, values: minutes.map((some) => sumCounts(some, read)) });
  const line = (name: string, tone: Tone, read: (some: Sample[]) => number | null): Series => ({ name, tone, values: minutes.map(read) });
  const most = (some: Sample[]): number | null => (some.length ? Math.max(...some.map((each) => each.streams)) : null);
  const reused = (some: Sample[]): number | null => {
    const [before, fresh] = [sumCounts(some, (each) => each.reusedTokens), sumCounts(some, (each) => each.newTokens)];
    return before !== null && fresh !== null && before + fresh > 0 ? before / (before + fresh) : null;
  };
  const axis = { times, stepSeconds: STEP_SECONDS };
  return (
    <div class="plots">
      <Plot
        {...axis}
        title={words.turns}
        kind="bars"
        leastTop={4}
        series={[counted(words.failed, "wrong", (each) => each.failed), counted(words.stopped, "warn", (each) => each.stopped), counted(words.completed, "accent", (each) => each.completed)]}
      />
      <Plot
        {...axis}
        title={words.firstToken}
        kind="lines"
        leastTop={0.1}
        valueText={secondsText}
        series={[line(words.slow, "warn", (some) => quantile(SLOW, sumBuckets(some))), line(words.median, "accent", (some) => quantile(MEDIAN, sumBuckets(some)))]}
      />
      <Plot
        {...axis}
        title={words.errors}
        kind="bars"
        leastTop={4}
        series={[counted(words.failedTurns, "wrong", (each) => each.failed), counted(words.broken, "accent", (each) => each.broken), counted(words.refused, "warn", (each) => each.refused)]}
      />
      <Plot {...axis} title={words.cached} kind="lines" valueText={shareText} series={[line(words.share, "good", reused)]} />
      <Plot {...axis} title={words.streams} kind="lines" leastTop={4} series={[line(words.streams, "accent", most)]} />
    </div>
  );
}

function secondsText(seconds: number): string {
  return numberText(seconds < 1 ? Math.round(seconds * 1000) : seconds, { style: "unit", unit: seconds < 1 ? "millisecond" : "second", maximumFractionDigits: 1 });
}

function shareText(share: number): string {
  return numberText(share, { style: "percent", maximumFractionDigits: 0 });
}
