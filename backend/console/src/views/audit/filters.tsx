// Which records are shown.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AuditQuery } from "../../api/audit";
import { Button } from "../../components/button";
import { Field, Pick } from "../../components/field";
import { shownText } from "../../components/shown_text";
import { REASON_CODES, reasonText } from "../../reasons";
import { spoken } from "../../words";
import { AUDIT_WORDS } from "./words";

export interface Chosen extends AuditQuery {
  decision: "" | "answer" | "refuse";
  period: "day" | "week" | "month" | "all";
}

interface FiltersProps {
  chosen: Chosen;
  names: Map<string, string>;
  onChoose: (chosen: Chosen) => void;
  onAgain: () => void;
}

const PERIODS = ["day", "week", "month", "all"] as const;

export function Filters({ chosen, names, onChoose, onAgain }: FiltersProps): JSX.Element {
  const words = spoken(AUDIT_WORDS);
  const [user, setUser] = useState(chosen.user_id);
  const any = { value: "", name: words.any };
  return (
    <form
      class="audit-filters"
      onSubmit={(event) => {
        event.preventDefault();
        if (user.trim() === chosen.user_id) onAgain();
        else onChoose({ ...chosen, user_id: user.trim() });
      }}
    >
      <Field label={words.user}>
        {(ids) => <input {...ids} type="text" autocomplete="off" spellcheck={false} value={user} onInput={(event) => setUser(event.currentTarget.value)} />}
      </Field>
      <Pick label={words.period} value={chosen.period} onPick={(period) => onChoose({ ...chosen, period })} options={PERIODS.map((value) => ({ value, name: words.periods[value] }))} />
      <Pick<Chosen["decision"]>
        label={words.decision}
        value={chosen.decision}
        onPick={(decision) => onChoose({ ...chosen, decision })}
        options={[{ value: "", name: words.any }, { value: "refuse", name: words.refused }, { value: "answer", name: words.answered }]}
      />
      <Pick label={words.reason} value={chosen.reason} onPick={(reason) => onChoose({ ...chosen, reason })} options={[any, ...REASON_CODES.map((value) => ({ value, name: reasonText(value) }))]} />
      <Pick
        label={words.base}
        value={chosen.knowledge_base_id}
        onPick={(id) => onChoose({ ...chosen, knowledge_base_id: id })}
        options={[any, ...[...names].map(([value, name]) => ({ value, name: shownText(name) }))]}
      />
      <Button type="submit" icon="again">{words.apply}</Button>
    </form>
  );
}
