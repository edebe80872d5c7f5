// Addresses of the page: #/c/KEY/SCREEN, #/c/KEY/turn/NUMBER, #/memory and #/server.

export type Screen = "chat" | "prompt" | "library" | "compaction" | "rules" | "workflow" | "settings";
export const SCREENS: { id: Screen; label: string }[] = [
  { id: "chat", label: "Chat" },
  { id: "prompt", label: "Prompt" },
  { id: "library", label: "Library" },
  { id: "compaction", label: "Compaction" },
  { id: "rules", label: "Rules" },
  { id: "workflow", label: "Workflow" },
  { id: "settings", label: "Settings" },
];

export interface Route {
  page: "home" | "conversation" | "memory" | "server";
  key: string;
  screen: Screen;
  /** The turn to show; 0 for the end. */
  turn: number;
}

export function parseRoute(hash: string): Route {
  const [first = "", key = "", screen = "", turn = ""] = hash.replace(/^#?\/?/, "").split("/").map(decodeURIComponent);
  if (first === "c" && key) {
    return { page: "conversation", key, screen: SCREENS.find((one) => one.id === screen)?.id ?? "chat", turn: screen === "turn" ? Number(turn) || 0 : 0 };
  }
  return { page: first === "memory" ? "memory" : first === "server" ? "server" : "home", key: "", screen: "chat", turn: 0 };
}

export function conversationHash(key: string, screen: Screen = "chat"): string {
  return `#/c/${encodeURIComponent(key)}${screen === "chat" ? "" : `/${screen}`}`;
}

export function turnHash(key: string, turn: number | null): string {
  return turn === null ? conversationHash(key) : `#/c/${encodeURIComponent(key)}/turn/${turn}`;
}

class Router {
  route = $state.raw<Route>(parseRoute(location.hash));

  constructor() {
    addEventListener("hashchange", () => (this.route = parseRoute(location.hash)));
  }

  go(hash: string, replace = false): void {
    if (replace) {
      history.replaceState(null, "", hash);
      this.route = parseRoute(hash);
    } else location.hash = hash;
  }
}

export const router = new Router();
