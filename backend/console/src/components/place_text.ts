// Where in its file a passage stands, as words behind the name of its document.
import { shownText } from "./shown_text";
import { numberText, spoken } from "../words";

export interface Place {
  page?: number;
  last_page?: number;
  slide?: number;
  sheet?: string;
  rows?: [number, number];
}

const WORDS = {
  en: {
    page: (first: string, last: string) => (first === last ? `p. ${first}` : `pp. ${first}–${last}`),
    slide: (number: string) => `slide ${number}`,
    rows: (first: string, last: string) => (first === last ? `row ${first}` : `rows ${first}–${last}`),
    others: (names: string) => ` (also ${names})`,
  },
  zh: {
    page: (first: string, last: string) => (first === last ? `第 ${first} 页` : `第 ${first}–${last} 页`),
    slide: (number: string) => `第 ${number} 张幻灯片`,
    rows: (first: string, last: string) => (first === last ? `第 ${first} 行` : `第 ${first}–${last} 行`),
    others: (names: string) => `（另见 ${names}）`,
  },
};

/** What an answer of the API says of where a passage stands. */
export interface Whereabouts {
  place?: Place | null;
  /** Names of other documents with the same bytes. */
  other_names?: string[];
}

/** Return the names of a document with the place of a passage in it: `contract.pdf, p. 7 (also copy.pdf)`. */
export function placedName(name: string, { place, other_names = [] }: Whereabouts): string {
  const words = spoken(WORDS);
  const { page, last_page, slide, sheet, rows } = place ?? {};
  const placed = [
    name,
    page && words.page(numberText(page), numberText(last_page ?? page)),
    slide && words.slide(numberText(slide)),
    sheet,
    rows && words.rows(numberText(rows[0]), numberText(rows[1])),
  ].filter(Boolean).join(", ");
  return shownText(other_names.length > 0 ? placed + words.others(other_names.join(", ")) : placed);
}
