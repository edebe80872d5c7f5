// The settings of a conversation, each with where its value comes from.
import { ApiError, conversationPath, getJson, sendJson, toApiError } from "../api/client";
import type { ConversationSettingsJson, JsonValue, ResolvedSettingJson } from "../api/types";

export class SettingsStore {
  values = $state.raw<Record<string, ResolvedSettingJson>>({});
  own = $state.raw<Record<string, unknown>>({});
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);

  private failed: ApiError | null = null;

  constructor(readonly key: string) {}

  async load(): Promise<void> {
    try {
      this.take(await getJson<ConversationSettingsJson>(conversationPath(this.key, "/settings")));
      // What a change reported stays until the next one, or until it is dismissed.
      if (this.error === this.failed) this.error = null;
    } catch (error) {
      this.error = this.failed = toApiError(error);
    }
    this.loaded = true;
  }

  async set(settings: Record<string, JsonValue>): Promise<boolean> {
    try {
      this.take(await sendJson<ConversationSettingsJson>("PATCH", conversationPath(this.key, "/settings"), { settings }));
      this.error = null;
      return true;
    } catch (error) {
      this.error = toApiError(error);
      return false;
    }
  }

  private take(body: ConversationSettingsJson): void {
    this.values = body.in_force;
    this.own = Object.fromEntries(Object.entries(body.settings).filter(([, value]) => value !== null));
  }
}

const stores = new Map<string, SettingsStore>();

export function getSettings(key: string): SettingsStore {
  let store = stores.get(key);
  if (!store) {
    store = new SettingsStore(key);
    stores.set(key, store);
  }
  return store;
}
