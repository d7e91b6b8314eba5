import { useCallback, useEffect, useState } from "preact/hooks";

export type Loaded<Value> =
  | { state: "loading" }
  | { state: "failed"; error: unknown }
  | { state: "ready"; value: Value };

/** Load something when `keys` change, and again on request; what comes too late for its keys is dropped. */
export function useLoaded<Value>(load: (signal: AbortSignal) => Promise<Value>, keys: readonly unknown[]): [Loaded<Value>, () => void] {
  const [loaded, setLoaded] = useState<Loaded<Value>>({ state: "loading" });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    load(leaving.signal).then(
      (value) => { if (!leaving.signal.aborted) setLoaded({ state: "ready", value }); },
      (error: unknown) => { if (!leaving.signal.aborted) setLoaded({ state: "failed", error }); },
    );
    return () => leaving.abort();
  }, [...keys, round]);
  return [loaded, useCallback(() => setRound((before) => before + 1), [])];
}
