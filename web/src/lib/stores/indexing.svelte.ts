// How far the notes are indexed for the search. The server reports it only where that takes a while.
import type { IndexingEventJson } from "../api/types";

/** A report that none follows is of a server that went away. */
const STALE_MILLISECONDS = 15_000;

class IndexingStore {
  progress = $state.raw<IndexingEventJson | null>(null);
  private timer: ReturnType<typeof setTimeout> | undefined;

  report(progress: IndexingEventJson): void {
    clearTimeout(this.timer);
    this.progress = progress.done < progress.total ? progress : null;
    if (this.progress) this.timer = setTimeout(() => (this.progress = null), STALE_MILLISECONDS);
  }
}

export const indexing = new IndexingStore();
