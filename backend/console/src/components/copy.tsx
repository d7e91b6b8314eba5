import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { toast } from "../state/toasts";
import { spoken } from "../words";
import { Button } from "./button";

const WORDS = {
  en: { copy: "Copy", copied: "Copied", failed: "The browser does not allow copying here: select the text instead." },
  zh: { copy: "复制", copied: "已复制", failed: "浏览器不允许在此复制，请选中文字后复制。" },
};

export function CopyButton({ text, label }: { text: string; label?: string }): JSX.Element {
  const words = spoken(WORDS);
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch {
      toast(words.failed, "error");
    }
  }
  const shown = isCopied ? words.copied : (label ?? words.copy);
  return <Button kind="quiet" icon={isCopied ? "check" : "copy"} label={shown} onClick={() => void copy()} />;
}

/** A piece of code that can be copied; it is read in its own direction, whatever characters it holds. */
export function CodeBlock({ code, name }: { code: string; name: string }): JSX.Element {
  return (
    <div class="code-block">
      <div class="code-head"><span>{name}</span><CopyButton text={code} /></div>
      <pre tabindex={0} dir="ltr" aria-label={name}><code>{code}</code></pre>
    </div>
  );
}
