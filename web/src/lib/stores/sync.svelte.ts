// Tabs of one browser tell each other what changed.

export interface Change {
  kind: "list" | "conversation";
  key?: string;
}

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("lamella");
const listeners = new Set<(change: Change) => void>();
channel?.addEventListener("message", (event: MessageEvent<Change>) => {
  for (const listener of listeners) listener(event.data);
});

export function broadcast(change: Change): void {
  channel?.postMessage(change);
}

export function onChange(listener: (change: Change) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
