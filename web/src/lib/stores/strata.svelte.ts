// The prompts of a conversation turn by turn.
import { ApiError, conversationPath, getJson, toApiError } from "../api/client";
import type { PromptExplanationJson, SentTurnJson, StrataJson, TurnStrataJson } from "../api/types";

export interface Supposition {
  layout: string;
  model: string;
}

export class StrataStore {
  turns = $state.raw<TurnStrataJson[]>([]);
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);
  selected = $state<number | null>(null);
  /** The same questions in another layout or with other prices, and which. */
  supposed = $state.raw<TurnStrataJson[] | null>(null);
  supposition = $state.raw<Supposition>({ layout: "", model: "" });
  private requests = 0;

  constructor(readonly key: string) {}

  /** What is shown: the requests as they were sent, or as they would have been. */
  get shown(): TurnStrataJson[] {
    return this.supposed ?? this.turns;
  }

  get current(): TurnStrataJson | undefined {
    return this.shown.find((one) => one.turn === this.selected) ?? this.shown.at(-1);
  }

  /** Shows the requests as they would have been; with nothing given, as they were sent. */
  async suppose(supposition: Supposition): Promise<void> {
    this.supposition = supposition;
    if (!supposition.layout && !supposition.model) {
      this.supposed = null;
      return;
    }
    const query = new URLSearchParams(Object.entries(supposition).filter(([, value]) => value));
    try {
      const body = await getJson<StrataJson>(conversationPath(this.key, `/strata?${query}`));
      if (this.supposition === supposition) this.supposed = body.turns;
      this.error = null;
    } catch (error) {
      this.error = toApiError(error);
    }
  }

  /** Loads the turns that are not known yet: all of them, or those from a turn on. */
  async load(from = 1): Promise<void> {
    const number = ++this.requests;
    const first = this.turns[0];
    const last = this.turns.at(-1);
    const reaches = first !== undefined && first.turn <= from;
    try {
      let body = await this.read(reaches && last ? last.turn : from);
      if (number !== this.requests) return;
      const continues = reaches && body.turns[0]?.message === last?.message;
      if (reaches && !continues) {
        body = await this.read(from);
        if (number !== this.requests) return;
      }
      const follows = this.selected === null || this.selected === last?.turn;
      this.turns = continues ? [...this.turns.slice(0, -1), ...body.turns] : body.turns;
      if (follows || !this.turns.some((one) => one.turn === this.selected)) this.selected = this.turns.at(-1)?.turn ?? null;
      this.error = null;
      if (this.supposed) await this.suppose(this.supposition);
    } catch (error) {
      if (number === this.requests) this.error = toApiError(error);
    }
    this.loaded = true;
  }

  private read(from: number): Promise<StrataJson> {
    return getJson<StrataJson>(conversationPath(this.key, from > 1 ? `/strata?from=${from}` : "/strata"));
  }

  async readTurn(turn: number): Promise<SentTurnJson> {
    return getJson<SentTurnJson>(conversationPath(this.key, `/turns/${turn}`));
  }

  /** Returns the pieces of a turn with each earlier message on its own. */
  async readPieces(turn: number): Promise<TurnStrataJson | undefined> {
    const body = await getJson<StrataJson>(conversationPath(this.key, `/strata?from=${turn}&to=${turn}&messages=true`));
    return body.turns[0];
  }

  async explain(name: string): Promise<PromptExplanationJson> {
    return getJson<PromptExplanationJson>(conversationPath(this.key, `/why?name=${encodeURIComponent(name)}`));
  }
}

const stores = new Map<string, StrataStore>();

export function getStrata(key: string): StrataStore {
  let store = stores.get(key);
  if (!store) {
    store = new StrataStore(key);
    stores.set(key, store);
  }
  return store;
}
