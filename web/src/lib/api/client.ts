// Requests to the server: JSON bodies, errors with their hint, and streams of events.
import type { ErrorJson, StreamEvents } from "./types";

/** An error of the server, or of the connection to it (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

type Listener = (error: ApiError) => void;
const listeners: Listener[] = [];

/** Calls the listener for each request that fails. */
export function onApiError(listener: Listener): void {
  listeners.push(listener);
}

export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "page", error instanceof Error ? error.message : String(error), "Reload the page.");
}

/** Paths that are deleted, or about to be. */
const deleted = new Set<string>();
const underWay = new Map<AbortController, string>();

/** Drops requests below a deleted path. Nothing answers their callers, which disappear with it. */
export function markDeleted(path: string): void {
  deleted.add(path);
  for (const [controller, other] of underWay) if (isDeleted(other)) controller.abort();
}

/** Deletes what is at a path. */
export async function deletePath(path: string): Promise<void> {
  markDeleted(path);
  try {
    await fetchOrThrow("DELETE", path, undefined);
  } catch (error) {
    deleted.delete(path);
    throw error;
  }
}

function isDeleted(path: string): boolean {
  for (const one of deleted) if (path === one || path.startsWith(`${one}/`) || path.startsWith(`${one}?`)) return true;
  return false;
}

async function send(method: string, path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  if (isDeleted(path)) return never();
  const controller = new AbortController();
  const signal = init.signal ? AbortSignal.any([init.signal, controller.signal]) : controller.signal;
  underWay.set(controller, path);
  try {
    return await fetchOrThrow(method, path, body, { ...init, signal });
  } catch (error) {
    if (!controller.signal.aborted) throw error;
  } finally {
    underWay.delete(controller);
  }
  return never();
}

function never(): Promise<never> {
  return new Promise(() => {});
}

async function fetchOrThrow(method: string, path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = {};
  let content: BodyInit | undefined;
  if (body instanceof FormData) content = body;
  else if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    content = JSON.stringify(body);
  }
  let response: Response;
  try {
    response = await fetch(path, { ...init, method, headers: { ...headers, ...init.headers }, body: content });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw report(new ApiError(0, "offline", "The server does not answer.", "Check that `lamella serve` still runs. This page tries again by itself."));
  }
  if (!response.ok) throw report(await readError(response));
  return response;
}

function report(error: ApiError): ApiError {
  for (const listener of listeners) listener(error);
  return error;
}

async function readError(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as ErrorJson;
    return new ApiError(response.status, error.code, error.message, error.hint ?? "");
  } catch {
    return new ApiError(response.status, "http", `The server answered with ${response.status}.`, "Try again.");
  }
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", path, undefined, { signal })).json()) as T;
}

export async function sendJson<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(method, path, body, { signal });
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** An event of a stream, with the id from which the stream can be continued. */
export type StreamEvent = { [Name in keyof StreamEvents]: { name: Name; data: StreamEvents[Name]; id: string | null } }[keyof StreamEvents];

/** Yields the events of a streamed response. */
export async function* streamEvents(
  method: "GET" | "POST" | "PUT",
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const response = await send(method, path, body, { signal, headers: { Accept: "text/event-stream" } });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/** Splits the text of a stream into events. */
export class EventParser {
  private rest = "";

  push(text: string): StreamEvent[] {
    this.rest += text;
    const parts = this.rest.split("\n\n");
    this.rest = parts.pop() ?? "";
    return parts.flatMap((part) => {
      const event = parseEvent(part);
      return event === null ? [] : [event];
    });
  }
}

function parseEvent(part: string): StreamEvent | null {
  let name = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of part.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "event") name = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? null : ({ name, id, data: JSON.parse(data.join("\n")) } as StreamEvent);
}

/** The path of a conversation's resource. */
export function conversationPath(key: string, rest = ""): string {
  return `/v1/conversations/${encodeURIComponent(key)}${rest}`;
}

/** The address of a picture that waits for the next turn, or that a turn was sent with. */
export function imagePath(key: string, image: string, { turn, full = false }: { turn?: number; full?: boolean } = {}): string {
  const query = [full ? "" : "thumbnail=true", turn === undefined ? "" : `turn=${turn}`].filter(Boolean).join("&");
  return conversationPath(key, `/images/${encodeURIComponent(image)}${query ? `?${query}` : ""}`);
}
