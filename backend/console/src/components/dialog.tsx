import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { spoken } from "../words";
import { Button } from "./button";

const WORDS = { en: { close: "Close" }, zh: { close: "关闭" } };

interface DialogProps {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
  /** `side` opens at the right edge, over the page where that is narrow. */
  place?: "middle" | "side";
}

/** A modal dialog: the browser keeps the focus in it, closes it with Escape, and gives the focus back. */
export function Dialog({ title, children, onClose, place = "middle" }: DialogProps): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Before the next key or click, which would otherwise still go to the page behind.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog at-${place}`}
      aria-labelledby={titleId}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === ref.current) ref.current?.close();
      }}
    >
      <div class="dialog-inside">
        <header>
          <h2 id={titleId}>{title}</h2>
          <Button kind="quiet" icon="close" label={spoken(WORDS).close} onClick={() => ref.current?.close()} />
        </header>
        <div class="dialog-body" tabindex={0}>{children}</div>
      </div>
    </dialog>
  );
}
