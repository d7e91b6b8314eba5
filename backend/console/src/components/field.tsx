import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  hint?: string;
  error?: string;
  children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren;
}

/** A labelled input with its hint and what is wrong with it. */
export function Field({ label, hint, error, children }: FieldProps): JSX.Element {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, ...(described ? { "aria-describedby": described } : {}), ...(error ? { "aria-invalid": true } : {}) })}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {error && <p class="wrong" id={`${id}-error`} role="alert">{error}</p>}
    </div>
  );
}

interface PickProps<Value extends string> {
  label: string;
  value: Value;
  options: { value: Value; name: string }[];
  onPick: (value: Value) => void;
  /** Hides the label from eyes, not from screen readers. */
  quiet?: boolean;
  disabled?: boolean;
}

export function Pick<Value extends string>({ label, value, options, onPick, quiet, disabled }: PickProps<Value>): JSX.Element {
  const id = useId();
  return (
    <span class="pick">
      <label for={id} class={quiet ? "unseen" : ""}>{label}</label>
      <select id={id} value={value} disabled={disabled ?? false} onChange={(event) => onPick(event.currentTarget.value as Value)}>
        {options.map((each) => (
          <option key={each.value} value={each.value}>{each.name}</option>
        ))}
      </select>
    </span>
  );
}
