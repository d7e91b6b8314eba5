// Who may do what with a base.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { all, call } from "../../api/client";
import { BASES, memberName, memberPath, type Grade, type Member, type ReadableBase } from "../../api/knowledge";
import type { Role } from "../../api/types";
import { Button } from "../../components/button";
import { Field, Pick } from "../../components/field";
import { useLoaded } from "../../components/loaded";
import { complain, Failure, Loading } from "../../components/notices";
import { shownText } from "../../components/shown_text";
import { Table } from "../../components/table";
import { spoken } from "../../words";
import { AskForGrade } from "./grade";
import { KNOWLEDGE_WORDS } from "./words";

const ROLES: readonly Role[] = ["reader", "restricted_analyst", "editor", "owner"];

export function MembersTab({ base }: { base: ReadableBase }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [loaded, again] = useLoaded(() => all<Member>("user", `${BASES}/${base.id}/members`), [base.id]);
  const [asking, setAsking] = useState<string | null>(null);
  const isOwner = base.role === "owner";

  async function change(member: string, role: Role | null, grade?: Grade): Promise<void> {
    const isFirst = loaded.state === "ready" && !loaded.value.some((each) => each.role === "restricted_analyst");
    if (role === "restricted_analyst" && isFirst && !grade) return setAsking(member);
    try {
      const path = await memberPath(base.id, member, loaded.state === "ready" ? loaded.value : []);
      if (grade) await call("user", "PATCH", `${BASES}/${base.id}`, { body: { restricted_grade: grade } });
      if (role) await call("user", "PUT", path, { body: { role } });
      else await call("user", "DELETE", path);
    } catch (error) {
      complain(error);
    }
    again();
  }
  if (loaded.state === "loading") return <Loading />;
  if (loaded.state === "failed") return <Failure error={loaded.error} onRetry={again} />;
  return (
    <>
      <p class="hint">{isOwner ? words.membersLead : words.onlyOwners}</p>
      {isOwner && <AddMember onAdd={change} />}
      <MemberTable members={loaded.value} isOwner={isOwner} onChange={change} />
      {asking !== null && <AskForGrade onClose={() => setAsking(null)} onPick={(grade) => { setAsking(null); void change(asking, "restricted_analyst", grade); }} />}
    </>
  );
}

interface MemberTableProps {
  members: Member[];
  isOwner: boolean;
  onChange: (member: string, role: Role | null) => Promise<void>;
}

function MemberTable({ members, isOwner, onChange }: MemberTableProps): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const options = ROLES.map((value) => ({ value, name: words.roles[value] }));
  return (
    <Table<Member>
      caption={words.tabs.members}
      rows={members}
      keyOf={(each) => each.group_id ?? memberName(each)}
      columns={[
        { head: words.member, cell: (each) => <span class="name" dir="auto">{shownText(memberName(each))}</span> },
        {
          head: words.role,
          cell: (each) => isOwner
            ? <Pick<Role> quiet label={words.roleOf(shownText(memberName(each)))} value={each.role} options={options} onPick={(role) => void onChange(memberName(each), role)} />
            : words.roles[each.role],
        },
        { head: words.may, cell: (each) => <span class="hint">{words.roleHints[each.role]}</span> },
        ...(isOwner
          ? [{ head: words.heads.acts, cell: (each: Member) => <Button kind="quiet" icon="bin" label={words.removeMember(shownText(memberName(each)))} onClick={() => void onChange(memberName(each), null)} /> }]
          : []),
      ]}
    />
  );
}

function AddMember({ onAdd }: { onAdd: (member: string, role: Role) => Promise<void> }): JSX.Element {
  const words = spoken(KNOWLEDGE_WORDS);
  const [user, setUser] = useState("");
  const [role, setRole] = useState<Role>("reader");
  return (
    <form
      class="search-form"
      onSubmit={(event) => {
        event.preventDefault();
        void onAdd(user.trim(), role).then(() => setUser(""));
      }}
    >
      <Field label={words.newMember} hint={words.roleHints[role]}>
        {(ids) => <input {...ids} type="text" autocomplete="off" spellcheck={false} value={user} onInput={(event) => setUser(event.currentTarget.value)} />}
      </Field>
      <div class="actions">
        <Pick<Role> label={words.role} value={role} onPick={setRole} options={ROLES.map((value) => ({ value, name: words.roles[value] }))} />
        <Button type="submit" kind="primary" disabled={!user.trim()}>{words.add}</Button>
      </div>
    </form>
  );
}
