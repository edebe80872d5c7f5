// The picture of prompts: which part is where, and the words for why a prefix broke. Nothing here draws.
import type { PieceJson, TurnStrataJson } from "./api/types";
import { formatMoney, formatTokens } from "./format";

// A colour says what something is, and never where it stands: a note keeps its colour when it moves in the prompt.
export type Group = "system" | "notes" | "history" | "user" | "tools" | "overhead";
export const GROUPS: { id: Group; label: string }[] = [
  { id: "system", label: "Instructions and rules" },
  { id: "notes", label: "Notes, files and pages" },
  { id: "history", label: "Earlier questions and answers" },
  { id: "user", label: "Your question, at the top" },
  { id: "tools", label: "Tools" },
  { id: "overhead", label: "Format around messages" },
];

const BY_LAYER: Record<string, Group> = {
  L1_SYSTEM: "system",
  L2_PREVIOUS: "notes",
  L3_TURN: "notes",
  L4_STRIP: "history",
  L5_USER: "user",
};

export function groupOf(piece: PieceJson): Group {
  if (piece.kind === "overhead") return "overhead";
  if (piece.kind === "tool_definition") return "tools";
  if (piece.kind === "talk") return "history";
  return piece.layer === null ? "overhead" : (BY_LAYER[piece.layer] ?? "overhead");
}

/** What a piece is called on the page. */
export function pieceName(piece: PieceJson): string {
  if (piece.kind === "talk") return piece.messages === 1 ? "1 earlier message" : `${piece.messages ?? ""} earlier messages`.trim();
  if (piece.kind === "overhead") return "format around messages";
  if (piece.kind === "user") return piece.layer === "L5_USER" ? "your question" : "earlier question";
  if (piece.kind === "reply") return "earlier answer";
  if (piece.id === "base" && piece.kind === "system") return "system prompt";
  if (piece.id === "rules" && piece.layer === "L1_SYSTEM") return "your rules";
  return piece.id.startsWith("sha256:") ? "picture" : piece.id;
}

/** A short name that fits into a column. */
export function shortName(piece: PieceJson): string {
  if (piece.kind === "talk") return "messages";
  if (piece.kind === "overhead") return "";
  if (piece.kind === "user") return piece.layer === "L5_USER" ? "question" : "messages";
  if (piece.kind === "reply") return "answer";
  if (piece.layer === "L1_SYSTEM") return piece.id === "base" ? "system" : piece.id;
  const name = piece.id.slice(piece.id.lastIndexOf("/") + 1).replace(/\.md$/, "");
  return piece.id.startsWith("sha256:") ? "picture" : name;
}

const CAUSES: Record<string, (segment: string) => string> = {
  system_changed: (segment) => (segment === "rules" ? "A rule changed" : segment && segment !== "base" ? `${segment} in the system prompt changed` : "The system prompt changed"),
  tools_changed: () => "The tools changed",
  model_changed: () => "The model changed",
  artifact_added: (segment) => `${segment || "A note"} was added`,
  artifact_updated: (segment) => `${segment || "A note"} was edited`,
  epoch_folded: (segment) => (segment ? `${segment} moved into the library` : "Notes moved into the library"),
  compacted: () => "The conversation was compacted",
  history_edited: () => "An earlier message was edited",
  branch: () => "Another branch was taken",
  layout_changed: () => "The layout changed",
  renderer_changed: () => "Another version of Lamella wrote the prompt",
};

/** What a part is beside its text, in words: where it stands, and in which form. */
export function pieceFacts(piece: PieceJson): string {
  const message = /^message:(\d+)$/.exec(piece.place ?? "")?.[1];
  const form: Record<string, string> = { preview: "shortened to a preview", handle: "only named", reference: "only referred to", update: "only what changed", summary: "a summary" };
  return [piece.kind.replaceAll("_", " "), form[piece.form] ?? "", message ? `in message ${message}` : piece.place === "system" ? "in the system message" : ""]
    .filter(Boolean)
    .join(" · ");
}

/** Whether the request did not extend the one before. */
export function isBroken(turn: TurnStrataJson): boolean {
  return turn.prefix.cause !== "none" && turn.prefix.cause !== "first_turn";
}

/** Why the prefix broke, as a sentence without its full stop. */
export function causeWords(cause: string, segment: string | null): string {
  if (cause === "first_turn") return "The first request: nothing was cached yet";
  if (cause === "none") return "It only adds to the request before";
  return (CAUSES[cause] ?? (() => cause.replaceAll("_", " ")))(segment?.startsWith("sha256:") ? "A picture" : (segment ?? ""));
}

/** What the cache did, as a sentence without its full stop. Empty before there is an answer. */
export function verdictWords(turn: TurnStrataJson): string {
  if (!turn.verdict) return "";
  const { outcome, cause, segment, says } = turn.verdict;
  if (outcome === "hit") return "It served all that it could";
  if (outcome === "moved") return `It served only what stands below the change: ${lowerFirst(causeWords(cause, segment))}`;
  const isLocal = turn.model === "local" || turn.model?.startsWith("local:");
  const why = outcome === "cold" && cause === "none" && !segment && isLocal ? ": a model in this process begins with an empty cache" : "";
  return says.charAt(0).toUpperCase() + says.slice(1) + why;
}

function lowerFirst(text: string): string {
  return /^(A|An|The|Another|Notes) /.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** What a cache miss cost, as a sentence without its full stop. Empty without a miss. */
export function missWords(turn: TurnStrataJson): string {
  if (!turn.miss) return "";
  const price = turn.miss.cost === null ? "" : `, for ${formatMoney(turn.miss.cost)} more than from the cache`;
  return `${formatTokens(turn.miss.tokens)} tokens that were in the cache had to be read again${price}`;
}

/** The name that stands above a column with a break, in two short lines. */
export function causeLabel(turn: TurnStrataJson): [string, string] {
  const { cause, segment } = turn.prefix;
  const name = segment ? segment.slice(segment.lastIndexOf("/") + 1) : "";
  switch (cause) {
    case "artifact_added":
      return [name || "note", "added"];
    case "artifact_updated":
      return [name || "note", "edited"];
    case "epoch_folded":
      return [name || "notes", "to the library"];
    case "system_changed":
      return [segment === "rules" ? "rules" : "system", "changed"];
    case "tools_changed":
      return ["tools", "changed"];
    case "model_changed":
      return ["model", "changed"];
    case "compacted":
      return ["compacted", ""];
    case "history_edited":
      return ["history", "edited"];
    case "branch":
      return ["other", "branch"];
    case "layout_changed":
      return ["layout", "changed"];
    default:
      return [cause.replaceAll("_", " "), ""];
  }
}

/** Several turns in a row, by their numbers. */
export interface TurnRange {
  from: number;
  to: number;
}

export interface PictureOptions {
  /** Pixels from one column to the next. */
  step: number;
  gap: number;
  /** Pixels of the highest column. */
  height: number;
  /** Tokens of that height. */
  scale: number;
  /** The place of the first column; 0 if it is not given. */
  first?: number;
}

export interface PicturePaths {
  /** The path of all pieces of a kind, by group and whether they are new. */
  paths: { group: Group; same: boolean; d: string }[];
  breaks: { turn: number; x: number; y: number; width: number }[];
  width: number;
}

/** Merges the pieces of all turns into a few paths: thousands of pieces, a dozen nodes. */
export function drawPicture(turns: TurnStrataJson[], { step, gap, height, scale, first = 0 }: PictureOptions): PicturePaths {
  const parts = new Map<string, string[]>();
  const breaks: PicturePaths["breaks"] = [];
  const width = Math.max(1, step - gap);
  const line = step > 24 ? 0.75 : 0;
  turns.forEach((turn, index) => {
    const x = (first + index) * step;
    for (const piece of turn.pieces) {
      if (piece.tokens <= 0) continue;
      const bottom = height - (piece.start / scale) * height;
      const size = (piece.tokens / scale) * height;
      const drawn = size > 3 ? size - line : size;
      const key = `${groupOf(piece)} ${piece.same ? 1 : 0}`;
      let list = parts.get(key);
      if (!list) parts.set(key, (list = []));
      list.push(`M${x} ${(bottom - drawn).toFixed(2)}h${width}v${drawn.toFixed(2)}h-${width}z`);
    }
    if (isBroken(turn)) {
      breaks.push({ turn: turn.turn, x, y: height - ((turn.prefix.common_tokens ?? 0) / scale) * height, width });
    }
  });
  const paths = [...parts].map(([key, list]) => {
    const [group = "overhead", same] = key.split(" ");
    return { group: group as Group, same: same === "1", d: list.join("") };
  });
  return { paths, breaks, width: turns.length * step };
}

/** A jagged line, as a crack through a column. */
export function crack(x: number, y: number, width: number): string {
  const from = x - 4;
  const steps = Math.max(2, Math.round((width + 8) / 11));
  const step = (width + 8) / steps;
  let d = `M${from} ${y}`;
  for (let index = 1; index <= steps; index++) d += `L${(from + index * step).toFixed(1)} ${(y + (index === steps ? 0 : index % 2 ? -3 : 3)).toFixed(1)}`;
  return d;
}

/** Moves labels apart so that none hides another, as little as possible. Positions are centers, ascending. */
export function spreadLabels(centers: number[], size: number, from: number, to: number): number[] {
  const placed: number[] = [];
  for (const center of centers) placed.push(Math.max(center, (placed.at(-1) ?? from - size / 2) + size));
  let limit = to - size / 2;
  for (let index = placed.length - 1; index >= 0; index--) {
    const value = Math.min(placed[index] ?? 0, limit);
    placed[index] = value;
    limit = value - size;
  }
  return placed;
}

/** Finds the text of a piece in the message that carries it: its block, or the whole message. */
export function findPieceText(content: string, id: string, title = ""): string {
  for (const needle of [`>${id}<`, `"${id}"`, id, title].filter((one) => one.length > 2)) {
    const at = content.indexOf(needle);
    if (at < 0) continue;
    const opening = [...content.slice(0, content.lastIndexOf("\n", at) + 1).matchAll(/^<([a-z_]+)[^>\n]*>$/gm)].at(-1);
    if (!opening) continue;
    const closing = `</${opening[1]}>`;
    const end = content.indexOf(closing, at);
    if (end > 0) return content.slice(opening.index, end + closing.length);
  }
  return content;
}
