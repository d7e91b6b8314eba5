import type { JSX } from "preact";
export function ChatView(_: { parts: string[] }): JSX.Element {
  return <div class="page"><h1>Chat</h1></div>;
}
