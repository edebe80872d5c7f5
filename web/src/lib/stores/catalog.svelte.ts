// What the server offers: models, ways of answering, names of notes.
import { getJson } from "../api/client";
import type { ModelJson, ModelListJson, NoteNamesJson, RunnerJson, RunnerListJson } from "../api/types";

class CatalogStore {
  models = $state.raw<ModelJson[]>([]);
  runners = $state.raw<RunnerJson[]>([]);
  private loading: Promise<void> | null = null;

  load(): Promise<void> {
    this.loading ??= this.read();
    return this.loading;
  }

  private async read(): Promise<void> {
    try {
      const [models, runners] = await Promise.all([getJson<ModelListJson>("/v1/models"), getJson<RunnerListJson>("/v1/runners")]);
      this.models = models.data;
      this.runners = runners.runners;
    } catch {
      this.loading = null;
    }
  }
}

export const catalog = new CatalogStore();

export async function completeNotes(query: string, signal: AbortSignal): Promise<string[]> {
  const body = await getJson<NoteNamesJson>(`/v1/notes/complete?q=${encodeURIComponent(query)}`, signal);
  return body.names;
}
