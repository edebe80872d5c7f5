// Numbers, amounts and times as people read them.

const whole = new Intl.NumberFormat("en");

export function formatTokens(count: number | null | undefined): string {
  return count === null || count === undefined ? "unknown" : whole.format(count);
}

/** A short form for narrow places: 12.3k in place of 12,345. */
export function formatShort(count: number): string {
  if (Math.abs(count) < 1000) return String(Math.round(count));
  if (Math.abs(count) < 1_000_000) return `${trim(count / 1000)}k`;
  return `${trim(count / 1_000_000)}M`;
}

function trim(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, "");
}

/** An amount in dollars, with as many digits as say something. An unknown amount is not zero. */
export function formatMoney(amount: string | number | null | undefined, sign = false): string {
  if (amount === null || amount === undefined) return "no price";
  const value = Number(amount);
  const size = Math.abs(value);
  const digits = size === 0 || size >= 1 ? 2 : size >= 0.1 ? 3 : size >= 0.001 ? 4 : 6;
  const prefix = value < 0 ? "−" : sign && value > 0 ? "+" : "";
  return `${prefix}$${size.toFixed(digits)}`;
}

export function formatShare(part: number, total: number): string {
  return total > 0 ? `${Math.floor((100 * part) / total)}%` : "0%";
}

export function formatSigned(count: number): string {
  return count > 0 ? `+${whole.format(count)}` : count < 0 ? `−${whole.format(-count)}` : "±0";
}

const minute = 60_000;
const day = 86_400_000;

/** How long ago something was, for lists. */
export function formatAge(at: string, now = Date.now()): string {
  const age = now - Date.parse(at);
  if (age < minute) return "now";
  if (age < 60 * minute) return `${Math.floor(age / minute)} min`;
  if (age < day) return `${Math.floor(age / (60 * minute))} h`;
  if (age < 7 * day) return `${Math.floor(age / day)} d`;
  return new Intl.DateTimeFormat("en", { day: "numeric", month: "short", ...(age > 300 * day ? { year: "numeric" } : {}) }).format(new Date(at));
}

export function formatTime(at: string): string {
  return new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" }).format(new Date(at));
}

/** The name of a model without its provider. */
export function shortModel(name: string): string {
  const rest = name.slice(name.indexOf(":") + 1);
  return rest.slice(rest.lastIndexOf("/") + 1) || name;
}

// What turns text around, hides in it, or is meant for a terminal.
const UNSEEN = /\u001b\[[0-?]*[ -/]*[@-~]|[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A title without the marks of attached notes: a first question is a title, too. */
export function showTitle(title: string): string {
  if (!/[\p{L}\p{N}\p{P}\p{S}]/u.test(title)) return "";
  const unlinked = title.replace(UNSEEN, "").replace(/!?\[\[([^\][]+)\]\]/g, "$1");
  return unlinked.replace(/(^|[\s(["'*,;:|])@(?:"([^"]+)"|(?=[^\s@]))/g, (_, before: string, quoted?: string) => before + (quoted ?? ""));
}

// Control characters, and those that change the direction of text or take no space, the tags of Unicode among them.
// A joiner of emoji or of letters is one of them: it says nothing by itself.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/gu;

/** A text in which nothing can hide: what has no shape of its own is written as its number. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE, (one) => `\u27e8U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole.format(count)} ${count === 1 ? one : many}`;
}

/** A length of time: 7 min, 3 h, 2 d. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 60 * minute) return `${Math.max(1, Math.round(milliseconds / minute))} min`;
  return milliseconds < 2 * day ? `${Math.round(milliseconds / (60 * minute))} h` : `${Math.round(milliseconds / day)} d`;
}

interface Request {
  tokens: { total: number };
  cost: { amount: string | null } | null;
}

/** What a change does to the next request: its tokens and, where it is known, its price. */
export function describeDifference(now: Request, then: Request): string {
  const tokens = `${formatSigned(then.tokens.total - now.tokens.total)} tokens`;
  if (!then.cost || !now.cost) return tokens;
  const difference = Number(then.cost.amount) - Number(now.cost.amount);
  return `${tokens}, ${difference === 0 ? "the same price" : formatMoney(difference, true)}`;
}
