import { expectArgument, objectRule, optionsRule } from '../core/base/values.js'
import { systemClock } from '../core/base/clock.js'
import { UsageError } from '../core/base/errors.js'
import { expectKnownOptions } from '../core/config/other-names.js'
import { listSessions } from '../core/run/delete-sessions.js'
import { sendToStoredSession, type SendOptions } from '../core/run/send-to-stored-session.js'
import { checkMessage, type SessionMessage } from '../core/sessions/inbox/session-message.js'
import { checkListOptions, type ListOptions } from '../core/sessions/store/list-options.js'
import type { SessionStore } from '../core/sessions/store/store.js'

/**
 * Which sessions are told: those that match every key; at least one is needed. Sub-agents' sessions are not told
 * themselves: what their caller is told reaches them.
 *
 * @example const acme: SessionSelection = { tags: { tenant: 'acme' }, state: ['RUNNING', 'WAITING_FOR_TOOL'] }
 */
export type SessionSelection = Pick<ListOptions, 'prefix' | 'tags' | 'agent' | 'state'>

/** A message for many sessions: an answer is for one call, so there is none here. */
export type MessageForAll = Extract<
  SessionMessage,
  { type: 'cancel' | 'pause' | 'resume' | 'steer' | 'message' }
>

/** How `sendAll` tells. */
export interface SendAllOptions {
  /**
   * An idempotency key, 1 to 200 characters: a session that was told with it is not told again. Give one to `steer` and to
   * `message`, so that the same call can be made again after an error.
   */
  key?: string
  /** Sessions that are told at the same time. Default: 16. */
  concurrency?: number
  /** Called after each session. */
  onProgress?: (receipt: Readonly<SendAllReceipt>) => void
  /** Tells no further session once it aborts: the call rejects with its reason. */
  signal?: AbortSignal
}

/** What became of a message for many sessions. */
export interface SendAllReceipt {
  /** The sessions that were told, or refused: the sum of the counts below. */
  sessions: number
  /** A process holds them: it reads the message within a second. */
  sent: number
  /** No process holds them: the next resume applies the message first. */
  waiting: number
  /** It is done, as for a `cancel` of a session that no process held. */
  applied: number
  /** Their run had ended before. */
  ended: number
  refused: number
  /** The first hundred refusals. */
  refusals: { session: string; code: string; message: string }[]
}

const messageTypes = ['cancel', 'pause', 'resume', 'steer', 'message'] as const
const selectionKeys = ['prefix', 'tags', 'agent', 'state'] as const satisfies (keyof SessionSelection)[]
const optionKeys = ['key', 'concurrency', 'onProgress', 'signal'] as const satisfies (keyof SendAllOptions)[]
/** Sessions with a run that has not ended. What is queued for the next turn is for the others, too. */
const openStates = ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'] as const
const pageSize = 500
const mostRefusals = 100

/**
 * Tells many sessions the same: for a deploy, an incident, a customer who has left. It resolves when every session that
 * matched has the message in its inbox, or has ended by it. A process that holds such a session starts nothing more for it later than a
 * second after that. After an error or a kill, make the same call again: with a `key`, no session is told twice.
 *
 * Default states: those of runs that have not ended; for a `message`, all.
 *
 * @example
 * const receipt = await sendAll(memoryStore(), { tags: { tenant: 'acme' } }, { type: 'cancel', why: 'The contract has ended.' })
 * console.log(receipt.sent + receipt.applied, 'of', receipt.sessions)
 * @throws {UsageError} `invalid_option`, `invalid_input`, `no_inbox`
 * @throws {StoreError} `store_unavailable`, …
 */
export async function sendAll(
  store: SessionStore,
  which: SessionSelection,
  message: MessageForAll,
  options: SendAllOptions = {},
): Promise<SendAllReceipt> {
  expectArgument(
    'sendAll(store)',
    store,
    objectRule(['list', 'acquire'], 'a store, such as fileStore({ dir })'),
  )
  const said = checkMessage(message, { by: 'sendAll()', of: messageTypes }) as MessageForAll
  const { key, concurrency = 16, onProgress, signal } = checkOptions(options)
  const asked = checkSelection(which, said)
  const receipt: SendAllReceipt = {
    sessions: 0,
    sent: 0,
    waiting: 0,
    applied: 0,
    ended: 0,
    refused: 0,
    refusals: [],
  }
  const tell = async (session: string): Promise<void> => {
    const what = await tellOne(store, session, said, key)
    if (what === null) return
    receipt.sessions += 1
    if (typeof what === 'string') receipt[what] += 1
    else {
      receipt.refused += 1
      if (receipt.refusals.length < mostRefusals)
        receipt.refusals.push({ session, code: what.code, message: what.message })
    }
    onProgress?.(receipt)
  }
  const seen = new Set<string>()
  let found: number
  do {
    found = 0
    // Sessions that were written meanwhile have moved to the front of the list, where another look finds them.
    const listed = listSessions(store, asked, pageSize)
    const tellNext = async (): Promise<void> => {
      // A worker that fails ends the list for the others.
      for await (const { id } of listed) {
        if (seen.has(id)) continue
        seen.add(id)
        found += 1
        signal?.throwIfAborted()
        await tell(id)
      }
    }
    // oxlint-disable-next-line no-await-in-loop -- each look follows the one before
    const outcomes = await Promise.allSettled(Array.from({ length: concurrency }, tellNext))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
  } while (found > 0)
  return receipt
}

type Outcome = 'sent' | 'waiting' | 'applied' | 'ended' | UsageError

/** What became of it; null for a session that was deleted meanwhile. */
async function tellOne(
  store: SessionStore,
  session: string,
  message: MessageForAll,
  key: string | undefined,
): Promise<Outcome | null> {
  const telling: SendOptions = key === undefined ? {} : { key }
  try {
    return (await sendToStoredSession({ store, clock: systemClock }, session, message, telling)).status
  } catch (error) {
    if (isCode(error, 'unknown_session')) return null
    if (!(error instanceof UsageError) || error.code === 'no_inbox') throw error
    return error.code === 'run_ended' ? 'ended' : error
  }
}

const isCode = (error: unknown, code: string): boolean =>
  typeof error === 'object' && error !== null && 'code' in error && error.code === code

function checkSelection(which: unknown, { type }: MessageForAll): ListOptions {
  const keys = selectionKeys.join(', ')
  const isGiven = typeof which === 'object' && which !== null && !Array.isArray(which)
  if (!isGiven || !selectionKeys.some((key) => (which as SessionSelection)[key] !== undefined))
    throw new UsageError(
      'invalid_option',
      `sendAll takes which sessions to tell, by at least one of ${keys}: { tags: { tenant: 'acme' } }.`,
      'which',
    )
  expectKnownOptions('sendAll', which, selectionKeys)
  const { prefix, tags, agent, states } = checkListOptions(which)
  return {
    // A copy, with every key of its own: a key that an object inherits would be lost, and every session be told.
    ...(prefix !== null && { prefix }),
    ...(tags.length > 0 && { tags: Object.fromEntries(tags) }),
    ...(agent !== null && { agent }),
    ...(states !== null ? { state: states } : type !== 'message' && { state: openStates }),
  }
}

function checkOptions(options: SendAllOptions): SendAllOptions {
  expectArgument('sendAll(store, which, message, options)', options, optionsRule)
  expectKnownOptions('sendAll', options, optionKeys)
  const { key, concurrency, onProgress, signal } = options
  const wrong = (subject: string, what: string): UsageError =>
    new UsageError('invalid_option', `sendAll: ${subject} must be ${what}.`, subject)
  if (key !== undefined && !(typeof key === 'string' && key !== '' && key.length <= 200))
    throw wrong('key', 'a text of 1 to 200 characters')
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && concurrency >= 1))
    throw wrong('concurrency', 'a whole number from 1')
  if (onProgress !== undefined && typeof onProgress !== 'function') throw wrong('onProgress', 'a function')
  if (signal !== undefined && typeof signal?.addEventListener !== 'function')
    throw wrong('signal', 'an AbortSignal')
  return options
}
