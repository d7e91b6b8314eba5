import { render } from "preact";
import { App } from "./app";
import { followKeysInAddress } from "./state/keys";
import { followPreferences } from "./state/preferences";
import { followAddress } from "./state/router";
import { followSession, readSession } from "./state/session";
import { followUploads } from "./views/knowledge/uploads";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/shell.css";

followKeysInAddress();
followAddress();
followPreferences();
followSession();

// Whoever has signed in sees the page at once, and not first that they should give a key.
await readSession();
followUploads();

const root = document.getElementById("app");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
