// Language and colours: what the browser asks for, until the person chooses otherwise.
import { effect, signal } from "@preact/signals";
import { readStored, writeStored } from "./stored";

export type Language = "en" | "zh";
export type Theme = "auto" | "light" | "dark";

const LANGUAGE_KEY = "ballast.language";
const THEME_KEY = "ballast.theme";

const isLanguage = (found: unknown): found is Language => found === "en" || found === "zh";
const isTheme = (found: unknown): found is Theme => found === "auto" || found === "light" || found === "dark";

function preferred(): Language {
  const wanted = navigator.languages.find((each) => /^(en|zh)\b/i.test(each));
  return wanted?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const language = signal<Language>(readStored(localStorage, LANGUAGE_KEY, preferred(), isLanguage));
export const theme = signal<Theme>(readStored(localStorage, THEME_KEY, "auto", isTheme));

export function chooseLanguage(chosen: Language): void {
  language.value = chosen;
  writeStored(localStorage, LANGUAGE_KEY, chosen);
}

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  writeStored(localStorage, THEME_KEY, chosen);
}

/** Keep the document's own marks of language and colours as they are chosen. */
export function followPreferences(): void {
  effect(() => {
    document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
  });
  effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  });
}
