// Texts of models, documents and other people, as they may be shown.

/** Characters that turn the direction of what follows, and so can make an address or a figure read otherwise. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;
/** Characters by which this page marks places in a text; nobody else's may stand in it. */
const MARKS = /[\ue000\ue001]/g;

export function shownText(text: string): string {
  return text.replace(TURNING, "").replace(MARKS, "\ufffd");
}

/** Return an address that a link may lead to, or null. */
export function linkAddress(address: string): string | null {
  try {
    const parsed = new URL(address);
    return ["http:", "https:", "mailto:"].includes(parsed.protocol) ? parsed.href : null;
  } catch {
    return null;
  }
}
