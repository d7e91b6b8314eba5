// The words of the page in the languages it speaks. Each part of the page keeps its own words beside it.
import { language, type Language } from "./state/preferences";

/** Words in all languages: the Chinese ones must have the form of the English ones. */
export interface Words<Form> {
  en: Form;
  zh: Form;
}

/** Return the words of the language that is chosen now; a component that calls it is drawn anew when that changes. */
export function spoken<Form>(words: Words<Form>): Form {
  return words[language.value];
}

const LOCALES: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };

export function numberText(value: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(LOCALES[language.value], options).format(value);
}

export function timeText(unixSeconds: number, options: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" }): string {
  return new Intl.DateTimeFormat(LOCALES[language.value], options).format(new Date(unixSeconds * 1000));
}

export function sizeText(bytes: number): string {
  const unit = bytes < 1000 ? "byte" : bytes < 1e6 ? "kilobyte" : "megabyte";
  const value = bytes / { byte: 1, kilobyte: 1e3, megabyte: 1e6 }[unit];
  return numberText(value, { style: "unit", unit, unitDisplay: unit === "byte" ? "long" : "short", maximumFractionDigits: value < 10 && unit !== "byte" ? 1 : 0 });
}
