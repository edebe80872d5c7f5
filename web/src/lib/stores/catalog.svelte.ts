// What the server offers: models, ways of answering, names of notes.
import { getJson } from "../api/client";
import type { ModelJson, ModelListJson, NameCompletionsJson, RunnerJson, RunnerListJson } from "../api/types";

class CatalogStore {
  models = $state.raw<ModelJson[]>([]);
  runners = $state.raw<RunnerJson[]>([]);
  priced = $state.raw<ModelJson[]>([]);
  private loading: Promise<void> | null = null;

  load(): Promise<void> {
    this.loading ??= this.read();
    return this.loading;
  }

  /** Models with a known price, whether or not this server may ask them. */
  async loadPriced(): Promise<void> {
    if (this.priced.length > 0) return;
    try {
      this.priced = (await getJson<ModelListJson>("/v1/prices")).data;
    } catch {
      // Without them the prices of other models cannot be chosen.
    }
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

/** Something that a word after @ or [[ may become. */
export interface Completion {
  kind: "note" | "folder" | "tag" | "heading" | "page";
  /** The name by which it is attached. */
  name: string;
}

const MOST = 8;

/** Returns notes, folders, tags and headings that the word may become; an address becomes the page there. */
export async function completeNotes(query: string, signal: AbortSignal): Promise<Completion[]> {
  if (/^https?:\/\/[^\s/]+/.test(query)) return [{ kind: "page", name: query }];
  const body = await getJson<NameCompletionsJson>(`/v1/notes/complete?q=${encodeURIComponent(query)}`, signal);
  const found = (kind: Completion["kind"], names: string[], sign = "") => names.map((name): Completion => ({ kind, name: sign + name }));
  const notes = found("note", body.names);
  const others = [...found("heading", body.headings), ...found("folder", body.folders), ...found("tag", body.tags, "#")];
  // A few places stay for the others, however many notes there are.
  return [...notes.slice(0, Math.max(MOST - others.length, MOST / 2)), ...others].slice(0, MOST);
}
