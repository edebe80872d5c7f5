// The list of conversations, and the search in what was said.
import { ApiError, conversationPath, deletePath, getJson, markDeleted, sendJson, toApiError } from "../api/client";
import type { ChangedConversationsJson, ConversationListJson, ConversationSummaryJson, CreatedConversationJson, MessageHitJson, MessageHitListJson } from "../api/types";

class ConversationsStore {
  list = $state.raw<ConversationSummaryJson[]>([]);
  total = $state(0);
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);
  /** Whether the archive is shown in place of the list. */
  archived = $state(false);
  query = $state("");
  /** The chats whose titles have the words that are searched, however many chats there are. */
  named = $state.raw<ConversationSummaryJson[] | null>(null);
  hits = $state.raw<MessageHitJson[] | null>(null);
  private limit = 100;
  private searches = 0;
  private loads = 0;

  async load(): Promise<void> {
    const number = ++this.loads;
    try {
      const body = await getJson<ConversationListJson>(`/v1/conversations?limit=${this.limit}&archived=${this.archived}`);
      if (number !== this.loads) return;
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
    return made.conversation;
  }

  /** Opens the conversation that shows what the page is for; the server prepares it. */
  async createExample(): Promise<string> {
    const made = await sendJson<CreatedConversationJson>("POST", "/v1/conversations/welcome");
    await this.load();
    return made.conversation;
  }

  /** Has the model write a title, and returns it; with `onlyIfMissing`, only for a chat that nobody named. */
  async writeTitle(key: string, onlyIfMissing = false): Promise<string> {
    const made = await sendJson<CreatedConversationJson>("POST", conversationPath(key, onlyIfMissing ? "/title?only_if_missing=true" : "/title"));
    await this.load();
    return made.title;
  }

  async archive(key: string): Promise<void> {
    await sendJson("PATCH", conversationPath(key), { archived: true });
    await this.load();
  }

  async rename(key: string, title: string): Promise<void> {
    await sendJson("PATCH", conversationPath(key), { title });
    await this.load();
  }

  /** Takes a chat out of the list that is gone by now. */
  forget(key: string): void {
    markDeleted(conversationPath(key));
    this.list = this.list.filter((one) => one.conversation !== key);
  }

  async erase(key: string): Promise<void> {
    await deletePath(conversationPath(key));
    await this.load();
  }

  async showArchive(archived: boolean): Promise<void> {
    this.archived = archived;
    await this.load();
  }

  /** Archives, takes back or deletes several chats. */
  async changeAll(action: "archive" | "unarchive" | "erase", keys: string[]): Promise<void> {
    try {
      const body = await sendJson<ChangedConversationsJson>("POST", "/v1/conversations/bulk", { action, conversations: keys });
      if (action === "erase") for (const key of body.done) this.forget(key);
      const failed = body.failed[0];
      this.error = failed ? new ApiError(0, failed.error.code, failed.error.message, failed.error.hint ?? "") : null;
      const problem = this.error;
      await this.load();
      this.error ??= problem;
    } catch (error) {
      this.error = toApiError(error);
    }
  }

  async search(query: string): Promise<void> {
    this.query = query;
    const number = ++this.searches;
    if (!query.trim()) {
      this.hits = this.named = null;
      return;
    }
    try {
      const named = await getJson<ConversationListJson>(`/v1/conversations?archived=${this.archived}&q=${encodeURIComponent(query)}`);
      if (number === this.searches) this.named = named.chats;
      const body = await getJson<MessageHitListJson>(`/v1/conversations/search?q=${encodeURIComponent(query)}`);
      if (number === this.searches) this.hits = body.hits;
    } catch (error) {
      if (number === this.searches) this.error = toApiError(error);
    }
  }
}

export const conversations = new ConversationsStore();
