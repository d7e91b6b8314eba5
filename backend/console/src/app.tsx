// The frame of the page: the views to choose from, what is set for all of them, and the chosen view.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./components/button";
import { Dialog } from "./components/dialog";
import { Icon } from "./components/icons";
import { Pick } from "./components/field";
import { Toasts } from "./components/notices";
import { keys } from "./state/keys";
import { chooseLanguage, chooseTheme, language, theme, type Language, type Theme } from "./state/preferences";
import { addressOf, place } from "./state/router";
import { hasAccess, holderOf, offersSignIn, session, signOut } from "./state/session";
import { VIEWS, type View } from "./views/catalogue";
import { KeysForm } from "./views/keys";
import { spoken } from "./words";

const WORDS = {
  en: {
    views: "Views",
    skip: "Skip to the content",
    keys: "Keys",
    language: "Language",
    colours: "Colours",
    auto: "As the system",
    light: "Light",
    dark: "Dark",
    menu: "Menu",
    welcome: "Knowledge that answers, and keeps its text",
    lead: "Give a key to begin. It stays in this tab.",
    unknown: "There is no such view.",
    signIn: "Sign in",
    orKey: "Or give a key. It stays in this tab.",
    signedInAs: (user: string) => `Signed in as ${user}.`,
    signOut: "Sign out",
  },
  zh: {
    views: "视图",
    skip: "跳到正文",
    keys: "密钥",
    language: "语言",
    colours: "配色",
    auto: "跟随系统",
    light: "浅色",
    dark: "深色",
    menu: "菜单",
    welcome: "能回答问题、又守住原文的知识库",
    lead: "请先提供一个密钥，它只保存在此标签页中。",
    unknown: "没有这个视图。",
    signIn: "登录",
    orKey: "或者提供一个密钥，它只保存在此标签页中。",
    signedInAs: (user: string) => `已登录：${user}。`,
    signOut: "退出登录",
  },
};

export function App(): JSX.Element {
  const words = spoken(WORDS);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isKeysOpen, setKeysOpen] = useState(false);
  const view = VIEWS.find((each) => each.name === place.value.view);
  if (!hasAccess.value) return <Welcome />;
  const who = [holderOf("user"), ...Object.values(keys.value)].join("\n");
  return (
    <div class={`shell${isMenuOpen ? " menu-open" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{words.skip}</a>
      <header class="top">
        <Button kind="quiet" icon="menu" label={words.menu} expanded={isMenuOpen} onClick={() => setMenuOpen(!isMenuOpen)} />
        <span class="top-title">{view ? spoken(view.title) : "Ballast"}</span>
      </header>
      <aside class="side" aria-label="Ballast">
        <p class="brand">Ballast</p>
        <ViewList chosen={view} onChoose={() => setMenuOpen(false)} />
        <div class="side-rest" key={who}>{view?.side && <view.side onChoose={() => setMenuOpen(false)} />}</div>
        <div class="side-foot">
          {session.value && <p class="hint signed-in">{words.signedInAs(session.value.user_id)} <Button kind="quiet" onClick={() => void signOut()}>{words.signOut}</Button></p>}
          <Button kind="quiet" icon="key" onClick={() => setKeysOpen(true)}>{words.keys}</Button>
          <Preferences />
        </div>
      </aside>
      <main id="main" tabindex={-1} key={who}>
        {view ? <view.component parts={place.value.parts} /> : <p class="empty">{words.unknown}</p>}
      </main>
      {isKeysOpen && (
        <Dialog title={words.keys} onClose={() => setKeysOpen(false)}>
          <KeysForm onDone={() => setKeysOpen(false)} />
        </Dialog>
      )}
      <Toasts />
    </div>
  );
}

function ViewList({ chosen, onChoose }: { chosen: View | undefined; onChoose: () => void }): JSX.Element {
  return (
    <nav aria-label={spoken(WORDS).views}>
      <ul class="views">
        {VIEWS.map((each) => (
          <li key={each.name}>
            <a href={addressOf(each.name)} {...(each === chosen ? { "aria-current": "page" as const } : {})} onClick={onChoose}>
              <Icon name={each.icon} />
              <span>{spoken(each.title)}</span>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Preferences(): JSX.Element {
  const words = spoken(WORDS);
  return (
    <div class="preferences">
      <Pick<Language> quiet label={words.language} value={language.value} onPick={chooseLanguage} options={[{ value: "en", name: "English" }, { value: "zh", name: "中文" }]} />
      <Pick<Theme>
        quiet
        label={words.colours}
        value={theme.value}
        onPick={chooseTheme}
        options={[{ value: "auto", name: words.auto }, { value: "light", name: words.light }, { value: "dark", name: words.dark }]}
      />
    </div>
  );
}

function Welcome(): JSX.Element {
  const words = spoken(WORDS);
  return (
    <main class="welcome" id="main">
      <p class="brand">Ballast</p>
      <h1>{words.welcome}</h1>
      {offersSignIn && <p><a class="button primary" href="/sign-in"><span>{words.signIn}</span></a></p>}
      <p class="lead">{offersSignIn ? words.orKey : words.lead}</p>
      <KeysForm onDone={() => undefined} />
      <Preferences />
      <Toasts />
    </main>
  );
}
