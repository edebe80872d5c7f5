// Generated from the OpenAPI document by `make web`. Do not edit.

/** A line of the memory that was added; ``new`` if it was not there before. */
export interface AddedFactJson {
  id: string;
  kind: string;
  text: string;
  /** Key of the conversation that it is about. */
  chat: string | null;
  new: boolean;
}

/** The active user rules, and the one that was added. */
export interface AddedRuleJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  rules: Array<RuleJson>;
  added: RuleJson;
}

/** A complete answer in the format of Anthropic's API. */
export interface AnthropicMessageJson {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>;
}

/** The decision, of which 200 characters are kept; by default the recorded data. */
export interface ApproveBody {
  decision?: string;
}

/** An attached artifact, with its current form. */
export interface ArtifactJson {
  id: string;
  kind: string;
  title: string;
  form: string;
  tokens: number;
  in_working_set: boolean;
  /** Whether a cache is expected to have all of it. */
  cached: boolean | null;
  /** Turns since it was last attached. */
  age_turns: number;
  /** Tokens that detaching it removes from the next request. */
  saves: number;
  /** Whether it is attached with the next turn. */
  waits: boolean;
  policy: string | null;
  /** The folder or tag that brought it. */
  via: string | null;
  /** Notes of a folder or tag that are not sent. */
  left_out: Array<string>;
}

/** Attachments for the next turn, which are read now. */
export interface AttachRequestBody {
  attach: Array<AttachmentBody | string>;
  /** Of a folder that does not fit, what speaks of this comes first. */
  question?: string;
}

/** An attachment by the fields of its kind; without text it is read from the vault or fetched. */
export interface AttachmentBody {
  kind: string;
  path?: string | null;
  url?: string | null;
  tag?: string | null;
  query?: string | null;
  question?: string | null;
  lines?: [number, number] | null;
  text?: string | null;
  title?: string | null;
  policy?: string | null;
  /** The bytes of a picture in base64. */
  data?: string | null;
  media_type?: string | null;
  fresh?: boolean | null;
}

/** The attachments of a conversation changed between two turns. */
export interface AttachmentsEventJson {
  conversation: string;
}

export interface Body_attach_files_v1_conversations__conversation__attachments_files_post {
  /** Pictures and texts. */
  files: Array<string>;
}

/** A branch by its last message. */
export interface BranchJson {
  branch: string;
  active: boolean;
  /** Number of turns. */
  turns: number;
  last: TurnJson | null;
}

/** The used and free tokens of the window. */
export interface BudgetJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  tokens: TokenCountsJson;
  /** Tokens that are free. */
  left: number;
}

/** What to do with several conversations. */
export type BulkAction = "archive" | "unarchive" | "erase";

/** Several conversations, and what to do with them. */
export interface BulkBody {
  action: BulkAction;
  conversations: Array<string>;
}

/** Three numbers about the cache: same bytes, predicted, and reported. None of them implies another. */
export interface CacheComparisonJson {
  /** Tokens that the previous request began with, too. */
  same: number;
  /** Tokens that the cache was expected to serve. */
  predicted: number | null;
  /** Tokens that the provider read from its cache; null if unknown. */
  reported: number | null;
}

/** The cache expired before the message: what that costs as it is, and after a fold. */
export interface CacheExpiredEventJson {
  cold: ExpiredCacheJson;
}

/** What a cache miss cost. */
export interface CacheMissJson {
  /** Input tokens that the previous request left in the cache, and that were processed again. */
  tokens: number;
  /** How much more they cost than if the cache had served them. */
  cost: string | null;
}

/** The expected cost of a call, and its cost with a perfect cache. */
export interface CallCostJson {
  currency: "USD";
  /** US dollars in plain digits. */
  amount: string | null;
  /** US dollars in plain digits. */
  naive: string | null;
  /** US dollars in plain digits. */
  limit: string | null;
}

/** The result of a tool call. */
export interface CallOutputJson {
  /** Id of the call. */
  call: string;
  output: string;
  failed: boolean;
}

/** The duration of a call in seconds: to build the request, until the first token, and in total. */
export interface CallTimingJson {
  build: number | null;
  first: number | null;
  total: number | null;
  /** Parts of `build`: `read`, `store`, `plan`, `compaction`, `count` and `render`. Those of no measurable time are left out. */
  phases: Record<string, number>;
}

/** The number of texts still in the prompt, recallable, and gone. */
export interface CertificateCountsJson {
  /** Still in the prompt. */
  stand: number;
  /** Not in the prompt, but recall finds them. */
  recallable: number;
  gone: number;
}

/** Counts for the exact texts and the user rules in the messages that a compaction changed. */
export interface CertificateJson {
  /** Names, numbers and paths. */
  words: CertificateCountsJson;
  rules: CertificateCountsJson;
}

/** A new title, or whether the conversation is archived. */
export interface ChangeConversationBody {
  title?: string | null;
  /** Whether lists leave it out. */
  archived?: boolean | null;
}

/** The conversations that were changed together, and those that could not be. */
export interface ChangedConversationsJson {
  /** Version of the format. */
  lamella: 1;
  /** Keys of the conversations. */
  done: Array<string>;
  failed: Array<FailedItemJson>;
}

/** A complete answer in the format of OpenAI's chat API. */
export interface ChatCompletionJson {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: Array<CompletionChoiceJson>;
  usage?: Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>;
}

/** A request of OpenAI's Chat Completions API. */
export interface ChatCompletionRequest {
  messages: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  model?: string;
  stream?: boolean;
  lamella?: LamellaOptions;
}

/** A selected file with its content. */
export interface ChosenFileJson {
  path: string;
  content: string;
  form: string;
  tokens: number;
}

/** The source that a number in a reply cites. */
export interface CitedSourceJson {
  number: number;
  id: string;
  title: string;
  path: string;
  place: string;
  /** The cited passage; null if it was erased. */
  text: string | null;
}

/** A question, and the client's history and state of the conversation. */
export interface CodeQuestionBody {
  /** One that may be named here; else the usual one. */
  model?: string | null;
  /** Files with `path` and `content`, or contents by path. */
  codebase?: Array<JsonValue> | Record<string, JsonValue> | null;
  /** Within how many tokens files are chosen. */
  filterMaxTokensCount?: number | null;
  /** Ignored; neither stored nor logged. */
  apiKey?: JsonValue;
  /** Ignored; neither stored nor logged. */
  userId?: JsonValue;
  /** Ignored; neither stored nor logged. */
  isPremium?: JsonValue;
  prompt?: string | null;
  messages?: Array<JsonValue> | null;
  codeSnippet?: string | null;
  useTemplate?: boolean | null;
  isCodebaseAnalysis?: boolean | null;
  kind?: CodeTask | null;
  chatState?: Record<string, JsonValue> | null;
  /** Where it is kept; else nowhere. */
  conversation?: string | null;
  maxTokens?: number | null;
}

/** The task that a turn of a chat about code asks for. The values are part of requests, stored state and command names. */
export type CodeTask = "regular" | "codebase" | "explain" | "problems" | "tests" | "optimise" | "comment" | "complete" | "fix";

/** The pending commands after a command, and their effect on the next request. */
export interface CommandResultJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  waiting: PendingCommandsJson;
  /** Messages for the user. */
  said: Array<string>;
  next: NextRequestJson;
}

/** The target size and the range; with a receipt, only if the plan is still the same. */
export interface CommitBody {
  /** Target size as a share of the context window. */
  to?: number | null;
  /** Only from here on; every byte before it stays. */
  since?: string | null;
  /** Only up to here. */
  until?: string | null;
  receipt?: string | null;
}

/** Another compaction was necessary. */
export interface CompactionEventJson {
  said: string;
  receipt: ReceiptJson | null;
}

/** The position of a compaction, or of an undo, in a conversation. */
export interface CompactionMarkerJson {
  /** The message after which it happened. */
  message: string;
  /** Null for an undo. */
  receipt: ReceiptJson | null;
  /** Whether the compaction was undone later. */
  undone: boolean;
  /** Receipts that an undo voided. */
  voided: Array<string>;
}

/** A choice of a completion. */
export interface CompletionChoiceJson {
  index: number;
  message: Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>;
  finish_reason: string | null;
}

/** A conversation in the list changed. */
export interface ConversationEventJson {
  /** Key of the conversation. */
  conversation: string;
  name: string;
  title: string;
  change: "changed" | "created" | "erased";
  /** RFC 3339, UTC. */
  updated: string;
  events: number;
}

/** A conversation: the turns of a branch, all branches, and the running turn. */
export interface ConversationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  title: string;
  head: string;
  branches: Array<BranchJson>;
  running: RunInProgressJson | null;
  /** Number of turns of the branch. */
  count: number;
  turns: Array<TurnWithRoundsJson>;
  compactions: Array<CompactionMarkerJson>;
}

/** Conversations, the last changed first. */
export interface ConversationListJson {
  /** Version of the format. */
  lamella: 1;
  /** Also counts those that are not shown; only over HTTP. */
  total?: number;
  chats: Array<ConversationSummaryJson>;
}

/** The memory in the prompt of a conversation; empty if there is none. */
export interface ConversationMemoryJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  text: string;
}

/** A conversation's own settings, and all effective ones. */
export interface ConversationSettingsJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  settings: Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>;
  in_force: Record<string, ResolvedSettingJson>;
}

/** A conversation in a list. */
export interface ConversationSummaryJson {
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  title: string;
  /** RFC 3339, UTC. */
  created: string;
  /** RFC 3339, UTC. */
  updated: string;
  events: number;
  /** Whether lists leave it out unless asked; only over HTTP. */
  archived?: boolean;
}

/** The cost of a compaction now, and its later savings. */
export interface CostEstimateJson {
  /** Cached tokens that must be sent again. */
  moved: number;
  /** US dollars in plain digits. */
  cost_now: string | null;
  /** US dollars in plain digits. */
  saved_per_turn: string | null;
}

/** The expected cost of a request, and its cost in the naive layout. The naive layout repeats every attachment in force in the last message of each request. */
export interface CostJson {
  currency: "USD";
  /** US dollars in plain digits. */
  amount: string | null;
  /** US dollars in plain digits. */
  naive: string | null;
}

/** A new conversation. */
export interface CreateConversationBody {
  name?: string | null;
  title?: string | null;
  model?: string | null;
  settings?: Record<string, JsonValue>;
}

/** A conversation that was created or renamed. */
export interface CreatedConversationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  title: string;
}

/** A response that was deleted. */
export interface DeletedResponseJson {
  id: string;
  deleted: boolean;
}

/** More text of the answer, or of the model's reasoning. */
export interface DeltaEventJson {
  text: string;
}

/** The provider's own diagnosis of a cache miss. */
export interface DiagnosisJson {
  verdict: string;
  reason: string | null;
  /** In tokens. */
  missed: number | null;
}

/** The decision of a stage. */
export interface DigestLineJson {
  stage: string;
  label: string;
  decision: string;
  attempt: number;
  superseded: boolean;
}

/** What the document of a workflow lacks. */
export interface DocumentCheckJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  title: string;
  /** The headings of its sections, in order. */
  sections: Array<string>;
  problems: Array<DocumentProblemJson>;
}

/** Something that a document lacks. */
export interface DocumentProblemJson {
  code: string;
  message: string;
}

/** The answer is stored. */
export interface DoneEventJson {
  /** Tool calls that the client must run. */
  calls: Array<ToolCallJson>;
  conversation: string;
  message: string | null;
  reply: string | null;
  stopped: boolean;
  /** Why the answer is cut: `stopped`, `interrupted`, `broken`, or null. Resume continues it. */
  cut: string | null;
}

/** A request that a turn with tools sent before its last one. */
export interface EarlierRequestJson {
  tokens: number;
  cache: ExpectedCacheUseJson | null;
  /** Null without a known price. */
  cost: CostJson | null;
}

/** A new text for a question. */
export interface EditBody {
  stream?: boolean;
  /** Wait for the turn that is under way, in place of 409. */
  queue?: boolean;
  /** Ask before a model writes a note or a fact, with the event `permission`, and wait for `POST …/permissions/{id}`. Without it, what needs a yes is not written. */
  permissions?: boolean;
  max_tokens?: number | null;
  text: string;
}

/** A request by layers, from the most stable to the most volatile; its messages are a field of the turn. */
export interface EnvelopeJson {
  version: number;
  conversation_id: string;
  message_id: string;
  /** How often the history was folded. */
  epoch: number;
  layers: Array<LayerJson>;
  prefix_hash: string;
  hash: string;
  /** Artifacts that were dropped from the prompt. */
  dropped: Array<string>;
  warnings: Array<string>;
  /** Why this layout was chosen; only of a layout chosen by cost. */
  why?: string;
}

/** An erased conversation, of which only a tombstone is left. */
export interface ErasedConversationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  erased: boolean;
}

/** An error: what happened, and what to do next. */
export interface ErrorDetailJson {
  code: string;
  message: string;
  hint: string;
  /** Only with the code `busy`. */
  running?: RunningTurnJson;
}

/** The body of every error. */
export interface ErrorJson {
  error: ErrorDetailJson;
}

/** A table with columns and rows, or a figure with a PNG or JPEG in base64. */
export interface ExhibitBody {
  caption: string;
  columns?: Array<string>;
  rows?: Array<Array<string>>;
  /** The image of a figure. */
  image?: string | null;
}

/** Tokens that the cache is expected to serve, tokens that it is expected to store, and the rest. */
export interface ExpectedCacheUseJson {
  read: number;
  write: number;
  uncached: number;
}

/** A cache that has expired or soon will: the cost of the next message as it is, and after a fold. */
export interface ExpiredCacheJson {
  /** Whether it has expired. */
  lapsed: boolean;
  /** When it expires or expired. */
  lapses_at: string;
  /** Tokens of the next request as it is. */
  tokens: number;
  /** US dollars in plain digits. */
  cost: string | null;
  /** Tokens of the next request after a fold. */
  folded_tokens: number;
  /** US dollars in plain digits. */
  folded_cost: string | null;
  /** Whether Lamella folds the next request by itself. */
  folds: boolean;
  /** A keep-alive that pays; null if there is none. */
  keep: KeepAliveJson | null;
}

/** A cache miss that something caused, and what it cost. */
export interface ExplainedCacheMissJson {
  /** Number of the turn, from 1. */
  turn: number;
  why: string;
  /** Input tokens that the previous request left in the cache, and that were processed again. */
  tokens: number;
  /** How much more they cost than if the cache had served them. */
  cost: string | null;
}

/** One fact, on one line. */
export interface FactBody {
  text: string;
}

/** A line of the memory. */
export interface FactJson {
  id: string;
  kind: string;
  text: string;
  /** Key of the conversation that it is about. */
  chat: string | null;
}

/** An item for which a command failed. */
export interface FailedItemJson {
  item: string;
  error: ErrorDetailJson;
}

/** Files, and the question to select them for. */
export interface FileSelectionBody {
  /** One that may be named here; else the usual one. */
  model?: string | null;
  /** Files with `path` and `content`, or contents by path. */
  codebase?: Array<JsonValue> | Record<string, JsonValue> | null;
  /** Within how many tokens files are chosen. */
  filterMaxTokensCount?: number | null;
  /** Ignored; neither stored nor logged. */
  apiKey?: JsonValue;
  /** Ignored; neither stored nor logged. */
  userId?: JsonValue;
  /** Ignored; neither stored nor logged. */
  isPremium?: JsonValue;
  question?: string | null;
  prompt?: string | null;
  filterType?: "regularFilter";
}

/** The files that were selected for a request, with their contents. */
export interface FilterResponseJson {
  /** Version of the format. */
  lamella: 1;
  root: string;
  question: string;
  budget: number;
  tokens: number;
  files: Array<RankedFileJson>;
  left_out: Array<OmittedFileJson>;
  /** The files as a model reads them. */
  text: string;
  /** Warnings. */
  told: Array<string>;
  /** Without files of which only the name is included. */
  data: Array<ChosenFileJson>;
  tokensUsed: number;
  /** Fields of the request that were ignored. */
  ignored: Array<string>;
  /** Why fields were ignored, if there are any. */
  ignoredBecause?: string;
}

/** A finished turn: its answer, tool calls that the client must run, and its last model call. */
export interface FinishedTurnJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  /** The id of the question. */
  message: string;
  /** The id of the answer; null while calls wait for the client. */
  reply: string | null;
  answer: string;
  calls: Array<ToolCallJson>;
  stopped: boolean;
  /** Why the answer is cut: `stopped`, `interrupted`, `broken`, or null. Resume continues it. */
  cut: string | null;
  warnings: Array<string>;
  call: ModelCallJson | null;
}

/** The message to continue from; a name makes it a separate conversation, otherwise it is a branch. */
export interface ForkBody {
  message: string;
  name?: string | null;
}

/** The state of the process: whether it answers, or accepts requests. */
export interface HealthJson {
  status: "ok" | "ready" | "stopping";
}

/** A message in the format of the client's history. */
export interface HistoryMessageJson {
  role: string;
  content: string;
}

/** A conversation as a markdown archive. */
export interface ImportBody {
  archive: string;
}

/** The result of an import. */
export interface ImportedConversationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  /** `new`, `extended`, `same`, `older` or `diverged`. */
  outcome: string;
  warnings: Array<string>;
}

/** Notes are being indexed for the search, which takes a while. The last event has all of them done. */
export interface IndexingEventJson {
  done: number;
  /** Files that have to be read. */
  total: number;
}

export type JsonValue = unknown;

/** The cost and the time of a keep-alive: sending the last request again before the cache expires. */
export interface KeepAliveJson {
  /** RFC 3339, UTC. */
  due_at: string;
  tokens: number;
  /** US dollars in plain digits. */
  cost: string | null;
  /** Probability that the user returns before the cache expires anyway. */
  chance: number;
}

/** The result of a keep-alive: whether the last request was sent again, and the expired cache or null. */
export interface KeepAliveResultJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  sent: boolean;
  cold: ExpiredCacheJson | null;
}

/** Options for Lamella, for clients that cannot set headers. */
export interface LamellaOptions {
  conversation?: string;
  recall?: boolean;
}

/** One of the five layers. */
export interface LayerJson {
  id: "L1_SYSTEM" | "L2_PREVIOUS" | "L3_TURN" | "L4_STRIP" | "L5_USER";
  /** Left out if it was not asked for. */
  text?: string;
  hash: string;
  tokens: number;
  segments: Array<SegmentJson>;
}

/** The layout plan that was chosen by cost, and the reason. */
export interface LayoutPlanJson {
  why: string;
  /** How many messages of the previous request stay; null for all. */
  keep: number | null;
  /** How many pieces of the first message after those stay, too. */
  within: number;
  /** Order of moved texts, if it is not the first one. */
  order?: Array<string>;
  /** Changed artifacts that are shown in full. */
  whole: Array<string>;
  /** Messages with a cache breakpoint, besides the last one. */
  marks: Array<number>;
  /** Up to this message, breakpoints ask for the longer lifetime. */
  lasting: number | null;
  /** The last message that the cache is expected to serve. */
  served: number | null;
  /** Expected cost, in tokens of uncached input. */
  expected: number | null;
  /** Expected cost of the next best plan. */
  next_best: number | null;
}

/** Every turn with its calls, and the totals. */
export interface LedgerJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  turns: Array<LedgerTurnJson>;
  totals: LedgerTotalsJson;
  /** Turns whose prefix changed without a known cause. */
  unexplained: Array<number>;
  /** Models whose profiles are wrong. */
  doubts: Array<ProfileMismatchJson>;
}

/** Totals over all calls; a total is null if no call has the value. */
export interface LedgerTotalsJson {
  turns: number;
  calls: number;
  /** Calls that produced no answer, such as summaries. */
  asides: number;
  /** Tokens that the cache was expected to serve. */
  predicted: number | null;
  read: number | null;
  write: number | null;
  plain: number | null;
  output: number | null;
  /** Share of the input that the cache served. */
  cache_read_share: number | null;
  /** What all cache misses cost; null without one. */
  miss: CacheMissJson | null;
  /** US dollars in plain digits. */
  billed: string | null;
  /** US dollars in plain digits. */
  cost: string | null;
  /** US dollars in plain digits. */
  naive_cost: string | null;
  /** US dollars in plain digits. */
  limit_cost: string | null;
  /** Calls that the amounts do not include. */
  unpriced_calls: number;
  seconds: number | null;
  retries: number;
}

/** A turn with its model calls. */
export interface LedgerTurnJson {
  turn: number;
  message: string;
  /** RFC 3339, UTC. */
  at: string;
  /** `waiting`, `called`, `no_call` or `unanswered`. */
  standing: string;
  sent: RequestFingerprintJson | null;
  placement: LayoutPlanJson | null;
  calls: Array<ModelCallJson>;
  /** What its cache misses cost; null without one. */
  miss: CacheMissJson | null;
  /** Unused tool results that were cleared for this turn. */
  cuts: Array<ResultCutJson>;
}

/** All attached artifacts, the pending commands, and the expired cache; null while the cache is valid. */
export interface LibraryJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  artifacts: Array<ArtifactJson>;
  waiting: PendingCommandsJson;
  cold: ExpiredCacheJson | null;
}

/** An access token. */
export interface LoginBody {
  token: string;
}

/** All lines of the memory. */
export interface MemoryJson {
  /** Version of the format. */
  lamella: 1;
  /** Folder of the memory; empty over HTTP. */
  folder: string;
  facts: Array<NumberedFactJson>;
}

/** A tool call within a message. */
export interface MessageCallJson {
  id: string;
  name: string;
  arguments: string;
}

/** A message that contains the words. */
export interface MessageHitJson {
  conversation: string;
  name: string;
  title: string;
  message: string;
  role: string;
  excerpt: string;
  /** Number of the turn; null on a branch that is not active. */
  turn: number | null;
}

/** Messages that contain the words. */
export interface MessageHitListJson {
  /** Version of the format. */
  lamella: 1;
  hits: Array<MessageHitJson>;
  /** Why a conversation was not searched. */
  error?: ErrorDetailJson;
}

/** A request of Anthropic's Messages API. */
export interface MessagesRequest {
  messages: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  max_tokens: number;
  model?: string;
  stream?: boolean;
  lamella?: LamellaOptions;
}

/** The prefix cache of a model. */
export interface ModelCacheJson {
  /** Tokens of the shortest prefix that it keeps. */
  minimum: number;
  /** Seconds until an entry expires; null if it does not. */
  lifetime: number | null;
}

/** One call to a model; unknown values are null. */
export interface ModelCallJson {
  purpose: string;
  model: string | null;
  verdict: VerdictJson;
  /** The expected use of the cache. */
  predicted: ExpectedCacheUseJson | null;
  reported: UsageJson;
  /** Cached tokens by layer. */
  by_layer: Record<string, number>;
  /** The cost of the reported usage. */
  billed: string | null;
  cost: CallCostJson | null;
  seconds: CallTimingJson;
  /** Why the reply ended. */
  stop: string;
  /** The provider's id of the reply. */
  id: string | null;
  diagnosis: DiagnosisJson | null;
  /** Failed attempts before. */
  retries: number;
}

/** An available model, with the fields of the OpenAI and Anthropic APIs. */
export interface ModelJson {
  id: string;
  object: "model";
  type: "model";
  display_name: string;
  /** Always 0: Lamella does not know the date, which clients expect. */
  created: number;
  created_at: string;
  owned_by: string;
  /** Whether new conversations use it. */
  usual: boolean;
  /** Tokens of its context window; null if unknown. */
  window: number | null;
  /** Today's; null if unknown. */
  prices: ModelPricesJson | null;
  /** Whether it accepts pictures; null if unknown. */
  images: boolean | null;
  /** Whether it calls tools; null if unknown. */
  tools: boolean | null;
  /** Whether it runs in the server's process. */
  local: boolean;
  cache: ModelCacheJson;
}

/** Models that every caller may name. */
export interface ModelListJson {
  /** Version of the format. */
  lamella: 1;
  object: "list";
  data: Array<ModelJson>;
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}

/** Prices per million tokens. */
export interface ModelPricesJson {
  currency: "USD";
  input: string;
  /** Input that the cache serves. */
  cached: string;
  /** Input that the cache stores. */
  cache_write: string;
  output: string;
}

/** Names in the vault that a word may become. */
export interface NameCompletionsJson {
  /** Version of the format. */
  lamella: 1;
  query: string;
  /** Paths of notes that contain the word. */
  names: Array<string>;
  /** Folders whose path contains the word, with a slash. */
  folders: Array<string>;
  /** Tags that begin with the word, without `#`. */
  tags: Array<string>;
  /** Of a word such as `note#head`: the path of the note, `#` and the heading. */
  headings: Array<string>;
}

/** Artifacts by id; for pins also messages. */
export interface NamesBody {
  names: Array<string>;
}

/** Tokens and cost of the next request, and the difference to before. */
export interface NextRequestJson {
  tokens: number;
  limit: number;
  more_tokens: number;
  /** US dollars in plain digits. */
  cost: string | null;
  /** US dollars in plain digits. */
  more_cost: string | null;
}

/** A message for the user. */
export interface NoteEventJson {
  said: string;
}

/** A passage of the vault. */
export interface NoteHitJson {
  path: string;
  heading: string;
  text: string;
  score: number;
  why: string;
  id: string;
  title: string;
  excerpt: string;
}

/** Passages of the vault, best first. */
export interface NoteHitsJson {
  /** Version of the format. */
  lamella: 1;
  query: string;
  hits: Array<NoteHitJson>;
  unread: Array<UnreadFileJson>;
}

/** A line of the memory, with the number that requests may use for it. */
export interface NumberedFactJson {
  id: string;
  kind: string;
  text: string;
  /** Key of the conversation that it is about. */
  chat: string | null;
  number: number;
}

/** A file that was left out, and why. */
export interface OmittedFileJson {
  path: string;
  reason: string;
}

/** Artifacts by id; an empty list means all. */
export interface OptionalNamesBody {
  names?: Array<string>;
  /** Of a folder that does not fit, what speaks of this comes first. */
  question?: string;
}

/** An artifact that is attached with the next turn. */
export interface PendingArtifactJson {
  id: string;
  kind: string;
  title: string;
  form: string;
  tokens: number | null;
}

/** The pending commands for the next turn. */
export interface PendingCommandsJson {
  attach: Array<PendingArtifactJson>;
  detach: Array<string>;
  drop: Array<string>;
  pin: Array<string>;
  unpin: Array<string>;
  /** Texts of rules to add. */
  rules: Array<string>;
  /** Ids of rules to remove. */
  ended_rules: Array<string>;
}

/** The user's answer to a model that wants to write. */
export interface PermissionAnswerBody {
  allowed: boolean;
}

/** An answer to a permission request, which was passed on to the turn that waits. */
export interface PermissionAnswerJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  permission: string;
  allowed: boolean;
}

/** A change that a model wants to write, and the user's answer once there is one. */
export interface PermissionEventJson {
  /** Answer it with `POST …/permissions/{id}`. */
  id: string;
  /** The note, relative to the vault; of the memory, the path of its file. */
  path: string;
  /** The whole change as a unified diff. */
  diff: string;
  /** Whether the file is new. */
  created: boolean;
  /** Whether it is a fact for the memory, and not a note. */
  memory: boolean;
  /** The answer; null while it waits for one. */
  allowed: boolean | null;
}

/** A part of a request, in the order in which it was sent. */
export interface PieceJson {
  /** Tokens of the request before it. */
  start: number;
  tokens: number;
  /** Null for overhead, tool definitions, and images of earlier messages. */
  layer: "L1_SYSTEM" | "L2_PREVIOUS" | "L3_TURN" | "L4_STRIP" | "L5_USER" | null;
  /** Id of the artifact, the message, the part of L1, or the tool. */
  id: string;
  /** Kind of an artifact or of a segment, or: `talk` (neighbouring earlier messages with their overhead), `overhead` (labels and message frames), `tool_definition`. */
  kind: string;
  form: string;
  /** `tools`, `system`, or `message:N`; of a band of talk its first message. */
  place: string;
  /** Whether the previous request had the same tokens here. */
  same: boolean;
  /** Number of messages; only of `talk`. */
  messages?: number;
  /** How many of them are shorter than written; only of `talk`. */
  shortened?: number;
}

/** The position and form of an artifact in the prompt. */
export interface PlacedArtifactJson {
  /** Null for an artifact that an earlier message carries. */
  layer: string | null;
  form: string;
  place: string | null;
  tokens: number;
}

/** The target size, and the range to compact: the whole conversation, or only from or up to a message. */
export interface PlanBody {
  /** Target size as a share of the context window. */
  to?: number | null;
  /** Only from here on; every byte before it stays. */
  since?: string | null;
  /** Only up to here. */
  until?: string | null;
}

/** A compaction plan, and whether it was applied; the receipt is null if there is nothing to remove. */
export interface PlanJson {
  conversation: string;
  committed: boolean;
  receipt: ReceiptJson | null;
  tokens: PlannedCountsJson;
  outlook: CostEstimateJson | null;
  warnings: Array<string>;
}

/** The token counts of the next request without and with a compaction. */
export interface PlannedCountsJson {
  before: TokenCountsJson;
  after: TokenCountsJson | null;
}

/** The change of the prefix since the previous request, and how many tokens both have in common. */
export interface PrefixJson {
  cause: string;
  /** The part of the prompt that changed. */
  segment: string | null;
  common_tokens: number | null;
}

/** A question to preview. */
export interface PreviewBody {
  text?: string;
  attach?: Array<AttachmentBody | string>;
  detach?: Array<string>;
  drop?: Array<string>;
  pin?: Array<string>;
  unpin?: Array<string>;
  /** Read again; one that cannot be read stays as it is. */
  refresh?: Array<string>;
  fold?: boolean;
  model?: string | null;
  /** With the envelope and its messages. */
  whole?: boolean;
}

/** A contradiction, and the turns that show it. */
export interface ProfileContradictionJson {
  turns: Array<number>;
  says: string;
}

/** A model whose profile is wrong, and lines for a file of model facts. */
export interface ProfileMismatchJson {
  model: string;
  seen: Array<ProfileContradictionJson>;
  /** Corrected values by name. */
  facts: Record<string, number | boolean>;
  /** Lines to paste into a file of model facts. */
  model_facts: string;
}

/** The progress of a workflow. */
export interface ProgressJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  /** Null if the conversation has no workflow; only over HTTP. */
  workflow: string | null;
  title: string;
  /** Id of the current stage; null when all are approved. */
  current: string | null;
  status: string;
  stages: Array<StageJson>;
  /** All decisions, including superseded ones. */
  digest: Array<DigestLineJson>;
  references: number;
  citations: number;
  /** The language that the work is written in, as a code. */
  language: string;
  /** The decision that an approval without one takes. */
  proposed_decision: string;
  /** What is to change in the stage that was sent back. */
  change_request: string;
  /** What was written in the current stage; the last can be undone. */
  writes: Array<StageWriteJson>;
  /** References as CSL-JSON. */
  reference_items: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  /** Captions of figures and tables by key. */
  exhibits: Record<string, string>;
}

/** The reason why an artifact is in the next prompt or not, and how to include it. */
export interface PromptExplanationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  id: string;
  kind: string;
  title: string;
  in_prompt: boolean;
  why: string;
  /** The turns that brought it. */
  turns: Array<number>;
  segments: Array<PlacedArtifactJson>;
  /** Ways to include its full text. */
  brings_in: Array<SuggestedActionJson>;
  /** Cache misses that it caused; of a message, those of its turn. */
  misses: Array<ExplainedCacheMissJson>;
}

/** A message as it is sent: a text, or parts if it has images. */
export interface PromptMessageJson {
  role: "assistant" | "system" | "tool" | "user";
  /** The call whose output this is. */
  call?: string;
  content: string | Array<Record<string, string>>;
  /** Tool calls of the model. */
  calls?: Array<MessageCallJson>;
  /** Whether the call failed; only if it did. */
  failed?: boolean;
}

/** The request body that a provider's SDK sends, with the fields of that provider's API. */
export interface ProviderRequestJson {
}

/** A selected file, and how well it matches the question. */
export interface RankedFileJson {
  path: string;
  /** `full`, `skeleton` or `name`. */
  form: string;
  tokens: number;
  score: number;
  text: string;
  /** Parts of the score, if they were asked for. */
  parts?: Record<string, number>;
}

/** Changes are reported from now on; whatever was read before may be out of date. */
export interface ReadyEventJson {
  /** Version of the format. */
  lamella: 1;
}

/** A message, an attachment or a tool result: its whole text, or the sentences that fit the query best. */
export interface RecallHitJson {
  text: string;
  role: string;
  /** The turn that it came with. */
  turn: number;
  /** When it was written. */
  at: string | null;
  /** The message that it is or came with. */
  message: string | null;
  id: string;
  title: string;
  place: string;
  score: number;
  excerpt: string;
  /** Whether `text` is the whole original. */
  whole: boolean;
  /** The length of the original. */
  characters: number;
  /** The message before it, if there was room for it. */
  before: RecalledMessageJson | null;
  /** The message after it, if there was room for it. */
  after: RecalledMessageJson | null;
}

/** Texts that left the prompt and match the query, best first; none if nothing fits. */
export interface RecallJson {
  conversation: string;
  query: string;
  hits: Array<RecallHitJson>;
}

/** A message next to a hit. */
export interface RecalledMessageJson {
  role: string;
  turn: number;
  message: string;
  text: string;
}

/** The receipt of a compaction: what it removed, step by step. */
export interface ReceiptJson {
  id: string;
  /** The message after which it was applied. */
  parent: string;
  steps: Array<StepJson>;
  skipped: Array<SkippedStepJson>;
  tokens_before: number;
  tokens_after: number;
  /** The size in tokens that was aimed for. */
  target: number;
  /** Whether Lamella compacted by itself. */
  automatic: boolean;
  certificate: CertificateJson | null;
  /** Nothing before this message changed. */
  since?: string;
}

/** The compactions in force, oldest first. */
export interface ReceiptListJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  receipts: Array<ReceiptJson>;
}

/** References as CSL-JSON, as fields with usual names, or as typed lines. */
export interface ReferencesBody {
  references: Array<JsonValue>;
}

/** Options for regenerating the answer to a question. */
export interface RegenerateBody {
  stream?: boolean;
  /** Wait for the turn that is under way, in place of 409. */
  queue?: boolean;
  /** Ask before a model writes a note or a fact, with the event `permission`, and wait for `POST …/permissions/{id}`. Without it, what needs a yes is not written. */
  permissions?: boolean;
  max_tokens?: number | null;
  model?: string | null;
}

/** A line that was removed from the memory. */
export interface RemovedFactJson {
  id: string;
  kind: string;
  text: string;
  /** Key of the conversation that it is about. */
  chat: string | null;
  removed: boolean;
}

/** The remaining user rules, and the one that was removed. */
export interface RemovedRuleJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  rules: Array<RuleJson>;
  removed: RuleJson;
}

/** A reply. */
export interface ReplyJson {
  message: string;
  /** RFC 3339, UTC. */
  at: string;
  text: string;
  /** Why the answer is cut: `stopped`, `interrupted`, `broken`, or null. Resume continues it. */
  cut: string | null;
  /** Why the model stopped: `end`, `length`, `tools`, `sequence`, `refused`, `window`, `paused`, `circles` (it repeated itself), `other`, or as `cut`. Null if no model call is recorded. */
  stop: string | null;
  /** Null if no model call is recorded. */
  model: string | null;
  tokens: ReplyTokensJson | null;
  /** Of all calls of the answer; null if the price is unknown. */
  cost: string | null;
  /** All messages in this place, itself included; only if there are several. */
  siblings?: Array<SiblingJson>;
}

/** The tokens that the provider reported for all calls of an answer; null if it did not report them. */
export interface ReplyTokensJson {
  /** With those that came from a cache. */
  input: number | null;
  /** The part of the input that came from a cache. */
  cached: number | null;
  output: number | null;
}

/** Whether a request derived from the log is the one that was sent. */
export interface RequestCheckJson {
  /** `verified`: it has the stored hash. `unverified`: no hash was stored. `differs`: it has another hash. `erased`: content that it had was erased. `other_renderer`: another version of Lamella wrote it. */
  status: "differs" | "erased" | "other_renderer" | "unverified" | "verified";
  /** The reason, unless it is verified. */
  detail: string;
}

/** The fingerprint of a turn, recorded when it was sent. */
export interface RequestFingerprintJson {
  /** Version of the renderer. */
  renderer: number;
  /** Of two layers, the prefix and the whole request. */
  hashes: Record<string, string | null>;
  /** Number of segments by layer. */
  segments: Record<string, number>;
  /** Share of the attached bytes that a reference replaced. */
  dedup_ratio: number;
  /** Share of earlier messages and artifacts that was shortened. */
  compacted_share: number;
  unparsed: number;
}

/** A setting and its origin. */
export interface ResolvedSettingJson {
  value: Record<string, unknown> | Array<unknown> | string | number | boolean | null;
  /** Where the value comes from. */
  from: string;
}

/** A complete answer in the format of OpenAI's Responses API. */
export interface ResponseJson {
  id: string;
  object: "response";
  created_at: number;
  model: string;
  status: string;
  output: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  previous_response_id?: string | null;
  usage?: Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null> | null;
}

/** A request of OpenAI's Responses API. */
export interface ResponsesRequest {
  input: string | Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  model?: string;
  stream?: boolean;
  previous_response_id?: string;
  lamella?: LamellaOptions;
}

/** A cut that cleared unused tool results; undoing the receipt brings them back. */
export interface ResultCutJson {
  receipt: string;
  /** How many results it cleared. */
  results: number;
  /** Tokens that each later request has less. */
  saved: number;
  /** Why, in one sentence. */
  says: string;
}

/** The results of the last answer's tool calls, one for each. */
export interface ResultsBody {
  stream?: boolean;
  /** Wait for the turn that is under way, in place of 409. */
  queue?: boolean;
  /** Ask before a model writes a note or a fact, with the event `permission`, and wait for `POST …/permissions/{id}`. Without it, what needs a yes is not written. */
  permissions?: boolean;
  max_tokens?: number | null;
  outputs: Array<ToolOutputBody>;
}

/** Options for resuming an unfinished turn. */
export interface ResumeBody {
  stream?: boolean;
  /** Wait for the turn that is under way, in place of 409. */
  queue?: boolean;
  /** Ask before a model writes a note or a fact, with the event `permission`, and wait for `POST …/permissions/{id}`. Without it, what needs a yes is not written. */
  permissions?: boolean;
  max_tokens?: number | null;
}

/** A retry: why the request is sent again, and after how many seconds. */
export interface RetryEventJson {
  said: string;
  wait: number | null;
}

/** What is to change in the submitted stage; the model reads it. */
export interface ReviseBody {
  note: string;
}

/** The stage to go back to, by its id. */
export interface RewindBody {
  stage: string;
}

/** One sentence with an instruction that applies from the next turn on. */
export interface RuleBody {
  text: string;
}

/** A user rule and the message it came with. */
export interface RuleJson {
  id: string;
  text: string;
  /** Id of the message; null until that is sent. */
  message: string | null;
  turn: number;
  /** Whether it was found in a message or added by the user. */
  by: "found" | "user";
}

/** The active user rules, newest last. */
export interface RuleListJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  rules: Array<RuleJson>;
}

/** The running turn; ``run`` is null if it runs in another process. */
export interface RunInProgressJson {
  message: string | null;
  run: string | null;
}

/** A runner: a way to answer a question. */
export interface RunnerJson {
  name: string;
  /** How it answers. */
  does: string;
  /** Whether the settings choose it. */
  usual: boolean;
}

/** The available runners. */
export interface RunnerListJson {
  /** Version of the format. */
  lamella: 1;
  runners: Array<RunnerJson>;
}

/** The turn that is running in a conversation. */
export interface RunningTurnJson {
  /** Key of the conversation. */
  conversation: string;
  /** Id of the question; null until it is stored. */
  message: string | null;
  /** When it was asked. */
  since: string | null;
}

/** An artifact or a message within a layer; its text is part of the layer's text. */
export interface SegmentJson {
  id: string;
  kind: string;
  form: string;
  /** `system`, or `message:N`; null if it is listed, but not sent. */
  place: string | null;
  hash: string;
  tokens: number;
  /** Whether it can be read again from its source. */
  recoverable: boolean;
}

/** A turn as it was sent, rebuilt from the log. */
export interface SentTurnJson {
  /** Number of the turn, from 1. */
  turn: number;
  envelope: EnvelopeJson;
  /** Left out if texts were not asked for. */
  messages?: Array<PromptMessageJson>;
  tokens: TokenCountsJson;
  prefix: PrefixJson;
  cache: ExpectedCacheUseJson | null;
  /** Null without a known price. */
  cost: CostJson | null;
  /** The compaction before this turn. */
  compaction: ReceiptJson | null;
  /** The chosen plan; only of a layout chosen by cost. */
  placement?: LayoutPlanJson;
  /** The requests before this one; only of a turn with tools. */
  earlier_requests?: Array<EarlierRequestJson>;
  /** Only of a turn that was sent. */
  check?: RequestCheckJson;
  lamella: 1;
  conversation: string;
  sent: RequestFingerprintJson | null;
  /** Whether its hash is that of what was sent; null of old turns. */
  same_bytes: boolean | null;
}

/** Every setting, and the files that were read. */
export interface ServerSettingsJson {
  settings: Record<string, ResolvedSettingJson>;
  /** Paths of settings files by origin. */
  files: Record<string, string>;
}

/** Whether a login is needed, and who is logged in. */
export interface SessionJson {
  /** Version of the format. */
  lamella: 1;
  /** Whether this server needs an access token. */
  needed: boolean;
  /** Whether requests of this client are let in now. */
  active: boolean;
  /** Name of the access token; null without one. */
  name: string | null;
  /** Owner whose conversations the token can read; empty for all conversations. */
  owner: string | null;
  /** `read`, `chat` or `admin`; null if it is not let in. */
  scope: string | null;
  /** When the session ends; null without one. */
  expires: string | null;
}

/** Settings by name. */
export interface SettingsBody {
  settings: Record<string, JsonValue>;
}

/** A message that stands in the same place as another one, on a branch of its own. */
export interface SiblingJson {
  message: string;
  /** The last message of its newest branch, to switch to. */
  head: string;
}

/** A step that was skipped, and why. */
export interface SkippedStepJson {
  name: string;
  why: string;
}

/** An answer with the whole history and the new state. */
export interface SolutionJson {
  /** Version of the format. */
  lamella: 1;
  /** The answer. */
  data: string;
  tokensUsed: number;
  chatHistory: Array<HistoryMessageJson>;
  /** Which task instructions are in the prompt. */
  chatState: Record<string, boolean | Array<string>>;
  conversation: string | null;
  model: string;
  warnings: Array<string>;
  /** Fields of the request that were ignored. */
  ignored: Array<string>;
  /** Why fields were ignored, if there are any. */
  ignoredBecause?: string;
}

/** The progress of a workflow, with the recorded data of each stage. */
export interface StageDataJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  /** Null if the conversation has no workflow; only over HTTP. */
  workflow: string | null;
  title: string;
  /** Id of the current stage; null when all are approved. */
  current: string | null;
  status: string;
  stages: Array<StageJson>;
  /** All decisions, including superseded ones. */
  digest: Array<DigestLineJson>;
  references: number;
  citations: number;
  /** The language that the work is written in, as a code. */
  language: string;
  /** The decision that an approval without one takes. */
  proposed_decision: string;
  /** What is to change in the stage that was sent back. */
  change_request: string;
  /** What was written in the current stage; the last can be undone. */
  writes: Array<StageWriteJson>;
  /** References as CSL-JSON. */
  reference_items: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  /** Captions of figures and tables by key. */
  exhibits: Record<string, string>;
  data: Record<string, Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
}

/** Fields to record for the current stage; null removes a field. */
export interface StageFieldsBody {
  fields: Record<string, JsonValue>;
}

/** The progress of a stage. */
export interface StageJson {
  id: string;
  label: string;
  phase: string;
  /** Fields without which it cannot be submitted. */
  required: Array<string>;
  /** Whether sources are searched in it. */
  search: boolean;
  status: string | null;
  attempt: number;
  /** The decision, once it is approved. */
  digest: string | null;
  messages: Array<string>;
  /** Required fields that have no value yet. */
  missing: Array<string>;
  /** Labels of the fields for people. */
  field_labels: Record<string, string>;
}

/** A stage of a workflow. */
export interface StageSpecJson {
  id: string;
  label: string;
  phase: string;
  /** Fields without which it cannot be submitted. */
  required: Array<string>;
  /** Whether sources are searched in it. */
  search: boolean;
}

/** Something that was written in the current stage. */
export interface StageWriteJson {
  /** Whether a model wrote it. */
  by_model: boolean;
  /** What it changed, as lines with - and +. */
  diff: string;
}

/** The workflow to start, by name; a request cannot name files of the server. */
export interface StartWorkflowBody {
  workflow: string;
  /** A code such as `id`. */
  language?: string | null;
}

/** A step that removed something. */
export interface StepJson {
  name: string;
  /** Ids of the attachments or messages that it removed. */
  removed: Array<string>;
  tokens_before: number;
  tokens_after: number;
}

/** A conversation without a running turn; ``stopped`` says whether one was stopped. */
export interface StoppedConversationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  head: string;
  stopped: boolean;
}

/** The requests of some turns of the active branch, by pieces. */
export interface StrataJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  /** Last message of the branch. */
  head: string;
  /** Number of turns of the branch. */
  count: number;
  turns: Array<TurnStrataJson>;
}

/** A suggested action and its object. */
export interface SuggestedActionJson {
  /** `attach`, `undo`, `set`, `recall` or `fork`. */
  do: string;
  what: string;
}

/** The branch to continue with, by its last message. */
export interface SwitchBody {
  head: string;
}

/** A conversation that continues from another message, its head. */
export interface SwitchedConversationJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  head: string;
}

/** The number of tokens of a request. */
export interface TokenCountJson {
  input_tokens: number;
}

/** A request of Anthropic's API whose tokens are counted. */
export interface TokenCountRequest {
  messages: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
  model?: string;
}

/** The token counts of a request by layer, and its limit. */
export interface TokenCountsJson {
  total: number;
  by_layer: Record<string, number>;
  limit: number;
}

/** A tool that the client runs; its calls come back in the event `done`. */
export interface ToolBody {
  name: string;
  description?: string;
  parameters?: Record<string, JsonValue>;
}

/** A tool call of the model, with the arguments as the model wrote them. */
export interface ToolCallJson {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** A tool call and its output. */
export interface ToolCallRecordJson {
  name: string;
  arguments: string;
  /** Null until the result is there. */
  output: string | null;
  failed: boolean;
}

/** A tool call of the model, or its result. */
export interface ToolEventJson {
  call: ToolCallJson | null;
  output: CallOutputJson | null;
}

/** A tool, with the schema of its arguments. */
export interface ToolJson {
  name: string;
  description: string;
  /** JSON schema of the arguments. */
  parameters: Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>;
}

/** Tools that models may call. */
export interface ToolListJson {
  /** Version of the format. */
  lamella: 1;
  tools: Array<ToolJson>;
}

/** The result of a tool call. */
export interface ToolOutputBody {
  call: string;
  output: string;
  failed?: boolean;
}

/** A tool round: the model's text and tool calls before its final answer. */
export interface ToolRoundJson {
  text: string;
  calls: Array<ToolCallRecordJson>;
}

/** A transcript in the format of docs/reference/formats/transcript.md. */
export interface TranscriptJson {
  lamella: number;
  conversation: string;
  turns: Array<Record<string, Record<string, unknown> | Array<unknown> | string | number | boolean | null>>;
}

/** A location to allow, and the setting that names it. */
export interface TrustBody {
  field: string;
  place: string;
}

/** A trusted location; ``new`` if it was not trusted before. */
export interface TrustJson {
  /** Version of the format. */
  lamella: 1;
  /** The setting that names it. */
  field: string;
  place: string;
  new: boolean;
}

/** The trusted locations, oldest first. */
export interface TrustListJson {
  /** Version of the format. */
  lamella: 1;
  /** The file that lists them; not over HTTP. */
  file?: string;
  trusted: Array<TrustedPlaceJson>;
}

/** A trusted location, and the day it was added. */
export interface TrustedPlaceJson {
  field: string;
  place: string;
  since: string;
}

/** The token counts of a stored question, its prefix change, and its expected cost. */
export interface TurnEstimateJson {
  /** Id of the question. */
  message: string;
  epoch: number;
  hash: string;
  prefix_hash: string;
  /** Number of the turn, from 1. */
  turn: number;
  tokens: TokenCountsJson;
  prefix: PrefixJson;
  cache: ExpectedCacheUseJson | null;
  /** Null without a known price. */
  cost: CostJson | null;
  /** The compaction before this turn. */
  compaction: ReceiptJson | null;
  /** The chosen plan; only of a layout chosen by cost. */
  placement?: LayoutPlanJson;
  warnings: Array<string>;
}

/** A turn began or ended. */
export interface TurnEventJson {
  conversation: string;
  /** Id of the question. */
  message: string | null;
  /** Id of the answer, once the turn has ended. */
  reply: string | null;
  state: "begun" | "ended";
}

/** A question, the ids of its attachments, and its reply or null. */
export interface TurnJson {
  message: string;
  /** RFC 3339, UTC. */
  at: string;
  text: string;
  attached: Array<string>;
  reply: ReplyJson | null;
}

/** A preview of a turn with its tokens and cost; with `whole` also its envelope and messages. */
export interface TurnPreviewJson {
  /** Id of the question. */
  message: string;
  epoch: number;
  hash: string;
  prefix_hash: string;
  /** Number of the turn, from 1. */
  turn: number;
  tokens: TokenCountsJson;
  prefix: PrefixJson;
  cache: ExpectedCacheUseJson | null;
  /** Null without a known price. */
  cost: CostJson | null;
  /** The compaction before this turn. */
  compaction: ReceiptJson | null;
  /** The chosen plan; only of a layout chosen by cost. */
  placement?: LayoutPlanJson;
  warnings: Array<string>;
  lamella: 1;
  conversation: string;
  envelope?: EnvelopeJson;
  messages?: Array<PromptMessageJson>;
}

/** A question, its attachments and its options. */
export interface TurnRequestBody {
  stream?: boolean;
  /** Wait for the turn that is under way, in place of 409. */
  queue?: boolean;
  /** Ask before a model writes a note or a fact, with the event `permission`, and wait for `POST …/permissions/{id}`. Without it, what needs a yes is not written. */
  permissions?: boolean;
  max_tokens?: number | null;
  text: string;
  attach?: Array<AttachmentBody | string>;
  detach?: Array<string>;
  drop?: Array<string>;
  pin?: Array<string>;
  unpin?: Array<string>;
  fold?: boolean;
  /** Take up what changed in the memory. */
  memory?: boolean;
  system?: string | Record<string, string> | null;
  model?: string | null;
  runner?: string | null;
  tools?: Array<ToolBody> | null;
}

/** A turn's request by pieces. The tokens of the pieces add up to `total`. */
export interface TurnStrataJson {
  /** Number of the turn, from 1. */
  turn: number;
  /** Id of the question. */
  message: string;
  at: string | null;
  model: string | null;
  total: number;
  /** Tokens that a request may have. */
  limit: number;
  prefix: PrefixJson;
  cache: CacheComparisonJson;
  /** What the cache did with the first call, and why; null before an answer. */
  verdict: VerdictJson | null;
  /** What its cache misses cost; null without one. */
  miss: CacheMissJson | null;
  /** Expected, for the input; null without a known price. */
  cost: CostJson | null;
  /** Tokens of the answer, as reported; null if unknown. */
  output: number | null;
  /** Cost of the reported tokens, answer included. */
  billed: string | null;
  /** Id of the receipt of the compaction before this turn. */
  compaction: string | null;
  pieces: Array<PieceJson>;
}

/** A turn with its number, tool rounds and sources. */
export interface TurnWithRoundsJson {
  message: string;
  /** RFC 3339, UTC. */
  at: string;
  text: string;
  attached: Array<string>;
  reply: ReplyJson | null;
  /** Number of the turn, from 1. */
  turn: number;
  /** All messages in this place, itself included; only if there are several. */
  siblings?: Array<SiblingJson>;
  rounds: Array<ToolRoundJson>;
  sources: Array<CitedSourceJson>;
}

/** The compaction to undo together with all later ones; by default the last one. */
export interface UndoBody {
  receipt?: string | null;
}

/** The compactions that were undone, by receipt, oldest first. */
export interface UndoResultJson {
  conversation: string;
  undone: Array<string>;
}

/** A file that could not be searched, and why. */
export interface UnreadFileJson {
  path: string;
  why: string;
}

/** Token counts by price class, as the provider reported them; null if it did not. */
export interface UsageJson {
  /** Input that no cache served or stored. */
  plain: number | null;
  /** Input that the cache served. */
  read: number | null;
  /** Input that the cache stored. */
  write: number | null;
  /** Input that the cache stored with the longer lifetime. */
  write_long: number | null;
  output: number | null;
  /** The part of the output that is reasoning. */
  reasoning: number | null;
  /** How the provider's numbers contradict each other. */
  fault: string | null;
}

/** The verdict on a cache miss or hit, and whether Lamella or the provider caused it. */
export interface VerdictJson {
  outcome: string;
  cause: string;
  segment: string | null;
  /** Whether Lamella caused the miss, not the provider. */
  ours: boolean;
  says: string;
}

/** A workflow; if it is ``broken``, only its name is known. */
export interface WorkflowJson {
  name: string;
  title: string;
  broken: boolean;
  stages: Array<StageSpecJson>;
}

/** Workflows by name. */
export interface WorkflowListJson {
  /** Version of the format. */
  lamella: 1;
  workflows: Array<WorkflowJson>;
}

/** The work as markdown. */
export interface WorkflowTextJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  name: string;
  text: string;
  /** The file it was written to. */
  file: string | null;
  /** What it lacks. */
  problems: Array<DocumentProblemJson>;
}

/** The ids of the artifacts that the model can read in the next turn. */
export interface WorkingSetJson {
  /** Version of the format. */
  lamella: 1;
  /** Key of the conversation, which never changes. */
  conversation: string;
  working_set: Array<string>;
}

/** The body of each event of a streamed answer. */
export interface StreamEvents {
  cold: CacheExpiredEventJson;
  envelope: TurnEstimateJson;
  delta: DeltaEventJson;
  reasoning: DeltaEventJson;
  tool: ToolEventJson;
  usage: UsageJson;
  retry: RetryEventJson;
  compaction: CompactionEventJson;
  note: NoteEventJson;
  permission: PermissionEventJson;
  done: DoneEventJson;
  error: ErrorJson;
}
