import { parseJsonOr } from '../core/base/json.js'
import { z } from 'zod'
import type { DigestTable, LogDigest } from '../core/sessions/store/log-digests.js'
import type { ListedSession } from '../core/sessions/store/store.js'
import type { SessionFold } from './session-fold.js'
import { isFailed, normalizeText } from './session-query.js'
import { createTranscript } from './shown-values.js'

/** Characters searched per session, half from the start and half from the end. */
const maxChars = 8_000
/** The results of the latest failed calls are searched too. */
const [mostFailures, failureChars] = [20, 300]

const names = z.array(z.string())
const factsSchema = z.object({
  /** As the studio shows it: without secrets and blocked content. Normalized by `normalizeText`. */
  text: z.string(),
  tools: names,
  failed: names,
  models: names,
  guards: names,
})
export type LogFacts = z.infer<typeof factsSchema>

export const noFacts: LogFacts = { text: '', tools: [], failed: [], models: [], guards: [] }

export function listLogFacts({ now, notes, rows, models, guards }: SessionFold): LogFacts {
  const { transcript } = createTranscript(now, notes)
  const text = transcript
    .filter(({ role, marks }) => (role === 'user' || role === 'assistant') && !marks.includes('internal'))
    .map(({ text }) => text)
    .join('\n')
  const failures = transcript
    .flatMap(({ calls }) =>
      calls.flatMap((call) => (isFailed(call) ? (call.result ?? '').slice(0, failureChars) : [])),
    )
    .slice(-mostFailures)
    .join('\n')
  const half = maxChars / 2
  return {
    text: normalizeText(
      `${text.length > maxChars ? `${text.slice(0, half)}\n${text.slice(-half)}` : text}\n${failures}`,
    ),
    // The transcript may lack calls that were removed by a compaction, and the rows lack pending calls.
    tools: [...new Set([...transcript, ...rows].flatMap(({ calls }) => calls.map(({ name }) => name)))],
    failed: [...new Set(rows.flatMap(({ calls }) => calls.filter(isFailed).map(({ name }) => name)))],
    models: [...models],
    guards: [...guards],
  }
}

type KeptSummary = z.infer<typeof digestSchema>['logSummary']
export type LogSummary = Omit<KeptSummary, 'problem'> & { problem: string | null }

export interface ReadLog {
  facts: LogFacts
  logSummary: LogSummary
}

type LogPlace = Pick<ListedSession, 'id' | 'head' | 'createdAt'>

/** Increase this whenever the content or the removal of secrets changes. Digests of other versions are read again. */
const version = 5

const digestSchema = z.object({
  version: z.literal(version),
  facts: factsSchema,
  logSummary: z.object({
    /** State and reason of the latest run. Null before the first run and for damaged sessions. */
    state: z.string().nullable(),
    reason: z.string().nullable(),
    /** When a sleeping run wakes up, or the next question of a waiting run expires. */
    wakeAt: z.number().nullable(),
    title: z.string(),
    /** The session's own steps in all runs. Null until the log has been read. */
    steps: z.number().nullable(),
    duration: z.number(),
    /** 0 until the log has been read. */
    failedCalls: z.number(),
    /** The session's own. For a fork, includes inherited tokens until its log has been read. */
    tokens: z.number(),
    /** The session's own cost in USD, counted like `tokens`. Null if unknown. */
    cost: z.number().nullable(),
    problem: z.null(),
    forkedFrom: z.object({ sessionId: z.string(), seq: z.number() }).nullable(),
    /** The usage that a fork copied from its original. Null for other sessions. */
    inherited: z.object({ tokens: z.number(), cost: z.number().nullable() }).nullable(),
  }),
})

const maxDue = 50

/** If log summaries cannot be saved in the store, the next studio reads the logs again. */
export class KeptDigests {
  readonly #open: () => Promise<DigestTable | null>
  #table: Promise<DigestTable | null> | undefined
  #due: LogDigest[] = []

  constructor(open: () => Promise<DigestTable | null>) {
    this.#open = open
  }

  /** In the order of `places`, because that is the order in which forks are listed. */
  async find(places: readonly LogPlace[]): Promise<(LogPlace & { log: ReadLog })[]> {
    if (places.length === 0) return []
    const digests = await this.#read(places.map(({ id }) => id))
    const byId = new Map(digests.map((digest) => [digest.sessionId, digest]))
    return places.flatMap(({ id, head, createdAt }) => {
      const digest = byId.get(id)
      const isNow = digest?.head === head && digest.createdAt === createdAt
      const log = isNow && digestSchema.safeParse(parseJsonOr(digest.data, null)).data
      return log ? [{ id, head, createdAt, log }] : []
    })
  }

  async #read(ids: readonly string[]): Promise<LogDigest[]> {
    try {
      return (await (await this.#getTable())?.read(ids)) ?? []
    } catch {
      return []
    }
  }

  /** A damaged log is not saved, because it may be restored from a backup. */
  async keep({ id, head, createdAt }: LogPlace, { facts, logSummary }: ReadLog): Promise<void> {
    if (logSummary.problem !== null) return
    this.#due.push({ sessionId: id, head, createdAt, data: JSON.stringify({ version, facts, logSummary }) })
    if (this.#due.length >= maxDue) await this.flush()
  }

  async flush(): Promise<void> {
    const due = this.#due
    this.#due = []
    if (due.length === 0) return
    try {
      await (await this.#getTable())?.put(due)
    } catch {
      // The logs can be read again.
    }
  }

  #getTable(): Promise<DigestTable | null> {
    return (this.#table ??= this.#open().catch(() => null))
  }
}
