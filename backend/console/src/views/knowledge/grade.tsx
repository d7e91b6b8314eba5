// What may leave a base for its restricted members: prose that passes the gate, or findings made of codes.
import type { JSX } from "preact";
import { CONTENTS, GRADES, type Content, type Description, type Grade, type ReadableBase } from "../../api/knowledge";
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

const SUPPORTS = [3, 4, 5, 8, 12, 20];

export function GradeOfBase({ base, onPick }: { base: ReadableBase; onPick: (changes: Partial<Description>) => void }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const notOwned = base.role !== "owner";
  const supports = [...new Set([...SUPPORTS, base.support])].sort((one, other) => one - other);
  return (
    <div class="stack close">
      <Pick<Grade>
        label={words.grade}
        value={base.restricted_grade}
        options={GRADES.map((value) => ({ value, name: words.grades[value] }))}
        onPick={(restricted_grade) => onPick({ restricted_grade })}
        disabled={notOwned}
      />
      <p class="hint">{words.gradeHints[base.restricted_grade]}{notOwned && ` ${words.ownersOnly}`}</p>
      {base.grade_notice && <p class="withheld">{words.gradeNotice}</p>}
      <Pick<Content>
        label={words.content}
        value={base.content}
        options={CONTENTS.map((value) => ({ value, name: words.contents[value] }))}
        onPick={(content) => onPick({ content })}
        disabled={notOwned}
      />
      <p class="hint">{words.contentHint}</p>
      <Pick<string>
        label={words.support}
        value={String(base.support)}
        options={supports.map((value) => ({ value: String(value), name: String(value) }))}
        onPick={(support) => onPick({ support: Number(support) })}
        disabled={notOwned}
      />
      <p class="hint">{base.support_notice ? words.supportNotice : words.supportHint}</p>
    </div>
  );
}
