// Who is logged in. The token itself is never kept: the server trades it for a cookie that scripts cannot read.
import { ApiError, getJson, sendJson, toApiError } from "../api/client";
import type { ServerSettingsJson, SessionJson, TrustJson, TrustListJson, TrustedPlaceJson } from "../api/types";

class SessionStore {
  session = $state.raw<SessionJson | null>(null);
  error = $state.raw<ApiError | null>(null);
  /** Whether the server was asked. */
  known = $state(false);

  get mustLogIn(): boolean {
    return this.session !== null && this.session.needed && !this.session.active;
  }

  get isAdmin(): boolean {
    return this.session?.scope === "admin";
  }

  async load(): Promise<void> {
    try {
      this.session = await getJson<SessionJson>("/v1/session");
    } catch {
      // The server is away: whatever else is loaded says so.
    }
    this.known = true;
  }

  async logIn(token: string): Promise<boolean> {
    try {
      this.session = await sendJson<SessionJson>("POST", "/v1/session", { token });
      this.error = null;
      return true;
    } catch (error) {
      this.error = toApiError(error);
      return false;
    }
  }

  async logOut(): Promise<void> {
    this.session = await sendJson<SessionJson>("DELETE", "/v1/session");
  }
}

export const session = new SessionStore();

class ServerStore {
  settings = $state.raw<ServerSettingsJson | null>(null);
  trusted = $state.raw<TrustedPlaceJson[]>([]);
  error = $state.raw<ApiError | null>(null);
  loaded = $state(false);

  async load(): Promise<void> {
    try {
      const [settings, trust] = await Promise.all([getJson<ServerSettingsJson>("/v1/settings"), getJson<TrustListJson>("/v1/trust")]);
      this.settings = settings;
      this.trusted = trust.trusted;
      this.error = null;
    } catch (error) {
      this.error = toApiError(error);
    }
    this.loaded = true;
  }

  async trust(field: string, place: string): Promise<boolean> {
    return this.attempt(() => sendJson<TrustJson>("POST", "/v1/trust", { field, place }));
  }

  async distrust(one: TrustedPlaceJson): Promise<boolean> {
    return this.attempt(() => sendJson<TrustJson>("DELETE", `/v1/trust?field=${encodeURIComponent(one.field)}&place=${encodeURIComponent(one.place)}`));
  }

  private async attempt(action: () => Promise<unknown>): Promise<boolean> {
    try {
      await action();
      await this.load();
      return true;
    } catch (error) {
      this.error = toApiError(error);
      return false;
    }
  }
}

export const server = new ServerStore();
