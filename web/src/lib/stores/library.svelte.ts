// What is attached to a conversation, and what waits for its next turn.
import { ApiError, conversationPath, getJson, sendJson, toApiError } from "../api/client";
import type { ArtifactJson, AttachmentBody, CommandResultJson, ExpiredCacheJson, LibraryJson, PendingCommandsJson, TurnPreviewJson } from "../api/types";

const NOTHING: PendingCommandsJson = { attach: [], detach: [], drop: [], pin: [], unpin: [], rules: [], ended_rules: [] };
/** What a preview can try. */
export type LibraryEffect = "attach" | LibraryCommand;
export type LibraryCommand = "detach" | "drop" | "pin" | "unpin" | "refresh";

export class LibraryStore {
  artifacts = $state.raw<ArtifactJson[]>([]);
  waiting = $state.raw<PendingCommandsJson>(NOTHING);
  expired = $state.raw<ExpiredCacheJson | null>(null);
  preview = $state.raw<TurnPreviewJson | null>(null);
  said = $state.raw<string[]>([]);
  loaded = $state(false);
  busy = $state(0);
  error = $state.raw<ApiError | null>(null);
  private failed: ApiError | null = null;
  private previews: AbortController | null = null;
  private newest: Promise<void> = Promise.resolve();
  private changing: Promise<unknown> = Promise.resolve();

  constructor(readonly key: string) {}

  async load(): Promise<void> {
    try {
      const body = await getJson<LibraryJson>(conversationPath(this.key, "/attachments"));
      this.artifacts = body.artifacts;
      this.waiting = body.waiting;
      this.expired = body.cold;
      // What an action reported stays until the next one, or until it is dismissed.
      if (this.error === this.failed) this.error = null;
    } catch (error) {
      this.error = this.failed = toApiError(error);
    }
    this.loaded = true;
  }

  async attach(...things: (string | AttachmentBody)[]): Promise<boolean> {
    return this.change("/attachments", { attach: things });
  }

  /** Uploads pictures and texts; they go with the next message. */
  async upload(files: File[]): Promise<boolean> {
    const form = new FormData();
    for (const file of files) form.append("files", file, file.name || "pasted picture");
    return this.change("/attachments/files", form);
  }

  async run(command: LibraryCommand, names: string[]): Promise<boolean> {
    return this.change(`/${command}`, { names });
  }

  /** Returns what a command would do to the next request, without doing it. */
  async tryCommand(command: LibraryEffect, names: (string | AttachmentBody)[], signal?: AbortSignal): Promise<TurnPreviewJson> {
    return sendJson<TurnPreviewJson>("POST", conversationPath(this.key, "/preview"), { text: "", [command]: names }, signal);
  }

  /** Waits until everything that was attached or removed is stored. */
  async settled(): Promise<void> {
    while (this.busy > 0) await this.changing;
  }

  private change(path: string, body: unknown): Promise<boolean> {
    const changed = this.send(path, body);
    this.changing = changed;
    return changed;
  }

  private async send(path: string, body: unknown): Promise<boolean> {
    this.busy++;
    try {
      const result = await sendJson<CommandResultJson>("POST", conversationPath(this.key, path), body);
      this.waiting = result.waiting;
      this.said = result.said;
      this.error = null;
      await this.load();
      return true;
    } catch (error) {
      this.error = toApiError(error);
      return false;
    } finally {
      this.busy--;
    }
  }

  /** Estimates the next request with this text; a newer call cancels an older one. Resolves once the price of the newest text is known, also if that is not this one. */
  estimate(text: string): Promise<void> {
    this.newest = this.readPreview(text);
    return this.newest;
  }

  private async readPreview(text: string): Promise<void> {
    this.previews?.abort();
    const current = (this.previews = new AbortController());
    try {
      this.preview = await sendJson<TurnPreviewJson>("POST", conversationPath(this.key, "/preview"), { text }, current.signal);
    } catch {
      // The price of what is typed is a convenience: without an answer the last one stays.
      if (current.signal.aborted) await this.newest;
    }
  }
}

const stores = new Map<string, LibraryStore>();

export function getLibrary(key: string): LibraryStore {
  let store = stores.get(key);
  if (!store) {
    store = new LibraryStore(key);
    stores.set(key, store);
  }
  return store;
}
