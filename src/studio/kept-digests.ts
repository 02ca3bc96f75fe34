import { z } from 'zod'
import type { DigestTable, LogDigest } from '../core/sessions/store/log-digests.js'
import type { ListedSession } from '../core/sessions/store/store.js'
import type { SessionRow } from './protocol.js'
import type { SessionFold } from './session-fold.js'
import { normalizeText } from './session-query.js'
import { createTranscript } from './shown-values.js'

/** How much of what was said is searched, in characters: the beginning and the end have a half each. */
const maxChars = 8_000

/** What a log tells that the store does not list. */
export interface LogFacts {
  /** What users and the model said, as the studio shows it, without what shields withhold, secrets scrubbed; as `normalizeText` returns it. */
  text: string
  tools: readonly string[]
  models: readonly string[]
  guards: readonly string[]
}

/** Of a log that cannot be read. */
export const noFacts: LogFacts = { text: '', tools: [], models: [], guards: [] }

export function listLogFacts({ now, notes, rows, models, guards }: SessionFold): LogFacts {
  const { transcript } = createTranscript(now, notes)
  const said = transcript
    .filter(({ role, marks }) => (role === 'user' || role === 'assistant') && !marks.includes('internal'))
    .map(({ text }) => text)
    .join('\n')
  const half = maxChars / 2
  return {
    text: normalizeText(said.length > maxChars ? `${said.slice(0, half)}\n${said.slice(-half)}` : said),
    // What a compaction has left out of the transcript was called, too; what waits has not been settled.
    tools: [...new Set([...transcript, ...rows].flatMap(({ calls }) => calls.map(({ name }) => name)))],
    models: [...models],
    guards: [...guards],
  }
}

/** The part of a row that comes from the log. */
export type LogSummary = Pick<
  SessionRow,
  'state' | 'reason' | 'wakeAt' | 'title' | 'steps' | 'tokens' | 'cost' | 'problem' | 'forkedFrom'
>

/** What was read in a whole log. */
export interface ReadLog {
  facts: LogFacts
  told: LogSummary
}

/** Which log, and up to where. */
type LogPlace = Pick<ListedSession, 'id' | 'head' | 'createdAt'>

/** Grows with each change of what is read or scrubbed: what other versions have kept is read anew. */
const version = 1

const names = z.array(z.string())
const digestSchema = z.object({
  version: z.literal(version),
  facts: z.object({ text: z.string(), tools: names, models: names, guards: names }),
  told: z.object({
    state: z.string().nullable(),
    reason: z.string().nullable(),
    wakeAt: z.number().nullable(),
    title: z.string(),
    steps: z.number().nullable(),
    tokens: z.number(),
    cost: z.number().nullable(),
    problem: z.null(),
    forkedFrom: z.object({ sessionId: z.string(), seq: z.number() }).nullable(),
  }),
})

/** How many digests are written at once. */
const maxDue = 50

/** What was read in logs, kept in the store for the next studio. When that fails, the next one reads the logs again. */
export class KeptDigests {
  readonly #open: () => Promise<DigestTable | null>
  #table: Promise<DigestTable | null> | undefined
  #due: LogDigest[] = []

  constructor(open: () => Promise<DigestTable | null>) {
    this.#open = open
  }

  /** What is kept of these logs as they are now, by session. */
  async find(places: readonly LogPlace[]): Promise<Map<string, ReadLog>> {
    const found = new Map<string, ReadLog>()
    if (places.length === 0) return found
    const table = await this.#getTable()
    const byId = new Map(places.map((place) => [place.id, place]))
    const digests = await readDigests(table, [...byId.keys()])
    for (const { sessionId, head, createdAt, data } of digests) {
      const now = byId.get(sessionId)
      const isNow = now?.head === head && now.createdAt === createdAt
      const log = isNow ? parseDigest(data) : null
      if (log) found.set(sessionId, log)
    }
    return found
  }

  /** Keeps what was read in a log. Each studio reads a damaged one again: it may have been restored from a backup. */
  async keep({ id, head, createdAt }: LogPlace, { facts, told }: ReadLog): Promise<void> {
    if (told.problem !== null) return
    this.#due.push({ sessionId: id, head, createdAt, data: JSON.stringify({ version, facts, told }) })
    if (this.#due.length >= maxDue) await this.flush()
  }

  /** Writes what is not written yet. */
  async flush(): Promise<void> {
    const due = this.#due
    this.#due = []
    if (due.length === 0) return
    try {
      await (await this.#getTable())?.put(due)
    } catch {
      // The logs are there, to be read again.
    }
  }

  #getTable(): Promise<DigestTable | null> {
    return (this.#table ??= this.#open().catch(() => null))
  }
}

async function readDigests(table: DigestTable | null, ids: readonly string[]): Promise<LogDigest[]> {
  try {
    return (await table?.read(ids)) ?? []
  } catch {
    return []
  }
}

function parseDigest(data: string): ReadLog | null {
  try {
    return digestSchema.safeParse(JSON.parse(data)).data ?? null
  } catch {
    return null
  }
}
