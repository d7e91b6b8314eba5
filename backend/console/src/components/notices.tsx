// What stands where there is nothing yet, while something comes, and where something failed.
import type { ComponentChildren, JSX } from "preact";
import { ApiError } from "../api/client";
import { dismiss, toast, toasts } from "../state/toasts";
import { spoken } from "../words";
import { Button } from "./button";

const WORDS = {
  en: {
    away: "The server cannot be reached. Is it running?",
    key: "This key is not valid here. Give another one under Keys.",
    again: "Try again",
    loading: "Loading…",
    dismiss: "Dismiss",
    notes: "Notes",
  },
  zh: {
    away: "无法连接服务器。它在运行吗？",
    key: "此密钥在这里无效。请在“密钥”中换一个。",
    again: "重试",
    loading: "加载中…",
    dismiss: "关闭提示",
    notes: "提示",
  },
};

/** Say in the person's language what an error means for them; the server's own words where these are best. */
export function errorText(error: unknown): string {
  const words = spoken(WORDS);
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.status === 0) return words.away;
  if (error.status === 401) return words.key;
  return error.message;
}

/** Say at the edge of the page what has failed outside of any form. */
export function complain(error: unknown): void {
  toast(errorText(error), error instanceof ApiError && error.status === 0 ? "away" : "error");
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }): JSX.Element {
  return (
    <div class="failure" role="alert">
      <p>{errorText(error)}</p>
      {onRetry && <Button onClick={onRetry} icon="again">{spoken(WORDS).again}</Button>}
    </div>
  );
}

export function Loading(): JSX.Element {
  return <p class="loading" role="status">{spoken(WORDS).loading}</p>;
}

interface ProgressProps {
  label: string;
  /** Between 0 and 1; null while nobody knows. */
  share: number | null;
}

export function Progress({ label, share }: ProgressProps): JSX.Element {
  return <progress class="progress" aria-label={label} {...(share === null ? {} : { value: share, max: 1 })} />;
}

export function Toasts(): JSX.Element {
  const words = spoken(WORDS);
  return (
    <section class="toasts" aria-label={words.notes} aria-live="polite">
      {toasts.value.map((each) => (
        <div key={each.id} class={`toast${each.kind === "note" ? "" : " error"}`}>
          <p>{each.text}</p>
          <Button kind="quiet" icon="close" label={words.dismiss} onClick={() => dismiss(each.id)} />
        </div>
      ))}
    </section>
  );
}
