// How far each upload of a base is, and what is wrong with those that failed.
import type { JSX } from "preact";
import type { StoredDocument } from "../../api/knowledge";
import { Button } from "../../components/button";
import { Icon } from "../../components/icons";
import { Progress } from "../../components/notices";
import { shownText } from "../../components/shown_text";
import { numberText, sizeText, spoken } from "../../words";
import { clear, uploads, type Stage, type Upload } from "./uploads";
import { KNOWLEDGE_WORDS } from "./words";

const MOST_LINES = 400;
const ORDER: Record<Stage, number> = { failed: 0, reading: 1, sending: 2, waiting: 3, stored: 4 };

export function UploadList({ baseId, documents }: { baseId: string; documents: StoredDocument[] }): JSX.Element | null {
  const words = spoken(KNOWLEDGE_WORDS);
  const own = uploads.value.filter((each) => each.baseId === baseId);
  if (own.length === 0) return null;
  const failed = own.filter((each) => each.stage === "failed").length;
  const ended = own.filter((each) => each.stage === "stored").length + failed;
  const isRunning = ended < own.length;
  const lines = [...own].sort((a, b) => ORDER[a.stage] - ORDER[b.stage]).slice(0, MOST_LINES);
  const byId = new Map(documents.map((each) => [each.id, each]));
  return (
    <section class="uploads" aria-label={words.uploads}>
      <header>
        <p role="status">
          <strong>{words.uploadShare(numberText(ended), numberText(own.length))}</strong>
          {failed > 0 && <span class="wrong"> · {words.failedCount(numberText(failed))}</span>}
        </p>
        <Button kind="quiet" onClick={() => clear(baseId, isRunning)}>{isRunning ? words.stop : words.clear}</Button>
      </header>
      <Progress label={words.uploads} share={own.reduce((sum, each) => sum + shareOf(each), 0) / own.length} />
      {isRunning && <p class="hint">{words.goesOn}</p>}
      <ul class="upload-lines" tabindex={0} aria-label={words.uploads}>
        {lines.map((each) => <Line key={each.id} upload={each} document={byId.get(each.document?.id ?? "") ?? null} />)}
        {own.length > lines.length && <li class="hint">{words.more(numberText(own.length - lines.length))}</li>}
      </ul>
    </section>
  );
}

/** Half of the way is sending, the other half is reading and cutting, of which nobody knows more than its end. */
function shareOf(upload: Upload): number {
  return upload.stage === "stored" || upload.stage === "failed" ? 1 : upload.sent / 2;
}

function Line({ upload, document }: { upload: Upload; document: StoredDocument | null }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  return (
    <li data-stage={upload.stage}>
      <span class="stage-mark">{upload.stage === "stored" ? <Icon name="check" /> : upload.stage === "failed" ? <Icon name="close" /> : <span class="dot" />}</span>
      <span class="name" dir="auto">{shownText(upload.name)}</span>
      <span class="soft">{sizeText(upload.sizeBytes)}</span>
      <span class="stage">{stageText(upload, document)}</span>
      {upload.isDelayed && <span class="told hint">{words.delayed}</span>}
      {(document ?? upload.document)?.notes.map((note) => <span key={note} class="told hint">{shownText(note)}</span>)}
      {upload.fault && <Fault fault={upload.fault} />}
    </li>
  );
}

function stageText(upload: Upload, document: StoredDocument | null): string {
  const words = spoken(KNOWLEDGE_WORDS);
  const stored = document ?? upload.document;
  if (!stored) {
    const sent = upload.stage === "sending" && upload.sent > 0 ? ` ${numberText(upload.sent, { style: "percent" })}` : "";
    return words.stages[upload.stage] + sent;
  }
  const meant = stored.embedded_chunks ?? null;
  const cut = words.cut(numberText(stored.chunks));
  return meant === null ? cut : `${cut} · ${words.meant(numberText(meant), numberText(stored.chunks))}`;
}

function Fault({ fault: { status, message, param } }: { fault: NonNullable<Upload["fault"]> }): JSX.Element {
  const { mends } = spoken(KNOWLEDGE_WORDS);
  const byPart: Record<string, string> = { name: mends.name, "Content-Type": mends.type, body: mends.body };
  const mend = status === 413 ? mends.large : status === 403 ? mends.right : status === 400 ? byPart[param ?? ""] : mends.later;
  return (
    <span class="told">
      <span class="wrong">{shownText(param ? message.replace(`${param}: `, "") : message)}</span> {mend}
    </span>
  );
}
