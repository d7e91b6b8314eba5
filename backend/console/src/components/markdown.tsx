// Markdown as elements of the page. Only what is named here is drawn; HTML is text, images are not loaded.
import MarkdownIt from "markdown-it";
import type Token from "markdown-it/lib/token.mjs";
import { h, type ComponentChildren, type JSX, type VNode } from "preact";
import { useMemo } from "preact/hooks";
import { linkAddress, shownText } from "./shown_text";

const parser = new MarkdownIt({ html: false, linkify: false, breaks: false, typographer: false });
const NO_LINK = { reference: false };
const TAGS: Record<string, string> = {
  paragraph: "p", blockquote: "blockquote", bullet_list: "ul", ordered_list: "ol", list_item: "li",
  em: "em", strong: "strong", s: "s", table: "table", thead: "thead", tbody: "tbody", tr: "tr", th: "th", td: "td",
};

export interface Citation {
  /** Where its `[n]` stands in the text, in characters of Unicode. */
  index: number;
  chip: VNode;
}

interface MarkdownProps {
  text: string;
  citations?: Citation[];
}

export function Markdown({ text, citations = [] }: MarkdownProps): JSX.Element {
  const tokens = useMemo(() => parser.parse(withMarks(text, citations), NO_LINK), [text, citations.length]);
  const chips = (place: number): VNode | null => citations[place]?.chip ?? null;
  return <div class="markdown" dir="auto">{drawn(tokens, chips)}</div>;
}

/** Return the number of the `[n]` that stands in a text behind so many characters. */
export function numberAt(text: string, index: number): string {
  return /^\[(\d+)\]/.exec([...text].slice(index, index + 8).join(""))?.[1] ?? "";
}

/** Put a mark of ours in the place of each `[n]` that is a citation; nothing else can hold one. */
function withMarks(text: string, citations: Citation[]): string {
  const characters = [...text];
  const placed = citations.map((each, place) => ({ place, index: each.index })).sort((a, b) => a.index - b.index);
  let marked = "";
  let end = 0;
  for (const { place, index } of placed) {
    if (index < end) continue;
    marked += shownText(characters.slice(end, index).join(""));
    const number = numberAt(text, index);
    marked += `\ue000${place}\ue001`;
    end = number ? index + number.length + 2 : index;
  }
  return marked + shownText(characters.slice(end).join(""));
}

type Chips = (place: number) => VNode | null;

function drawn(tokens: Token[], chips: Chips): ComponentChildren[] {
  const open: { token: Token | null; children: ComponentChildren[] }[] = [{ token: null, children: [] }];
  for (const token of tokens) {
    const top = open[open.length - 1];
    if (!top) break;
    if (token.nesting === 1) open.push({ token, children: [] });
    else if (token.nesting === -1) {
      open.pop();
      const opening = top.token;
      if (opening) open[open.length - 1]?.children.push(element(opening, top.children));
    } else top.children.push(leaf(token, chips));
  }
  return open[0]?.children ?? [];
}

function element(token: Token, children: ComponentChildren[]): ComponentChildren {
  const kind = token.type.replace(/_open$/, "");
  if (kind === "link") {
    const address = linkAddress(token.attrGet("href") ?? "");
    return address ? <a href={address} rel="noopener noreferrer" target="_blank">{children}</a> : children;
  }
  // Headings of an answer stand below those of the page.
  if (kind === "heading") return h(`h${Math.min(6, Number(token.tag.slice(1)) + 2)}`, {}, children);
  if (kind === "paragraph" && token.hidden) return children;
  if (kind === "table") return <div class="table-frame" tabindex={0} role="group"><table>{children}</table></div>;
  if (kind === "ordered_list") return <ol start={Number(token.attrGet("start") ?? 1)}>{children}</ol>;
  const tag = TAGS[kind];
  return tag ? h(tag, {}, children) : children;
}

function leaf(token: Token, chips: Chips): ComponentChildren {
  switch (token.type) {
    case "inline":
      return drawn(token.children ?? [], chips);
    case "text":
      return withChips(token.content, chips);
    case "softbreak":
      return "\n";
    case "hardbreak":
      return <br />;
    case "hr":
      return <hr />;
    case "code_inline":
      return <code dir="ltr">{withChips(token.content, chips)}</code>;
    case "fence":
    case "code_block":
      return <pre dir="ltr" tabindex={0}><code>{token.content}</code></pre>;
    case "image":
      return <span class="image-left-out">🖼 {token.content}</span>;
    default:
      return withChips(token.content, chips);
  }
}

function withChips(text: string, chips: Chips): ComponentChildren {
  if (!text.includes("\ue000")) return text;
  return text.split(/(\ue000\d+\ue001)/).map((part) => {
    const place = /^\ue000(\d+)\ue001$/.exec(part)?.[1];
    return place === undefined ? part : chips(Number(place));
  });
}
