import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface TabsProps<Name extends string> {
  label: string;
  tabs: { name: Name; title: string }[];
  chosen: Name;
  onChoose: (name: Name) => void;
  children: ComponentChildren;
}

/** Tabs as the ARIA practices have them: arrows go from tab to tab, Tab goes on into the panel. */
export function Tabs<Name extends string>({ label, tabs, chosen, onChoose, children }: TabsProps<Name>): JSX.Element {
  const id = useId();
  function step(event: KeyboardEvent): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    const place = tabs.findIndex((each) => each.name === chosen);
    const next = tabs[(place + by + tabs.length) % tabs.length];
    if (!next) return;
    event.preventDefault();
    onChoose(next.name);
    document.getElementById(`${id}-${next.name}`)?.focus();
  }
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} onKeyDown={step}>
        {tabs.map((each) => (
          <button
            key={each.name}
            type="button"
            role="tab"
            id={`${id}-${each.name}`}
            aria-selected={each.name === chosen}
            aria-controls={`${id}-panel`}
            tabindex={each.name === chosen ? 0 : -1}
            onClick={() => onChoose(each.name)}
          >
            {each.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`}>{children}</div>
    </div>
  );
}
