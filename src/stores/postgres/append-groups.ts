import type { Appended, Lease, LogRecord, SessionSummary } from '../../core/sessions/store/store.js'

/** One append, with the callbacks that settle it. */
export interface PendingAppend {
  lease: Lease
  records: readonly LogRecord[]
  summary: SessionSummary | undefined
  /** Whether the session is given free with it. */
  isLast: boolean
  /** Null: the store did not take it, and why has to be looked for. */
  settle(answer: Appended | null): void
  fail(error: unknown): void
}

/** How many groups are under way at once: while one is written, the next gathers. */
const maxGroupsUnderWay = 2

/** How many appends go into one statement. */
const maxGroupSize = 100

/**
 * Gathers the appends that come while others are written, and writes them as one: two hundred sessions of a process are
 * not two hundred round trips. Of one session one append is under way at a time: what overlaps comes after it.
 */
export class AppendGroups {
  #waiting: PendingAppend[] = []
  #underWay = 0
  /** Sessions of the groups that are under way. */
  readonly #written = new Set<string>()
  #isDue = false
  readonly #write: (group: readonly PendingAppend[]) => Promise<void>

  /** `write` settles every append of the group, and never rejects. */
  constructor(write: (group: readonly PendingAppend[]) => Promise<void>) {
    this.#write = write
  }

  add(append: Omit<PendingAppend, 'settle' | 'fail'>): Promise<Appended | null> {
    return new Promise((settle, fail) => {
      this.#waiting.push({ ...append, settle, fail })
      if (this.#isDue) return
      this.#isDue = true
      queueMicrotask(() => {
        this.#isDue = false
        this.#writeNext()
      })
    })
  }

  #writeNext(): void {
    while (this.#underWay < maxGroupsUnderWay && this.#waiting.length > 0) {
      const group = this.#takeGroup()
      if (group.length === 0) return
      this.#underWay += 1
      void this.#write(group).finally(() => {
        this.#underWay -= 1
        for (const { lease } of group) this.#written.delete(lease.sessionId)
        this.#writeNext()
      })
    }
  }

  #takeGroup(): PendingAppend[] {
    const group: PendingAppend[] = []
    const rest: PendingAppend[] = []
    for (const append of this.#waiting) {
      const { sessionId } = append.lease
      if (group.length >= maxGroupSize || this.#written.has(sessionId)) rest.push(append)
      else {
        this.#written.add(sessionId)
        group.push(append)
      }
    }
    this.#waiting = rest
    return group
  }
}
