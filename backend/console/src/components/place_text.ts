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
  },
  zh: {
    page: (first: string, last: string) => (first === last ? `第 ${first} 页` : `第 ${first}–${last} 页`),
    slide: (number: string) => `第 ${number} 张幻灯片`,
    rows: (first: string, last: string) => (first === last ? `第 ${first} 行` : `第 ${first}–${last} 行`),
  },
};

/** Return the name of a document with the place of a passage in it: `contract.pdf, p. 7`. */
export function placedName(name: string, place: Place | null | undefined): string {
  const words = spoken(WORDS);
  const { page, last_page, slide, sheet, rows } = place ?? {};
  return shownText([
    name,
    page && words.page(numberText(page), numberText(last_page ?? page)),
    slide && words.slide(numberText(slide)),
    sheet,
    rows && words.rows(numberText(rows[0]), numberText(rows[1])),
  ].filter(Boolean).join(", "));
}
