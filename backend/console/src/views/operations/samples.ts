// Samples of the metrics for as long as the page is open, and what they say of the last hour. Nothing of it is kept.
import { signal } from "@preact/signals";
import { bucketsOf, readMetrics, sumOf, type Metrics } from "../../api/metrics";

const SAMPLED_EVERY_MS = 10_000;
export const HOUR_SECONDS = 3600;
export const STEP_SECONDS = 60;

/** What one process has counted since it began. */
export interface Counts {
  completed: number;
  failed: number;
  stopped: number;
  refused: number;
  broken: number;
  reusedTokens: number;
  newTokens: number;
  firstToken: [bound: number, count: number][];
}

export interface Sample {
  /** In seconds since 1970. */
  at: number;
  /** When the process that answered has begun: behind a balancer several answer in turns. */
  process: number;
  streams: number;
  /** Since the process began. */
  total: Counts;
  /** Since its sample before; null in its first one. */
  since: Counts | null;
}

export const samples = signal<Sample[]>([]);
export const failure = signal<unknown>(null);
let timer: ReturnType<typeof setInterval> | null = null;

function countsOf(metrics: Metrics): Counts {
  const turns = (outcome: string): number => sumOf(metrics, "ballast_turns_total", (labels) => labels["outcome"] === outcome);
  const requests = (status: RegExp): number => sumOf(metrics, "ballast_http_requests_total", (labels) => status.test(labels["status"] ?? ""));
  const tokens = (part: string): number => sumOf(metrics, "ballast_prompt_tokens_total", (labels) => labels["part"] === part);
  return {
    completed: turns("completed"),
    failed: turns("failed"),
    stopped: turns("cancelled") + turns("incomplete"),
    refused: requests(/^4/),
    broken: requests(/^5/),
    reusedTokens: tokens("reused"),
    newTokens: tokens("new"),
    firstToken: bucketsOf(metrics, "ballast_ttft_seconds"),
  };
}

function difference(now: Counts, before: Counts): Counts {
  const names = ["completed", "failed", "stopped", "refused", "broken", "reusedTokens", "newTokens"] as const;
  const numbers = Object.fromEntries(names.map((name) => [name, now[name] - before[name]])) as Record<(typeof names)[number], number>;
  return { ...numbers, firstToken: now.firstToken.map(([bound, count], place) => [bound, count - (before.firstToken[place]?.[1] ?? 0)]) };
}

export async function sampleNow(): Promise<void> {
  try {
    const metrics = await readMetrics();
    const at = Date.now() / 1000;
    const process = sumOf(metrics, "process_start_time_seconds");
    const total = countsOf(metrics);
    const before = samples.value.findLast((each) => each.process === process);
    const sample = { at, process, streams: sumOf(metrics, "ballast_streams_active"), total, since: before ? difference(total, before.total) : null };
    samples.value = [...samples.value.filter((each) => each.at > at - HOUR_SECONDS - STEP_SECONDS), sample];
    failure.value = null;
  } catch (error) {
    failure.value = error;
  }
}

/** Begin to sample; it goes on while other views are open. */
export function startSampling(): void {
  if (timer !== null) return;
  void sampleNow();
  timer = setInterval(() => void sampleNow(), SAMPLED_EVERY_MS);
}

/** Lay the samples of the last hour into its minutes. */
export function byMinute(all: Sample[], now: number): { times: number[]; minutes: Sample[][] } {
  const last = Math.floor(now / STEP_SECONDS) * STEP_SECONDS;
  const times = Array.from({ length: HOUR_SECONDS / STEP_SECONDS }, (_, place) => last - HOUR_SECONDS + (place + 1) * STEP_SECONDS);
  const first = times[0] ?? last;
  const minutes: Sample[][] = times.map(() => []);
  for (const each of all) minutes[Math.floor((each.at - first) / STEP_SECONDS)]?.push(each);
  return { times, minutes };
}

/** Add up what was counted in some samples; null where none of them has one before it. */
export function sumCounts(some: Sample[], read: (counts: Counts) => number): number | null {
  const counts = some.flatMap((each) => (each.since ? [read(each.since)] : []));
  return counts.length ? counts.reduce((sum, each) => sum + each, 0) : null;
}

export function sumBuckets(some: Sample[]): [bound: number, count: number][] {
  const lists = some.flatMap((each) => (each.since ? [each.since.firstToken] : []));
  return (lists[0] ?? []).map(([bound], place) => [bound, lists.reduce((sum, list) => sum + (list[place]?.[1] ?? 0), 0)]);
}
