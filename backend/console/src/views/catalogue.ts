// The views of the page, in the order in which they are offered.
import type { ComponentType } from "preact";
import type { IconName } from "../components/icons";
import type { Words } from "../words";
import { HistoryList } from "./chat/history_list";
import { ChatView } from "./chat/view";
import { AuditView } from "./audit/view";
import { KnowledgeView } from "./knowledge/view";
import { OperationsView } from "./operations/view";
import { PeopleView } from "./people/view";
import { XrayView } from "./xray/view";

export interface View {
  /** Stands in the address: `#/chat`. */
  name: string;
  icon: IconName;
  title: Words<string>;
  component: ComponentType<{ parts: string[] }>;
  /** What the view shows at the side, below the list of views; `onChoose` closes the menu of a narrow page. */
  side?: ComponentType<{ onChoose: () => void }>;
}

export const VIEWS: readonly View[] = [
  { name: "chat", icon: "chat", title: { en: "Chat", zh: "对话" }, component: ChatView, side: HistoryList },
  { name: "people", icon: "people", title: { en: "As two people", zh: "两人对照" }, component: PeopleView },
  { name: "xray", icon: "xray", title: { en: "Prompt x-ray", zh: "提示词透视" }, component: XrayView },
  { name: "knowledge", icon: "book", title: { en: "Knowledge", zh: "知识库" }, component: KnowledgeView },
  { name: "audit", icon: "shield", title: { en: "Audit", zh: "审计" }, component: AuditView },
  { name: "operations", icon: "pulse", title: { en: "Operations", zh: "运维" }, component: OperationsView },
];
