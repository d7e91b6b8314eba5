// One question asked as two people, and what the audit says of the restricted one.
import { readAudit, type AuditRecord } from "../../api/audit";
import { send } from "../../api/client";
import { follow } from "../../api/events";
import { after, newTurn, type Turn } from "../../api/turn";
import { errorText } from "../../components/notices";
import type { KeyName } from "../../state/keys";

export interface Ask {
  text: string;
  model: string;
  baseId: string;
}

const DRAWN_EVERY_MS = 33;

/** Ask as one person; `onTurn` is told how the turn stands, some times a second and at its end. */
export async function askAs(as: KeyName, asked: Ask, signal: AbortSignal, onTurn: (turn: Turn) => void): Promise<Turn> {
  const body = {
    model: asked.model,
    input: asked.text,
    tools: [{ type: "file_search", vector_store_ids: [asked.baseId] }],
    include: ["file_search_call.results"],
    stream: true,
  };
  let turn = newTurn(asked.text, { model: asked.model, baseIds: [asked.baseId] });
  let drawnAt = 0;
  try {
    const begin = (): Promise<Response> => send(as, "POST", "/v1/responses", { body, signal });
    for await (const event of follow({ as, signal, begin })) {
      turn = after(turn, event);
      if (performance.now() - drawnAt < DRAWN_EVERY_MS) continue;
      drawnAt = performance.now();
      onTurn(turn);
    }
  } catch (error) {
    turn = { ...turn, status: "failed", error: errorText(error) };
  }
  if (!signal.aborted) onTurn(turn);
  return turn;
}

/** Return what the audit says of the searches of a turn, the first one first. */
export async function auditOf(turn: Turn, baseId: string): Promise<AuditRecord[]> {
  const { records } = await readAudit({ knowledge_base_id: baseId }, 100);
  return records.filter((each) => each.turn_id === turn.id).reverse();
}
