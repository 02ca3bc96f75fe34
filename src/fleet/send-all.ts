import { openStates } from '../../machines/agent/run-result.js'
import { expectArgument, objectRule } from '../core/base/values.js'
import { systemClock } from '../core/base/clock.js'
import { readProperty } from '../core/base/json.js'
import { optionError, StatewrightError, UsageError } from '../core/base/errors.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  keyRule,
  type OptionRules,
  signalRule,
} from '../core/config/check-options.js'
import { expectKnownOptions } from '../core/config/other-names.js'
import { listSessions } from '../core/run/delete-sessions.js'
import { sendToStoredSession, type SendOptions } from '../core/run/send-to-stored-session.js'
import { isMachineSession } from '../core/sessions/log/machine-record.js'
import { checkMessage, type SessionMessage } from '../core/sessions/inbox/session-message.js'
import { checkListOptions, type ListOptions } from '../core/sessions/store/list-options.js'
import type { SessionStore } from '../core/sessions/store/store.js'

/**
 * The sessions that match every key, of which one is required. A message reaches sub-agents through their caller.
 *
 * @example const acme: SessionSelection = { tags: { tenant: 'acme' }, state: ['RUNNING', 'WAITING_FOR_TOOL'] }
 */
export type SessionSelection = Pick<ListOptions, 'prefix' | 'tags' | 'agent' | 'state'>

/** A message for many sessions. Answers are excluded because they belong to one call. */
export type MessageForAll = Extract<
  SessionMessage,
  { type: 'cancel' | 'pause' | 'resume' | 'steer' | 'message' }
>

/** Options for `sendAll`. */
export interface SendAllOptions {
  /**
   * Idempotency key, 1 to 200 characters. Each session receives messages with the same key only once. Use it for
   * `steer` and `message` so that the call can be repeated after an error.
   */
  key?: string
  /** The number of sessions to send to at once. Defaults to 16. */
  concurrency?: number
  /** Called after each session. */
  onProgress?: (receipt: Readonly<SendAllReceipt>) => void
  /** Stops sending when it aborts. The call rejects with the signal's reason. */
  signal?: AbortSignal
}

/** The outcome of a message to many sessions. */
export interface SendAllReceipt {
  /** Number of matching sessions, the sum of the counts below. */
  sessions: number
  /** A process holds the session and reads the message within a second. */
  sent: number
  /** No process holds the session. The next resume applies the message first. */
  waiting: number
  /** Applied at once, such as a `cancel` of a session that no process held. */
  applied: number
  /** The run had already ended. */
  ended: number
  refused: number
  /** The first hundred refusals. */
  refusals: { session: string; code: string; message: string }[]
}

const messageTypes = ['cancel', 'pause', 'resume', 'steer', 'message'] as const
const selectionKeys = ['prefix', 'tags', 'agent', 'state'] as const satisfies (keyof SessionSelection)[]
const optionRules: OptionRules<SendAllOptions> = {
  key: keyRule,
  concurrency: countRule,
  onProgress: callbackRule,
  signal: signalRule,
}
const pageSize = 500
const mostRefusals = 100

/**
 * Sends one message to many sessions, for example before a deploy or when a customer leaves. Resolves when every
 * matching session has the message in its inbox or has ended. A process that holds a session stops starting work for it
 * within one second. After an error, repeat the call. With a `key`, each session receives the message once.
 *
 * By default, the message reaches unfinished runs. A `message` also reaches ended runs.
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
  const checkedMessage = checkMessage(message, { by: 'sendAll()', of: messageTypes }) as MessageForAll
  const checked = checkOptions('sendAll(store, which, message, options)', options, optionRules)
  const { key, concurrency = 16, onProgress, signal } = checked
  const selection = checkSelection(which, checkedMessage)
  const counts = { sessions: 0, sent: 0, waiting: 0, applied: 0, ended: 0, refused: 0 }
  const receipt: SendAllReceipt = { ...counts, refusals: [] }
  const sendNext = async (session: string): Promise<void> => {
    const what = await sendToOne(store, session, checkedMessage, key)
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
    // Sessions written during the listing move to its front. Another pass finds them.
    const listed = listSessions(store, selection, pageSize)
    const sendToListed = async (): Promise<void> => {
      // A failing worker ends the list for the other workers.
      for await (const entry of listed) {
        const { id } = entry
        if (seen.has(id) || isMachineSession(entry)) continue
        seen.add(id)
        found += 1
        signal?.throwIfAborted()
        await sendNext(id)
      }
    }
    const outcomes = await Promise.allSettled(Array.from({ length: concurrency }, sendToListed))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
  } while (found > 0)
  return receipt
}

type Outcome = 'sent' | 'waiting' | 'applied' | 'ended' | StatewrightError

/** Codes of logs that cannot be read. The message still goes to the other sessions. */
const unreadableCodes = ['corrupt_log', 'newer_log', 'unknown_state']

/** The status, or null for a session that was deleted in the meantime. */
async function sendToOne(
  store: SessionStore,
  session: string,
  message: MessageForAll,
  key: string | undefined,
): Promise<Outcome | null> {
  const options: SendOptions = key === undefined ? {} : { key }
  try {
    return (await sendToStoredSession({ store, clock: systemClock }, session, message, options)).status
  } catch (error) {
    if (readProperty(error, 'code') === 'unknown_session') return null
    const isOfSession = error instanceof UsageError && error.code !== 'no_inbox'
    if (!(error instanceof StatewrightError) || !(isOfSession || unreadableCodes.includes(error.code)))
      throw error
    return error.code === 'run_ended' ? 'ended' : error
  }
}

function checkSelection(which: unknown, { type }: MessageForAll): ListOptions {
  const keys = selectionKeys.join(', ')
  const isSet = typeof which === 'object' && which !== null && !Array.isArray(which)
  if (!isSet || !selectionKeys.some((key) => (which as SessionSelection)[key] !== undefined))
    throw optionError(
      `sendAll needs at least one filter: ${keys}. Example: { tags: { tenant: 'acme' } }.`,
      'which',
    )
  expectKnownOptions('sendAll', which, selectionKeys)
  const { prefix, tags, agent, states } = checkListOptions(which)
  return {
    // Copies own keys only. A filter key lost through inheritance would match every session.
    ...(prefix !== null && { prefix }),
    ...(tags.length > 0 && { tags: Object.fromEntries(tags) }),
    ...(agent !== null && { agent }),
    // A queued message also goes to ended runs.
    ...(states !== null ? { state: states } : type !== 'message' && { state: openStates }),
  }
}
