// Lasting instructions of the user, and facts that are remembered beyond a conversation.
import { ApiError, conversationPath, getJson, sendJson, toApiError } from "../api/client";
import type { AddedFactJson, AddedRuleJson, ConversationMemoryJson, MemoryJson, NumberedFactJson, RemovedRuleJson, RuleJson, RuleListJson } from "../api/types";

export class RulesStore {
  rules = $state.raw<RuleJson[]>([]);
  memory = $state("");
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);

  private failed: ApiError | null = null;

  constructor(readonly key: string) {}

  async load(): Promise<void> {
    await this.attempt(async () => {
      const [rules, memory] = await Promise.all([
        getJson<RuleListJson>(conversationPath(this.key, "/rules")),
        getJson<ConversationMemoryJson>(conversationPath(this.key, "/memory")),
      ]);
      this.rules = rules.rules;
      this.memory = memory.text;
    }, true);
    this.loaded = true;
  }

  async add(text: string): Promise<boolean> {
    return this.attempt(async () => {
      this.rules = (await sendJson<AddedRuleJson>("POST", conversationPath(this.key, "/rules"), { text })).rules;
    });
  }

  async end(rule: string): Promise<boolean> {
    return this.attempt(async () => {
      await sendJson<RemovedRuleJson>("DELETE", conversationPath(this.key, `/rules/${encodeURIComponent(rule)}`));
      await this.load();
    });
  }

  private async attempt(action: () => Promise<void>, loads = false): Promise<boolean> {
    try {
      await action();
      // What an action reported stays until the next one, or until it is dismissed.
      if (!loads || this.error === this.failed) this.error = null;
      return true;
    } catch (error) {
      this.error = toApiError(error);
      if (loads) this.failed = this.error;
      return false;
    }
  }
}

class MemoryStore {
  facts = $state.raw<NumberedFactJson[]>([]);
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);

  async load(): Promise<void> {
    await this.attempt(async () => {
      this.facts = (await getJson<MemoryJson>("/v1/memory")).facts;
    });
    this.loaded = true;
  }

  async add(text: string): Promise<boolean> {
    return this.attempt(async () => {
      await sendJson<AddedFactJson>("POST", "/v1/memory", { text });
      await this.load();
    });
  }

  async edit(id: string, text: string): Promise<boolean> {
    return this.attempt(async () => {
      await sendJson("PUT", `/v1/memory/${encodeURIComponent(id)}`, { text });
      await this.load();
    });
  }

  async forget(id: string): Promise<boolean> {
    return this.attempt(async () => {
      await sendJson("DELETE", `/v1/memory/${encodeURIComponent(id)}`);
      await this.load();
    });
  }

  private async attempt(action: () => Promise<void>): Promise<boolean> {
    try {
      await action();
      this.error = null;
      return true;
    } catch (error) {
      this.error = toApiError(error);
      return false;
    }
  }
}

export const memory = new MemoryStore();
const stores = new Map<string, RulesStore>();

export function getRules(key: string): RulesStore {
  let store = stores.get(key);
  if (!store) {
    store = new RulesStore(key);
    stores.set(key, store);
  }
  return store;
}
