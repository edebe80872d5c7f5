// Work in stages: where it stands, and what was written down.
import { ApiError, conversationPath, getJson, sendJson, toApiError } from "../api/client";
import type { JsonValue, ProgressJson, StageDataJson, WorkflowTextJson, WorkflowJson, WorkflowListJson } from "../api/types";

export class WorkflowStore {
  progress = $state.raw<StageDataJson | null>(null);
  workflows = $state.raw<WorkflowJson[]>([]);
  work = $state("");
  loaded = $state(false);
  busy = $state(false);
  error = $state.raw<ApiError | null>(null);

  private failed: ApiError | null = null;

  constructor(readonly key: string) {}

  async load(): Promise<void> {
    await this.attempt(async () => {
      const { workflow } = await getJson<ProgressJson>(conversationPath(this.key, "/workflow"));
      this.progress = workflow ? await getJson<StageDataJson>(conversationPath(this.key, "/workflow/data")) : null;
      if (!workflow) this.workflows = (await getJson<WorkflowListJson>("/v1/workflows")).workflows;
    }, true);
    this.loaded = true;
  }

  async begin(workflow: string): Promise<void> {
    await this.change("POST", "", { workflow });
  }

  async write(fields: Record<string, JsonValue>): Promise<void> {
    await this.change("PATCH", "/data", { fields });
  }

  async submit(): Promise<void> {
    await this.change("POST", "/submit");
  }

  async approve(decision: string): Promise<void> {
    await this.change("POST", "/approve", { decision });
  }

  async rewind(stage: string): Promise<void> {
    await this.change("POST", "/rewind", { stage });
  }

  async exportWork(): Promise<void> {
    await this.attempt(async () => {
      this.work = (await getJson<WorkflowTextJson>(conversationPath(this.key, "/workflow/export"))).text;
    });
  }

  private async change(method: "POST" | "PATCH", path: string, body?: unknown): Promise<void> {
    await this.attempt(async () => {
      await sendJson(method, conversationPath(this.key, `/workflow${path}`), body);
      await this.load();
    });
  }

  private async attempt(action: () => Promise<void>, loads = false): Promise<void> {
    if (!loads) this.busy = true;
    try {
      await action();
      // What an action reported stays until the next one, or until it is dismissed.
      if (!loads || this.error === this.failed) this.error = null;
    } catch (error) {
      this.error = toApiError(error);
      if (loads) this.failed = this.error;
    } finally {
      if (!loads) this.busy = false;
    }
  }
}

const stores = new Map<string, WorkflowStore>();

export function getWorkflow(key: string): WorkflowStore {
  let store = stores.get(key);
  if (!store) {
    store = new WorkflowStore(key);
    stores.set(key, store);
  }
  return store;
}
