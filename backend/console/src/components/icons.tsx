// Line icons of 20 by 20, drawn in the colour of the text. They only accompany words or labels.
import type { JSX } from "preact";

const PATHS = {
  chat: "M4 5.5h12v8H9l-3.5 3v-3H4z",
  people: "M7 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-4 7c0-3 1.8-4.5 4-4.5s4 1.5 4 4.5m2.5-7.2a2.2 2.2 0 1 0-.6-4.3m1.6 7c1.7.3 2.5 1.9 2.5 4.5",
  xray: "M3.5 5h13M3.5 8.5h9M3.5 12h11M3.5 15.5h6",
  book: "M4 4.5h5a1.5 1.5 0 0 1 1 .5 1.5 1.5 0 0 1 1-.5h5v11h-5a1.5 1.5 0 0 0-1 .5 1.5 1.5 0 0 0-1-.5H4zm6 .5v11",
  shield: "M10 3.5l5.5 2v4c0 3.4-2.2 5.8-5.5 7-3.3-1.2-5.5-3.6-5.5-7v-4z",
  pulse: "M3 10.5h3.2l2-5 3.2 9.5 2-4.5H17",
  plus: "M10 4.5v11M4.5 10h11",
  stop: "M6 6h8v8H6z",
  send: "M10 15.5v-11m0 0L5.5 9M10 4.5 14.5 9",
  again: "M15.5 8.5A6 6 0 1 0 16 11m0-6.5v4h-4",
  pen: "M4.5 15.5l.6-3L12.6 5l2.4 2.4-7.5 7.5z",
  copy: "M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3",
  close: "M5.5 5.5l9 9m0-9l-9 9",
  menu: "M3.5 6h13M3.5 10h13M3.5 14h13",
  key: "M12.5 11a3.5 3.5 0 1 0-3.3-2.3L4 14v2.5h2.5V15H8v-1.5h1.5l1.3-1.3c.5.5 1 .8 1.7.8Z",
  code: "M7.5 6l-4 4 4 4m5-8l4 4-4 4",
  bin: "M5 6.5h10M8.5 6V4.5h3V6m-5.5.5l.6 9h6.8l.6-9",
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  sun: "M10 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm0-9.5V5m0 10v1.5M3.5 10H5m10 0h1.5M5.4 5.4l1.1 1.1m7 7 1.1 1.1m0-9.2-1.1 1.1m-7 7-1.1 1.1",
  down: "M5.5 8l4.5 4.5L14.5 8",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
