// The request of a turn as a command and as a program.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Turn } from "../../api/turn";
import { CodeBlock } from "../../components/copy";
import { Dialog } from "../../components/dialog";
import { Tabs } from "../../components/tabs";
import { spoken } from "../../words";
import { requestOf } from "./session";
import { CHAT_WORDS } from "./words";

type Language = "curl" | "python";

export function curlCode(request: Record<string, unknown>, origin: string): string {
  const body = JSON.stringify(request, null, 2).replaceAll("'", String.raw`'\''`);
  return [
    `curl -N ${origin}/v1/responses \\`,
    `  -H "Authorization: Bearer $BALLAST_KEY" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${body}'`,
  ].join("\n");
}

export function pythonCode(request: Record<string, unknown>, origin: string): string {
  const fields = Object.entries(request).map(([name, value]) => `    ${name}=${pythonText(value)},`);
  return [
    "import os",
    "",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${origin}/v1", api_key=os.environ["BALLAST_KEY"])`,
    "stream = client.responses.create(",
    ...fields,
    ")",
    "for event in stream:",
    '    if event.type == "response.output_text.delta":',
    '        print(event.delta, end="", flush=True)',
  ].join("\n");
}

/** Write a value as Python does; a text is JSON's, which is a text of Python, too. */
function pythonText(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonText(each)}`).join(", ")}}`;
  return JSON.stringify(value);
}

export function CodeDialog({ turn, onClose }: { turn: Turn; onClose: () => void }): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const [chosen, choose] = useState<Language>("curl");
  const request = requestOf({ ...turn, conversationId: "" });
  const code = chosen === "curl" ? curlCode(request, location.origin) : pythonCode(request, location.origin);
  return (
    <Dialog title={words.codeTitle} onClose={onClose}>
      <p class="hint">{words.codeLead}</p>
      <Tabs<Language> label={words.code} tabs={[{ name: "curl", title: "curl" }, { name: "python", title: "Python (openai)" }]} chosen={chosen} onChoose={choose}>
        <CodeBlock code={code} name={chosen === "curl" ? "curl" : "Python"} />
      </Tabs>
    </Dialog>
  );
}
