// The keys of this tab: who has none yet sees nothing else.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../components/button";
import { Field } from "../components/field";
import { errorText } from "../components/notices";
import { ApiError, tryKey } from "../api/client";
import { session } from "../state/session";
import { KEY_NAMES, keys, setKeys, type KeyName, type Keys } from "../state/keys";
import { spoken } from "../words";

const WORDS = {
  en: {
    user: "Your key",
    userHint: "An administrator makes keys with POST /v1/api_keys; make run prints one.",
    restricted: "Key of a restricted analyst (optional)",
    restrictedHint: "For the view As two people: the same question, asked by somebody who may not read the text.",
    admin: "Key of an administrator (optional)",
    adminHint: "For what only administrators see, such as why a restricted search was refused.",
    kept: "Keys stay in this tab until you close it, and are sent to this server alone.",
    save: "Use these keys",
    forget: "Forget all keys",
    missing: "A key is needed here.",
    invalid: "This key is not valid on this server.",
  },
  zh: {
    user: "你的密钥",
    userHint: "管理员用 POST /v1/api_keys 创建密钥；make run 会打印一个。",
    restricted: "受限分析员的密钥（可选）",
    restrictedHint: "用于“两人对照”：由无权阅读原文的人提出同一个问题。",
    admin: "管理员的密钥（可选）",
    adminHint: "用于只有管理员能看到的内容，例如受限检索被拒绝的原因。",
    kept: "密钥只保存在此标签页中，关闭即失效，并且只发送给本服务器。",
    save: "使用这些密钥",
    forget: "忘记所有密钥",
    missing: "这里需要一个密钥。",
    invalid: "此密钥在本服务器上无效。",
  },
};

const HINTS = { user: "userHint", restricted: "restrictedHint", admin: "adminHint" } as const;

/** Try each key once; return what is wrong with it, by its name. */
async function faultsOf(given: Keys): Promise<Keys> {
  const faults: Keys = {};
  for (const name of KEY_NAMES) {
    const key = given[name];
    if (!key) continue;
    try {
      await tryKey(key);
    } catch (error) {
      faults[name] = error instanceof ApiError && error.status === 401 ? spoken(WORDS).invalid : errorText(error);
    }
  }
  return faults;
}

export function KeysForm({ onDone }: { onDone: () => void }): JSX.Element {
  const words = spoken(WORDS);
  const [given, setGiven] = useState<Keys>(keys.value);
  const [faults, setFaults] = useState<Keys>({});
  const [isTrying, setTrying] = useState(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (!given.user && !session.value) {
      setFaults({ user: words.missing });
      return;
    }
    setTrying(true);
    const found = await faultsOf(given);
    setTrying(false);
    setFaults(found);
    if (Object.keys(found).length) return;
    setKeys(given);
    onDone();
  }

  return (
    <form class="keys-form" onSubmit={(event) => void submit(event)} noValidate>
      {KEY_NAMES.map((name: KeyName) => (
        <Field key={name} label={words[name]} hint={words[HINTS[name]]} {...(faults[name] ? { error: faults[name] } : {})}>
          {(ids) => (
            <input
              {...ids}
              type="password"
              autocomplete="off"
              spellcheck={false}
              value={given[name] ?? ""}
              onInput={(event) => setGiven({ ...given, [name]: event.currentTarget.value.trim() })}
            />
          )}
        </Field>
      ))}
      <p class="hint">{words.kept}</p>
      <div class="actions">
        <Button type="submit" kind="primary" disabled={isTrying}>{words.save}</Button>
        {Object.keys(keys.value).length > 0 && (
          <Button kind="quiet" onClick={() => { setKeys({}); setGiven({}); onDone(); }}>{words.forget}</Button>
        )}
      </div>
    </form>
  );
}
