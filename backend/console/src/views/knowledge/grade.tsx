// What may leave a base for its restricted members: prose that passes the gate, or findings made of codes.
import type { JSX } from "preact";
import { GRADES, type Grade, type ReadableBase } from "../../api/knowledge";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { Pick } from "../../components/field";
import { spoken } from "../../words";
import { KNOWLEDGE_WORDS } from "./words";

/** Asked for when the first restricted member is added, with an example of each. */
export function AskForGrade({ onPick, onClose }: { onPick: (grade: Grade) => void; onClose: () => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  return (
    <Dialog title={words.gradeTitle} onClose={onClose}>
      <p>{words.gradeLead}</p>
      {GRADES.map((each) => (
        <section key={each} class="stack close">
          <p><strong>{words.grades[each]}</strong> {words.gradeHints[each]}</p>
          <p class="hint">{words.gradeExamples[each]}</p>
        </section>
      ))}
      <div class="actions">
        {GRADES.map((each) => <Button key={each} kind="primary" onClick={() => onPick(each)}>{words.chooseGrade(words.grades[each])}</Button>)}
      </div>
    </Dialog>
  );
}

export function GradeOfBase({ base, onPick }: { base: ReadableBase; onPick: (grade: Grade) => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  return (
    <div class="stack close">
      <Pick<Grade>
        label={words.grade}
        value={base.restricted_grade}
        options={GRADES.map((value) => ({ value, name: words.grades[value] }))}
        onPick={onPick}
        disabled={base.role !== "owner"}
      />
      <p class="hint">{words.gradeHints[base.restricted_grade]}{base.role !== "owner" && ` ${words.ownersOnly}`}</p>
      {base.grade_notice && <p class="withheld">{words.gradeNotice}</p>}
    </div>
  );
}
