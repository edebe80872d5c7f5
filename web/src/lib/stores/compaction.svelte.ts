// Plans of compactions, and those in force.
import { ApiError, conversationPath, getJson, sendJson, toApiError } from "../api/client";
import type { PlanJson, RecallHitJson, RecallJson, ReceiptJson, ReceiptListJson, UndoResultJson } from "../api/types";

export interface PlanRequest {
  to?: number;
  since?: string;
  until?: string;
}

export class CompactionStore {
  receipts = $state.raw<ReceiptJson[]>([]);
  plan = $state.raw<PlanJson | null>(null);
  found = $state.raw<RecallHitJson[] | null>(null);
  /** The turns that were chosen to be compacted. */
  range = $state.raw<{ from: number; to: number } | null>(null);
  loaded = $state(false);
  busy = $state(false);
  error = $state.raw<ApiError | null>(null);
  private request: PlanRequest = {};

  private failed: ApiError | null = null;

  constructor(readonly key: string) {}

  async load(): Promise<void> {
    await this.attempt(async () => {
      this.receipts = (await getJson<ReceiptListJson>(conversationPath(this.key, "/compactions"))).receipts;
    }, true);
    this.loaded = true;
  }

  async makePlan(request: PlanRequest): Promise<void> {
    this.request = request;
    await this.attempt(async () => {
      this.plan = await sendJson<PlanJson>("POST", conversationPath(this.key, "/compactions/plan"), request);
    });
  }

  async commit(): Promise<boolean> {
    return this.attempt(async () => {
      const receipt = this.plan?.receipt?.id;
      await sendJson<PlanJson>("POST", conversationPath(this.key, "/compactions"), { ...this.request, receipt });
      this.plan = null;
      await this.load();
    });
  }

  async undo(receipt: string): Promise<boolean> {
    return this.attempt(async () => {
      await sendJson<UndoResultJson>("POST", conversationPath(this.key, "/compactions/undo"), { receipt });
      this.plan = null;
      await this.load();
    });
  }

  async recall(query: string): Promise<void> {
    await this.attempt(async () => {
      this.found = (await getJson<RecallJson>(conversationPath(this.key, `/recall?q=${encodeURIComponent(query)}`))).hits;
    });
  }

  private async attempt(action: () => Promise<void>, loads = false): Promise<boolean> {
    if (!loads) this.busy = true;
    try {
      await action();
      // What an action reported stays until the next one, or until it is dismissed.
      if (!loads || this.error === this.failed) this.error = null;
      return true;
    } catch (error) {
      this.error = toApiError(error);
      if (loads) this.failed = this.error;
      return false;
    } finally {
      if (!loads) this.busy = false;
    }
  }
}

const stores = new Map<string, CompactionStore>();

export function getCompaction(key: string): CompactionStore {
  let store = stores.get(key);
  if (!store) {
    store = new CompactionStore(key);
    stores.set(key, store);
  }
  return store;
}
