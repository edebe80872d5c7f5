// The list of conversations, and the search in what was said.
import { ApiError, conversationPath, deletePath, getJson, sendJson, toApiError } from "../api/client";
import type { ConversationListJson, ConversationSummaryJson, CreatedConversationJson, MessageHitJson, MessageHitListJson } from "../api/types";
import { broadcast } from "./sync.svelte";

class ConversationsStore {
  list = $state.raw<ConversationSummaryJson[]>([]);
  total = $state(0);
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);
  query = $state("");
  hits = $state.raw<MessageHitJson[] | null>(null);
  private limit = 100;
  private searches = 0;

  async load(): Promise<void> {
    try {
      const body = await getJson<ConversationListJson>(`/v1/conversations?limit=${this.limit}`);
      this.list = body.chats;
      this.total = body.total ?? body.chats.length;
      this.error = null;
    } catch (error) {
      this.error = toApiError(error);
    }
    this.loaded = true;
  }

  async loadMore(): Promise<void> {
    this.limit += 200;
    await this.load();
  }

  get hasMore(): boolean {
    return this.total > this.list.length;
  }

  find(key: string): ConversationSummaryJson | undefined {
    return this.list.find((one) => one.conversation === key || one.name === key);
  }

  async create(): Promise<string> {
    const made = await sendJson<CreatedConversationJson>("POST", "/v1/conversations", {});
    await this.load();
    broadcast({ kind: "list" });
    return made.conversation;
  }

  async rename(key: string, title: string): Promise<void> {
    await sendJson("PATCH", conversationPath(key), { title });
    await this.load();
    broadcast({ kind: "list" });
  }

  async erase(key: string): Promise<void> {
    await deletePath(conversationPath(key));
    await this.load();
    broadcast({ kind: "list" });
  }

  async search(query: string): Promise<void> {
    this.query = query;
    const number = ++this.searches;
    if (!query.trim()) {
      this.hits = null;
      return;
    }
    try {
      const body = await getJson<MessageHitListJson>(`/v1/conversations/search?q=${encodeURIComponent(query)}`);
      if (number === this.searches) this.hits = body.hits;
    } catch (error) {
      if (number === this.searches) this.error = toApiError(error);
    }
  }
}

export const conversations = new ConversationsStore();
