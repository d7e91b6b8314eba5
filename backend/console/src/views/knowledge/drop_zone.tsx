// Where files and folders are dropped, or chosen by keyboard.
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Button } from "../../components/button";
import { toast } from "../../state/toasts";
import { spoken } from "../../words";
import { fromDrop, fromInput, type Given } from "./dropped";
import { upload } from "./uploads";
import { KNOWLEDGE_WORDS } from "./words";

export function DropZone({ baseId }: { baseId: string }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [isOver, setOver] = useState(false);

  function take({ files, hidden }: Given): void {
    if (hidden) toast(words.hidden(hidden));
    if (files.length) void upload(baseId, files);
    else if (!hidden) toast(words.nothing, "error");
  }
  function drop(event: DragEvent): void {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer) void fromDrop(event.dataTransfer).then(take, () => toast(words.nothing, "error"));
  }
  return (
    <section
      class={`drop-zone${isOver ? " over" : ""}`}
      aria-label={words.drop}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <p class="drop-title">{words.drop}</p>
      <p class="hint">{words.dropHint}</p>
      <div class="actions">
        <Chooser label={words.chooseFiles} onChoose={take} />
        <Chooser label={words.chooseFolder} isFolder onChoose={take} />
      </div>
    </section>
  );
}

function Chooser({ label, isFolder, onChoose }: { label: string; isFolder?: boolean; onChoose: (given: Given) => void }): JSX.Element {
  const ref = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={isFolder ? "book" : "plus"} onClick={() => ref.current?.click()}>{label}</Button>
      <input
        ref={ref}
        type="file"
        hidden
        multiple
        aria-label={label}
        {...(isFolder ? { webkitdirectory: true } : {})}
        onChange={(event) => {
          const given = fromInput(event.currentTarget);
          event.currentTarget.value = "";
          onChoose(given);
        }}
      />
    </>
  );
}
