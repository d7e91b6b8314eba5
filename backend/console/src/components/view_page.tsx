// The frame of a view: its name, what it is for, and what it shows.
import type { ComponentChildren, JSX } from "preact";

interface Shown {
  name: string;
  words: { title: string; promise?: string; lead: string };
  children: ComponentChildren;
}

export function ViewPage({ name, words, children }: Shown): JSX.Element {
  return (
    <div class={`page ${name}`}>
      <header>
        <h1>{words.title}</h1>
        {words.promise && <p class="promise">{words.promise}</p>}
        <p>{words.lead}</p>
      </header>
      {children}
    </div>
  );
}
