// The documents of a base: what is there, what is being uploaded, and the passages of each.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { all, call } from "../../api/client";
import { BASES, documentPath, isEmbedding, mayWrite, minutesLeft, readPassages, type Passage, type ReadableBase, type StoredDocument } from "../../api/knowledge";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { useLoaded } from "../../components/loaded";
import { MarkedPassage } from "../../components/marked_passage";
import { complain, Empty, Failure, Loading, Progress } from "../../components/notices";
import { placedName } from "../../components/place_text";
import { shownText } from "../../components/shown_text";
import { Table } from "../../components/table";
import { numberText, sizeText, spoken, timeText } from "../../words";
import { DropZone } from "./drop_zone";
import { UploadList } from "./upload_list";
import { uploads } from "./uploads";
import { KNOWLEDGE_WORDS } from "./words";

const SHOWN_AT_ONCE = 100;
const READ_AGAIN_MS = 1000;
const LONGEST_PAUSE_MS = 20_000;

export function DocumentsTab({ base, onChange }: { base: ReadableBase; onChange: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const [loaded, again] = useLoaded(() => all<StoredDocument>("user", `${BASES}/${base.id}/documents`, most + 1), [base.id, most]);
  const [opened, setOpened] = useState<StoredDocument | null>(null);
  const [leaving, setLeaving] = useState<StoredDocument | null>(null);
  const documents = loaded.state === "ready" ? loaded.value : [];
  useFresh(base, documents, () => { again(); onChange(); });
  return (
    <>
      {mayWrite(base) && <DropZone baseId={base.id} />}
      <UploadList baseId={base.id} documents={documents} />
      <Meaning base={base} />
      {loaded.state === "loading" && <Loading />}
      {loaded.state === "failed" && <Failure error={loaded.error} onRetry={again} />}
      {loaded.state === "ready" && documents.length === 0 && <Empty title={words.noDocuments}><p>{words.noDocumentsText}</p></Empty>}
      {documents.length > 0 && (
        <DocumentTable documents={documents.slice(0, most)} mayDelete={mayWrite(base)} onOpen={setOpened} onDelete={setLeaving} />
      )}
      {documents.length > most && <div class="actions"><Button onClick={() => setMost(most + SHOWN_AT_ONCE)}>{words.showMore}</Button></div>}
      {opened && <PassagesDialog baseId={base.id} document={opened} onClose={() => setOpened(null)} />}
      {leaving && <DeleteDialog baseId={base.id} document={leaving} onClose={() => setLeaving(null)} onDone={() => { again(); onChange(); }} />}
    </>
  );
}

/** Read again while files are stored, and while vectors are being made, more and more seldom where nothing moves. */
function useFresh(base: ReadableBase, documents: StoredDocument[], again: () => void): void {
  const stored = uploads.value.filter((each) => each.baseId === base.id && each.stage === "stored").length;
  const embedded = base.embedded_chunks;
  const isWaiting = isEmbedding(base);
  const [pause, setPause] = useState(2 * READ_AGAIN_MS);
  useEffect(() => setPause(2 * READ_AGAIN_MS), [embedded]);
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (stored === 0 || due.current !== undefined) return;
    due.current = setTimeout(() => {
      due.current = undefined;
      again();
    }, READ_AGAIN_MS);
  }, [stored]);
  useEffect(() => () => clearTimeout(due.current), []);
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setTimeout(() => {
      setPause(Math.min(2 * pause, LONGEST_PAUSE_MS));
      if (!document.hidden) again();
    }, pause);
    return () => clearTimeout(timer);
  }, [isWaiting, pause, documents]);
}

function Meaning({ base }: { base: ReadableBase }): JSX.Element | null {
  if (base.embedded_chunks === null || !base.chunks) return null;
  const words = spoken(KNOWLEDGE_WORDS);
  const text = words.embedded(numberText(base.embedded_chunks), numberText(base.chunks));
  const minutes = isEmbedding(base) ? minutesLeft(base) : null;
  return (
    <div class="meaning">
      <p class="hint">{minutes === null ? text : `${text} (${words.minutesLeft(minutes)})`}</p>
      {base.embedded_chunks < base.chunks && <Progress label={text} share={base.embedded_chunks / base.chunks} />}
    </div>
  );
}

interface DocumentTableProps {
  documents: StoredDocument[];
  mayDelete: boolean;
  onOpen: (document: StoredDocument) => void;
  onDelete: (document: StoredDocument) => void;
}

function DocumentTable({ documents, mayDelete, onOpen, onDelete }: DocumentTableProps): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const heads = words.heads;
  return (
    <Table<StoredDocument>
      caption={words.documents}
      rows={documents}
      keyOf={(each) => each.id}
      columns={[
        {
          head: heads.name,
          cell: (each) => <button type="button" class="link name" dir="auto" title={words.open(shownText(each.name))} onClick={() => onOpen(each)}>{shownText(each.name)}</button>,
        },
        { head: heads.passages, numeric: true, cell: (each) => numberText(each.chunks) },
        { head: heads.size, numeric: true, cell: (each) => sizeText(each.bytes) },
        { head: heads.format, cell: (each) => <span class="soft">{each.media_type.replace(/^.*[/.]/, "")}</span> },
        { head: heads.put, cell: (each) => <span class="soft">{timeText(each.created_at)}</span> },
        { head: heads.fingerprint, cell: (each) => <code class="soft" title={each.sha256}>{each.sha256.slice(0, 8)}</code> },
        ...(mayDelete
          ? [{ head: heads.acts, cell: (each: StoredDocument) => <Button kind="quiet" icon="bin" label={words.remove(shownText(each.name))} onClick={() => onDelete(each)} /> }]
          : []),
      ]}
    />
  );
}

function DeleteDialog({ baseId, document, onClose, onDone }: { baseId: string; document: StoredDocument; onClose: () => void; onDone: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  async function remove(): Promise<void> {
    try {
      await call("user", "DELETE", documentPath(baseId, document.name));
      onDone();
    } catch (error) {
      complain(error);
    }
    onClose();
  }
  return (
    <Dialog title={words.removeTitle} onClose={onClose}>
      <p dir="auto">{words.removeText(shownText(document.name))}</p>
      <div class="actions">
        <Button kind="danger" icon="bin" onClick={() => void remove()}>{words.removeIt}</Button>
        <Button kind="quiet" onClick={onClose}>{words.cancel}</Button>
      </div>
    </Dialog>
  );
}

function PassagesDialog({ baseId, document, onClose }: { baseId: string; document: StoredDocument; onClose: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [passages, setPassages] = useState<Passage[]>([]);
  const [after, setAfter] = useState("");
  const [hasMore, setHasMore] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  useEffect(() => {
    let isGone = false;
    readPassages(baseId, document.name, after).then((page) => {
      if (isGone) return;
      setPassages((before) => [...before, ...page.data]);
      setHasMore(page.has_more);
    }, (error: unknown) => { if (!isGone) setFailure(error); });
    return () => { isGone = true; };
  }, [after]);
  return (
    <Dialog title={shownText(document.name)} place="side" onClose={onClose}>
      {document.notes.map((note) => <p key={note} class="hint" dir="auto">{shownText(note)}</p>)}
      {failure !== null && <Failure error={failure} />}
      {passages.length === 0 && failure === null && <Loading />}
      <ol class="passage-list">
        {passages.map((each, place) => (
          <li key={each.id}>
            <h3>{placedName(words.passage(numberText(place + 1), numberText(each.tokens)), each)}</h3>
            {each.heading_path.length > 0 && <p class="hint" dir="auto">{shownText(each.heading_path.join(" › "))}</p>}
            <MarkedPassage passage={each.text} answer="" />
          </li>
        ))}
      </ol>
      {hasMore && <div class="actions"><Button onClick={() => setAfter(passages.at(-1)?.id ?? "")}>{words.showMore}</Button></div>}
    </Dialog>
  );
}
