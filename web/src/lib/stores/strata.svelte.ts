// The prompts of a conversation turn by turn.
import { ApiError, conversationPath, getJson, toApiError } from "../api/client";
import type { PromptExplanationJson, SentTurnJson, StrataJson, TurnStrataJson } from "../api/types";

export class StrataStore {
  turns = $state.raw<TurnStrataJson[]>([]);
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);
  selected = $state<number | null>(null);
  private head = "";
  private requests = 0;

  constructor(readonly key: string) {}

  get current(): TurnStrataJson | undefined {
    return this.turns.find((one) => one.turn === this.selected) ?? this.turns.at(-1);
  }

  /** Loads all turns, or only the last ones if those before are known. */
  async load(): Promise<void> {
    const number = ++this.requests;
    const last = this.turns.at(-1);
    try {
      let body = await getJson<StrataJson>(conversationPath(this.key, last ? `/strata?from=${last.turn}` : "/strata"));
      if (number !== this.requests) return;
      const continues = last !== undefined && body.turns[0]?.message === last.message;
      if (last && !continues) {
        body = await getJson<StrataJson>(conversationPath(this.key, "/strata"));
        if (number !== this.requests) return;
      }
      const follows = this.selected === null || this.selected === last?.turn;
      this.turns = continues ? [...this.turns.slice(0, -1), ...body.turns] : body.turns;
      if (follows) this.selected = this.turns.at(-1)?.turn ?? null;
      this.head = body.head;
      this.error = null;
    } catch (error) {
      if (number === this.requests) this.error = toApiError(error);
    }
    this.loaded = true;
  }

  step(by: number): void {
    const at = this.turns.findIndex((one) => one.turn === this.selected);
    const next = this.turns[Math.max(0, Math.min(this.turns.length - 1, (at < 0 ? this.turns.length - 1 : at) + by))];
    if (next) this.selected = next.turn;
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
