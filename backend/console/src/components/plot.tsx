// A small plot over time, drawn as SVG; the same figures stand below it as a table.
import type { JSX } from "preact";
import { numberText, spoken, timeText } from "../words";
import { Table } from "./table";

const WORDS = {
  en: { asTable: "As a table", time: "From", none: "Nothing yet.", reach: (title: string, from: string, to: string) => `${title}, from ${from} to ${to}` },
  zh: { asTable: "以表格显示", time: "起始时间", none: "暂无数据。", reach: (title: string, from: string, to: string) => `${title}，${from} 至 ${to}` },
};

const WIDTH = 600;
const HEIGHT = 120;

export type Tone = "accent" | "wrong" | "good" | "warn";

export interface Series {
  name: string;
  tone: Tone;
  /** One for each time; null where nothing is known. */
  values: (number | null)[];
}

interface PlotProps {
  title: string;
  /** Bars stand on one another, lines are drawn over one another. */
  kind: "bars" | "lines";
  /** In seconds since 1970, each the beginning of a stretch of `stepSeconds`. */
  times: number[];
  stepSeconds: number;
  series: Series[];
  valueText?: (value: number) => string;
  /** What the top of the plot is at least, so that a few are not drawn as many. */
  leastTop?: number;
}

export function Plot({ title, kind, times, stepSeconds, series, valueText = numberText, leastTop = 1 }: PlotProps): JSX.Element {
  const words = spoken(WORDS);
  const sums = times.map((_, at) => series.map((each) => each.values[at] ?? 0));
  const top = roundTop(Math.max(leastTop, ...sums.map((values) => (kind === "bars" ? values.reduce((sum, each) => sum + each, 0) : Math.max(...values)))));
  const options: Intl.DateTimeFormatOptions = stepSeconds < 86_400 ? { dateStyle: "short", timeStyle: "short" } : { dateStyle: "medium" };
  const shortOptions: Intl.DateTimeFormatOptions = stepSeconds < 3600 ? { timeStyle: "short" } : options;
  const ends = [times[0] ?? 0, (times.at(-1) ?? 0) + stepSeconds].map((each) => timeText(each, shortOptions)) as [string, string];
  const rows = times.map((time, at) => ({ time, values: series.map((each) => each.values[at] ?? null) })).filter((row) => row.values.some((each) => each !== null && each !== 0));
  return (
    <figure class="plot">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {series.map((each) => <li key={each.name}><span class={`swatch tone-${each.tone}`} />{each.name}</li>)}
        </ul>
      </figcaption>
      <div class="plot-frame">
        <span class="plot-top" aria-hidden="true">{valueText(top)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words.reach(title, ...ends)}>
          <path class="grid" d={`M0 0.5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {kind === "bars" ? <Bars sums={sums} series={series} top={top} /> : series.map((each) => <Line key={each.name} series={each} top={top} />)}
        </svg>
      </div>
      <p class="plot-ends" aria-hidden="true"><span>{ends[0]}</span><span>{ends[1]}</span></p>
      <details>
        <summary>{words.asTable}</summary>
        {rows.length === 0 ? <p class="hint">{words.none}</p> : (
          <Table
            caption={title}
            rows={rows}
            keyOf={(row) => String(row.time)}
            columns={[
              { head: words.time, cell: (row) => timeText(row.time, stepSeconds < 60 ? { timeStyle: "medium" } : options) },
              ...series.map((each, place) => ({
                head: each.name,
                numeric: true,
                cell: (row: (typeof rows)[number]) => { const value = row.values[place]; return value === null || value === undefined ? "–" : valueText(value); },
              })),
            ]}
          />
        )}
      </details>
    </figure>
  );
}

/** Return the next number that reads well: 1, 2, 4 or 8 before zeros. */
function roundTop(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 8, 10].find((each) => each * unit >= value) ?? 10) * unit;
}

function Bars({ sums, series, top }: { sums: number[][]; series: Series[]; top: number }): JSX.Element {
  const step = WIDTH / Math.max(1, sums.length);
  const gap = Math.min(2, step / 4);
  return (
    <>
      {sums.map((values, at) => {
        let foot = HEIGHT;
        return values.map((value, place) => {
          const height = (value / top) * HEIGHT;
          foot -= height;
          return value > 0 && <rect key={`${at}/${place}`} class={`tone-${series[place]?.tone ?? "accent"}`} x={at * step + gap / 2} y={foot} width={step - gap} height={height} />;
        });
      })}
    </>
  );
}

/** A dash for each value that is known, and a thin line that leads from one to the next. */
function Line({ series: { values, tone }, top }: { series: Series; top: number }): JSX.Element {
  const step = WIDTH / Math.max(1, values.length);
  const height = (value: number): string => (HEIGHT - (value / top) * (HEIGHT - 2) - 1).toFixed(1);
  const dashes = values.flatMap((value, at) => (value === null ? [] : [`${(at * step).toFixed(1)} ${height(value)}H${((at + 1) * step).toFixed(1)}`]));
  return (
    <g class={`line tone-${tone}`}>
      <path class="thin" d={dashes.length ? `M${dashes.join("L")}` : ""} />
      <path d={dashes.map((each) => `M${each}`).join("")} />
    </g>
  );
}
