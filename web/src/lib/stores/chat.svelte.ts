// One conversation: its turns, and the answer that is under way. Stores stay when the user switches to another
// conversation, so a stream goes on unseen.
import { ApiError, conversationPath, getJson, sendJson, streamEvents, toApiError, type StreamEvent } from "../api/client";
import { conversations } from "./conversations.svelte";
import type {
  BranchJson,
  CitedSourceJson,
  CompactionMarkerJson,
  ConversationJson,
  PermissionAnswerJson,
  PermissionEventJson,
  StoppedConversationJson,
  SwitchedConversationJson,
  ToolCallJson,
  TurnEstimateJson,
  TurnWithRoundsJson,
  UsageJson,
} from "../api/types";

export interface ToolRow {
  id: string;
  name: string;
  arguments: string;
  output: string | null;
  failed: boolean;
}

export interface RoundView {
  text: string;
  calls: ToolRow[];
}

export type TurnStatus = "done" | "open" | "waiting" | "streaming" | "failed";

/** A question and its answer, stored or under way. */
export interface TurnView {
  id: string;
  question: string;
  at: string;
  attached: string[];
  replyId: string | null;
  answer: string;
  reasoning: string;
  rounds: RoundView[];
  sources: CitedSourceJson[];
  cut: string | null;
  status: TurnStatus;
  notices: string[];
  pendingCalls: ToolCallJson[];
  /** What the model asked whether it may write. */
  permissions: PermissionEventJson[];
  estimate: TurnEstimateJson | null;
  usage: UsageJson | null;
  error: ApiError | null;
  stored: TurnWithRoundsJson | null;
}

/** Why an answer ended, if it did not simply end. */
function unusualEnd(stop: string | null | undefined): string | null {
  return stop && !["end", "tools", "sequence"].includes(stop) ? stop : null;
}

function fromStored(turn: TurnWithRoundsJson): TurnView {
  return {
    id: turn.message,
    question: turn.text,
    at: turn.at,
    attached: turn.attached,
    replyId: turn.reply?.message ?? null,
    answer: turn.reply?.text ?? "",
    reasoning: "",
    rounds: turn.rounds.map((round, index) => ({
      text: round.text,
      calls: round.calls.map((call, number) => ({ ...call, id: `${index}.${number}` })),
    })),
    sources: turn.sources,
    cut: turn.reply?.cut ?? unusualEnd(turn.reply?.stop),
    status: turn.reply ? "done" : "open",
    notices: [],
    pendingCalls: [],
    permissions: [],
    estimate: null,
    usage: null,
    error: null,
    stored: turn,
  };
}

/** How often the text on the page follows the stream. */
const FLUSH_MILLISECONDS = 40;

/** The turn that is under way. Its text grows at most 25 times a second, however many deltas arrive. */
class LiveTurn implements TurnView {
  id = $state("");
  question = $state("");
  at = $state(new Date().toISOString());
  attached = $state.raw<string[]>([]);
  replyId = $state<string | null>(null);
  answer = $state("");
  reasoning = $state("");
  rounds = $state<RoundView[]>([]);
  sources: CitedSourceJson[] = [];
  cut = $state<string | null>(null);
  status = $state<TurnStatus>("waiting");
  notices = $state<string[]>([]);
  pendingCalls = $state.raw<ToolCallJson[]>([]);
  permissions = $state.raw<PermissionEventJson[]>([]);
  estimate = $state.raw<TurnEstimateJson | null>(null);
  usage = $state.raw<UsageJson | null>(null);
  error = $state.raw<ApiError | null>(null);
  stored: TurnWithRoundsJson | null = null;
  lastEventId: string | null = null;
  /** Whether this page asked the question, and not another tab or program. */
  isOwn = false;
  private text = "";
  private thoughts = "";
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(question: string, attached: string[] = []) {
    this.question = question;
    this.attached = attached;
  }

  /** Forgets what arrived, before a stream is replayed from its start. */
  reset(): void {
    this.text = this.thoughts = this.answer = this.reasoning = "";
    this.rounds = [];
    this.notices = [];
    this.permissions = [];
  }

  apply(event: StreamEvent): void {
    if (event.id) this.lastEventId = event.id;
    switch (event.name) {
      case "envelope":
        this.id = event.data.message;
        this.estimate = event.data;
        if (this.status === "waiting") this.status = "streaming";
        break;
      case "delta":
        this.text += event.data.text;
        this.schedule();
        break;
      case "reasoning":
        this.thoughts += event.data.text;
        this.schedule();
        break;
      case "tool":
        this.applyTool(event.data.call, event.data.output);
        break;
      case "usage":
        this.usage = event.data;
        break;
      case "retry":
      case "note":
        this.notices.push(event.data.said);
        break;
      case "compaction":
        this.notices.push(event.data.said || "The conversation was compacted before this turn.");
        break;
      case "permission":
        this.permissions = [...this.permissions.filter((one) => one.id !== event.data.id), event.data];
        break;
      case "cold":
        this.notices.push("The cache had expired, so all of the prompt was read again.");
        break;
      case "done":
        this.flush();
        this.replyId = event.data.reply;
        this.cut = event.data.cut;
        this.pendingCalls = event.data.calls;
        this.status = "done";
        break;
      case "error":
        this.flush();
        this.error = new ApiError(0, event.data.error.code, event.data.error.message, event.data.error.hint ?? "");
        this.status = "failed";
        break;
    }
  }

  private applyTool(call: ToolCallJson | null, output: { call: string; output: string; failed: boolean } | null): void {
    this.flush();
    if (call) {
      let round = this.rounds.at(-1);
      if (!round || this.text || round.calls.every((one) => one.output !== null)) {
        this.rounds.push({ text: this.text, calls: [] });
        round = this.rounds.at(-1);
        this.text = this.answer = "";
      }
      round?.calls.push({ id: call.id, name: call.name, arguments: call.arguments, output: null, failed: false });
    }
    if (output) {
      const row = this.rounds.flatMap((one) => one.calls).find((one) => one.id === output.call);
      if (row) [row.output, row.failed] = [output.output, output.failed];
    }
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MILLISECONDS);
  }

  private flush(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.answer = this.text;
    this.reasoning = this.thoughts;
  }
}

const RETRY_MILLISECONDS = [500, 1000, 2000, 4000, 8000];

export class ChatStore {
  title = $state("");
  name = $state("");
  head = $state("");
  stored = $state.raw<TurnView[]>([]);
  branches = $state.raw<BranchJson[]>([]);
  compactions = $state.raw<CompactionMarkerJson[]>([]);
  live = $state.raw<LiveTurn | null>(null);
  /** The turns that the live one replaces begin here. */
  private keepBefore = $state<number | null>(null);
  loaded = $state(false);
  error = $state.raw<ApiError | null>(null);
  /** Text that could not be sent; the composer takes it back. */
  returned = $state("");
  /** Counts up whenever what the next request has may have changed. */
  version = $state(0);
  turns = $derived.by(() => {
    const live = this.live;
    if (!live) return this.stored;
    const kept = this.keepBefore === null ? this.stored : this.stored.slice(0, this.keepBefore);
    return [...kept.filter((one) => one.id !== live.id), live as TurnView];
  });
  /** The requests of the model that wait for a yes or a no. */
  asks = $derived(this.live && ["waiting", "streaming"].includes(this.live.status) ? this.live.permissions.filter((one) => one.allowed === null) : []);
  busy = $derived(this.live !== null && (this.live.status === "waiting" || this.live.status === "streaming"));

  constructor(readonly key: string) {}

  async load(): Promise<void> {
    try {
      const body = await getJson<ConversationJson>(conversationPath(this.key));
      this.title = body.title;
      this.name = body.name;
      this.head = body.head;
      this.branches = body.branches;
      this.compactions = body.compactions;
      this.stored = body.turns.map(fromStored);
      this.error = null;
      this.version++;
      if (body.running?.message && !this.live) void this.follow(body.running.message);
    } catch (error) {
      this.error = toApiError(error);
    }
    this.loaded = true;
  }

  /** Loads again what another tab or program may have changed. Its turns come only if they are others. */
  async refresh(): Promise<void> {
    if (this.busy || !this.loaded) return;
    if (this.error) return this.load();
    try {
      const body = await getJson<ConversationJson>(conversationPath(this.key, "?from=1&to=0"));
      if (this.busy) return;
      const last = this.stored.at(-1);
      const active = body.branches.find((one) => one.active)?.last;
      const isSame =
        !body.running &&
        body.head === this.head &&
        body.count === this.stored.length &&
        body.branches.length === this.branches.length &&
        (active?.message ?? "") === (last?.id ?? "") &&
        (active?.reply?.message ?? null) === (last?.replyId ?? null);
      if (!isSame) return await this.load();
      this.title = body.title;
      this.version++;
    } catch (error) {
      this.error = toApiError(error);
    }
  }

  async send(text: string, options: { model?: string; runner?: string; attached?: string[] } = {}): Promise<void> {
    const body = { text, ...(options.model ? { model: options.model } : {}), ...(options.runner ? { runner: options.runner } : {}) };
    await this.run(new LiveTurn(text, options.attached ?? []), "POST", "/messages", body);
  }

  async edit(message: string, text: string): Promise<void> {
    const at = this.stored.findIndex((one) => one.id === message);
    await this.run(new LiveTurn(text, this.stored[at]?.attached), "PUT", `/messages/${message}`, { text }, at);
  }

  async regenerate(message: string): Promise<void> {
    const at = this.stored.findIndex((one) => one.id === message);
    const turn = this.stored[at];
    if (turn) await this.run(new LiveTurn(turn.question, turn.attached), "POST", `/messages/${message}/regenerate`, {}, at);
  }

  async resume(): Promise<void> {
    const at = this.stored.length - 1;
    const turn = this.stored[at];
    if (turn) await this.run(new LiveTurn(turn.question, turn.attached), "POST", "/resume", {}, at);
  }

  async submitResults(message: string, outputs: { call: string; output: string; failed: boolean }[]): Promise<void> {
    const at = this.stored.findIndex((one) => one.id === message);
    const turn = this.stored[at];
    if (turn) await this.run(new LiveTurn(turn.question, turn.attached), "POST", `/messages/${message}/results`, { outputs }, at);
  }

  async stop(): Promise<void> {
    try {
      await sendJson<StoppedConversationJson>("POST", conversationPath(this.key, "/stop"));
    } catch (error) {
      this.error = toApiError(error);
    }
  }

  /** Has the model name a new chat, once it has answered. A chat that has a title or a name keeps it. */
  private async writeTitle(): Promise<void> {
    try {
      this.title = await conversations.writeTitle(this.key, true);
      this.version++;
    } catch {
      // The first question stays the title.
    }
  }

  /** Lets the model write what it asked for, or not. */
  async answerPermission(id: string, allowed: boolean): Promise<void> {
    try {
      await sendJson<PermissionAnswerJson>("POST", conversationPath(this.key, `/permissions/${id}`), { allowed });
    } catch (error) {
      this.error = toApiError(error);
    }
  }

  async switchTo(head: string): Promise<void> {
    await this.change(() => sendJson<SwitchedConversationJson>("POST", conversationPath(this.key, "/switch"), { head }));
  }

  async fork(message: string): Promise<void> {
    await this.change(() => sendJson<SwitchedConversationJson>("POST", conversationPath(this.key, "/fork"), { message }));
  }

  async deleteMessage(message: string): Promise<void> {
    await this.change(() => sendJson("DELETE", conversationPath(this.key, `/messages/${message}`)));
  }

  private async change(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
      await this.load();
    } catch (error) {
      this.error = toApiError(error);
    }
  }

  dismissError(): void {
    this.error = null;
    if (this.live?.status === "failed") this.live = null;
  }

  /** Shows an answer that was begun elsewhere, or before the page was loaded. */
  private async follow(message: string): Promise<void> {
    const turn = this.stored.find((one) => one.id === message);
    const live = new LiveTurn(turn?.question ?? "", turn?.attached);
    live.id = message;
    live.status = "streaming";
    this.live = live;
    this.keepBefore = null;
    await this.listen(live, () => this.continueStream(live));
  }

  private continueStream(live: LiveTurn): AsyncGenerator<StreamEvent> {
    const after = live.lastEventId;
    if (!after) live.reset();
    return streamEvents("GET", conversationPath(this.key, `/messages/${live.id}/events${after ? `?after=${encodeURIComponent(after)}` : ""}`));
  }

  private async run(live: LiveTurn, method: "POST" | "PUT", path: string, body: object, replacesFrom: number | null = null): Promise<void> {
    if (this.busy) return;
    this.error = null;
    live.isOwn = true;
    this.live = live;
    this.keepBefore = replacesFrom;
    await this.listen(live, () => streamEvents(method, conversationPath(this.key, path), { ...body, permissions: true }));
    if (live.status === "failed" && !live.id) {
      // Nothing was stored: the text goes back to where it was typed.
      this.error = live.error;
      if (path === "/messages") this.returned = live.question;
      this.live = null;
    }
  }

  /** Applies the events of a stream, and goes on where it broke off. */
  private async listen(live: LiveTurn, open: () => AsyncGenerator<StreamEvent>): Promise<void> {
    let events = open();
    let announced = false;
    for (let tries = 0; ; ) {
      try {
        for await (const event of events) {
          tries = 0;
          live.apply(event);
          if (event.name === "envelope" && !announced) {
            announced = true;
            this.version++;
          }
        }
      } catch (error) {
        const failed = toApiError(error);
        if (!live.id || failed.status >= 400) {
          live.error = failed;
          live.status = "failed";
        }
      }
      if (live.status === "done" || live.status === "failed") break;
      if (!live.id || tries >= RETRY_MILLISECONDS.length * 8) {
        live.error ??= new ApiError(0, "offline", "The answer broke off.", "Reload the page to see what is stored.");
        live.status = "failed";
        break;
      }
      const wait = RETRY_MILLISECONDS[Math.min(tries++, RETRY_MILLISECONDS.length - 1)] ?? 8000;
      await new Promise((resolve) => setTimeout(resolve, wait));
      events = this.continueStream(live);
    }
    await this.settle(live);
  }

  /** Replaces the live turn by the stored one. */
  private async settle(live: LiveTurn): Promise<void> {
    if (live.id) {
      await this.load();
      const stored = this.stored.findIndex((one) => one.id === live.id);
      const turn = this.stored[stored];
      if (turn) {
        const kept: TurnView = {
          ...turn,
          reasoning: live.reasoning,
          notices: [...live.notices],
          estimate: live.estimate,
          usage: live.usage,
          pendingCalls: live.pendingCalls,
          permissions: live.permissions,
          error: live.error,
          status: live.status === "failed" ? "failed" : turn.status,
        };
        this.stored = this.stored.with(stored, kept);
        this.live = null;
        if (this.stored.length === 1 && kept.status === "done" && !kept.cut && live.isOwn) void this.writeTitle();
      }
    }
    this.keepBefore = null;
    this.version++;
  }
}

const stores = new Map<string, ChatStore>();

/** Returns the store of a conversation, always the same one. */
export function getChat(key: string): ChatStore {
  return stores.get(key) ?? makeChat(key);
}

function makeChat(key: string): ChatStore {
  // Outside of the component that asks first: what is derived in a component ends with it.
  const made: ChatStore[] = [];
  $effect.root(() => {
    made.push(new ChatStore(key));
  });
  const store = made[0] as ChatStore;
  stores.set(key, store);
  return store;
}

export function findChat(key: string): ChatStore | undefined {
  return stores.get(key);
}

export function forgetChat(key: string): void {
  stores.delete(key);
}
