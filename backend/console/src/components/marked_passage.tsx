// A passage with the words marked that an answer shares with it.
import type { JSX } from "preact";
import { shownText } from "./shown_text";

interface Word {
  start: number;
  end: number;
  key: string;
}

const WORD = /[\p{Script=Han}]|[\p{L}\p{N}]+(?:[.,][\p{N}]+)*/gu;
const LEAST_RUN = 3;

function wordsOf(text: string): Word[] {
  return [...text.matchAll(WORD)].map((found) => ({
    start: found.index,
    end: found.index + found[0].length,
    key: found[0].toLowerCase(),
  }));
}

/** Return which words of the passage stand in a run of some words that the answer has, too. */
function shared(passage: Word[], answer: Word[], leastRun: number): boolean[] {
  const runs = new Set(answer.map((_, at) => runAt(answer, at, leastRun)));
  const marks = passage.map(() => false);
  passage.forEach((_, at) => {
    const run = runAt(passage, at, leastRun);
    if (run && runs.has(run)) marks.fill(true, at, at + run.split(" ").length);
  });
  return marks;
}

/** Return the run that begins at a word, empty where too few words are left; a Chinese word has two characters or so. */
function runAt(words: Word[], at: number, leastRun: number): string {
  const least = /^\p{Script=Han}/u.test(words[at]?.key ?? "") ? 2 * leastRun : leastRun;
  const run = words.slice(at, at + least);
  return run.length === least ? run.map((word) => word.key).join(" ") : "";
}

/** How many words of a passage an answer shares. */
export function sharedCount(passage: string, answer: string): number {
  return shared(wordsOf(passage), wordsOf(answer), LEAST_RUN).filter(Boolean).length;
}

/** Put stretches of marked words together, with what stands between them. */
function stretches(words: Word[], marks: boolean[]): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = [];
  words.forEach((word, place) => {
    if (!marks[place]) return;
    const last = found.at(-1);
    if (last && marks[place - 1]) last.end = word.end;
    else found.push({ start: word.start, end: word.end });
  });
  return found;
}

const WRAP = /(?<=[^\n]{50})\n(?![\s\-*#|>]|\d+[.)]\s)/g;
const CHINESE_WRAP = /(?<=[\u3000-\u9fff\uff00-\uffef]{20})\n(?=[\u3000-\u9fff\uff00-\uffef])/g;

/** Take out line breaks that only keep a source's lines short. */
function unwrapped(text: string): string {
  return text.replace(CHINESE_WRAP, "").replace(WRAP, " ");
}

interface MarkedPassageProps {
  passage: string;
  answer: string;
  /** How many words must follow one another alike; one by one is for what was searched for. */
  leastRun?: number;
}

export function MarkedPassage({ passage, answer, leastRun = LEAST_RUN }: MarkedPassageProps): JSX.Element {
  const text = unwrapped(shownText(passage));
  const words = wordsOf(text);
  const parts: JSX.Element[] = [];
  let end = 0;
  for (const stretch of stretches(words, shared(words, wordsOf(answer), leastRun))) {
    parts.push(<>{text.slice(end, stretch.start)}</>, <mark>{text.slice(stretch.start, stretch.end)}</mark>);
    end = stretch.end;
  }
  return <p class="passage-text" dir="auto">{parts}{text.slice(end)}</p>;
}
