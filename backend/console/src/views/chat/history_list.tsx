// The conversations at the side of the page.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Conversation } from "../../api/types";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Icon } from "../../components/icons";
import { complain } from "../../components/notices";
import { shownText } from "../../components/shown_text";
import { addressOf, go } from "../../state/router";
import { spoken } from "../../words";
import { conversations, deleteConversation, hasMore, loadHistory, titleOf } from "./history";
import { conversationId } from "./session";
import { CHAT_WORDS } from "./words";

export function HistoryList({ onChoose }: { onChoose: () => void }): JSX.Element {
  const words = spoken(CHAT_WORDS);
  const [removed, setRemoved] = useState<Conversation | null>(null);
  const load = (more: boolean): void => void loadHistory(more).catch(complain);
  useEffect(() => load(false), []);
  return (
    <>
      <a class="button fresh" href={addressOf("chat")} onClick={onChoose}><Icon name="plus" /><span>{words.fresh}</span></a>
      <nav class="history" aria-label={words.history}>
        <ul>
          {conversations.value.map((each) => (
            <li key={each.id}>
              <a
                href={addressOf("chat", each.id)}
                dir="auto"
                onClick={onChoose}
                {...(each.id === conversationId.value ? { "aria-current": "page" as const } : {})}
              >
                {shownText(titleOf(each)) || words.untitled}
              </a>
              <Button kind="quiet" icon="bin" label={words.remove(shownText(titleOf(each)) || words.untitled)} onClick={() => setRemoved(each)} />
            </li>
          ))}
        </ul>
        {hasMore.value && <Button kind="quiet" onClick={() => load(true)}>{words.more}</Button>}
      </nav>
      {removed && <RemoveDialog conversation={removed} onClose={() => setRemoved(null)} />}
    </>
  );
}

function RemoveDialog({ conversation, onClose }: { conversation: Conversation; onClose: () => void }): JSX.Element {
  const words = spoken(CHAT_WORDS);
  async function remove(): Promise<void> {
    try {
      await deleteConversation(conversation.id);
      if (conversation.id === conversationId.value) go("chat");
    } catch (error) {
      complain(error);
    }
    onClose();
  }
  return (
    <Dialog title={words.removeTitle} onClose={onClose}>
      <p>{words.removeText}</p>
      <div class="actions">
        <Button kind="danger" onClick={() => void remove()}>{words.removeYes}</Button>
        <Button onClick={onClose}>{words.cancel}</Button>
      </div>
    </Dialog>
  );
}
