// The backend's metrics, as it shows them to Prometheus.
import { authorization, credentials } from "../state/session";

export interface Metric {
  labels: Record<string, string>;
  value: number;
}

export type Metrics = Map<string, Metric[]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export class MetricsAway extends Error {
  constructor(readonly status: number) {
    super(String(status));
  }
}

/** Read the metrics of the backend process that answers; where operators have moved them, it shows them to administrators. */
export async function readMetrics(): Promise<Metrics> {
  const options: RequestInit = { headers: authorization("admin"), cache: "no-store", credentials: credentials("admin") };
  const answer = await fetch("/metrics", options).catch(() => null);
  if (!answer?.ok) throw new MetricsAway(answer?.status ?? 0);
  const found: Metrics = new Map();
  for (const line of (await answer.text()).split("\n")) {
    const [, name, labels, value] = LINE.exec(line) ?? [];
    if (!name || value === undefined) continue;
    const metric = { labels: labelsOf(labels ?? ""), value: value === "+Inf" ? Infinity : Number(value) };
    const list = found.get(name);
    if (list) list.push(metric);
    else found.set(name, [metric]);
  }
  return found;
}

function labelsOf(text: string): Record<string, string> {
  const unescaped = (value: string): string => value.replace(/\\(.)/g, (_, each: string) => (each === "n" ? "\n" : each));
  return Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, unescaped(value ?? "")]));
}

export function sumOf(metrics: Metrics, name: string, isCounted: (labels: Record<string, string>) => boolean = () => true): number {
  return (metrics.get(name) ?? []).reduce((sum, each) => (isCounted(each.labels) ? sum + each.value : sum), 0);
}

/** Cumulative counts of a histogram by their upper bounds, in the order of these. */
export function bucketsOf(metrics: Metrics, name: string): [bound: number, count: number][] {
  const found = (metrics.get(`${name}_bucket`) ?? []).map((each): [number, number] => [each.labels["le"] === "+Inf" ? Infinity : Number(each.labels["le"]), each.value]);
  return found.sort(([a], [b]) => a - b);
}

/** Estimate a quantile as Prometheus does: evenly within the bucket that holds it; null where nothing was counted. */
export function quantile(share: number, buckets: readonly (readonly [bound: number, count: number])[]): number | null {
  const whole = buckets.at(-1)?.[1] ?? 0;
  if (whole <= 0) return null;
  const wanted = share * whole;
  const at = buckets.findIndex(([, count]) => count >= wanted);
  const [bound, count] = buckets[at] ?? [0, 0];
  const [from, before] = buckets[at - 1] ?? [0, 0];
  return bound === Infinity ? from : from + ((bound - from) * (wanted - before)) / (count - before || 1);
}
