// Live updates: the server reports what changed, by whichever tab, program or process.
import type { AttachmentsEventJson, ConversationEventJson, IndexingEventJson, TurnEventJson } from "../api/types";
import { indexing } from "./indexing.svelte";

export interface Change {
  /** The conversation that changed; undefined if any may have. */
  key?: string;
  /** Whether the list of conversations changed, too. */
  list: boolean;
  erased?: boolean;
}

type Listener = (changes: Change[]) => void;

/** Changes come in bunches: a turn that ends is several events. */
const BUNCH_MILLISECONDS = 120;
/** A refused connection is not tried again by the browser itself. */
const RETRY_MILLISECONDS = 10_000;

/** Reports changes until the returned function is called. A hidden tab holds no connection; it is told again when it is shown. */
export function listenToChanges(listener: Listener): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let waiting: Change[] = [];

  function report(change: Change): void {
    waiting.push(change);
    timer ??= setTimeout(() => {
      const changes = waiting;
      [waiting, timer] = [[], undefined];
      listener(changes);
    }, BUNCH_MILLISECONDS);
  }

  function open(): void {
    if (source || document.visibilityState !== "visible") return;
    source = new EventSource("/v1/events");
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      source = null;
      clearTimeout(retry);
      retry = setTimeout(open, RETRY_MILLISECONDS);
    });
    source.addEventListener("ready", () => report({ list: true }));
    source.addEventListener("conversation", (event: MessageEvent<string>) => {
      const changed = JSON.parse(event.data) as ConversationEventJson;
      report({ key: changed.conversation, list: true, erased: changed.change === "erased" });
    });
    source.addEventListener("indexing", (event: MessageEvent<string>) => indexing.report(JSON.parse(event.data) as IndexingEventJson));
    for (const name of ["turn", "attachments"]) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        report({ key: (JSON.parse(event.data) as TurnEventJson | AttachmentsEventJson).conversation, list: false });
      });
    }
  }

  function close(): void {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  const onVisible = () => (document.visibilityState === "visible" ? open() : close());
  document.addEventListener("visibilitychange", onVisible);
  open();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisible);
    close();
  };
}
