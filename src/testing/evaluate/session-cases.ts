import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import { expectArgument, objectRule, optionsRule } from '../../core/base/expect-argument.js'
import { replayEvents } from '../../core/run/watch-session.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import { replaySession } from '../../core/sessions/replay-session.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import type { ListedSession, SessionStore } from '../../core/sessions/store/store.js'
import type { UserInputMessage } from '../../core/sessions/user-input.js'
import { evaluationTag } from './case-run.js'
import type { EvaluationCase, RecordedResult } from './evaluation-case.js'
import { evaluationOptionError } from './evaluation-error.js'

/** Which sessions become cases. */
export interface SessionCasesOptions {
  /** How many, the last written first. Default: 100. */
  last?: number
  /** Those that have all of these tags. */
  tags?: SessionTags
  /** Those whose ids begin with this text and a colon. */
  prefix?: string
  /** Those of the agent with this name. */
  agent?: string
}

/** Sessions of a page of the list. */
const pageSize = 100

/**
 * Sessions of a store as cases: what the user said is said to another agent, and calls get the results that they had.
 * `expected` is the last answer. Forks, sessions of evaluations, and sessions in which no user said anything that shields let
 * through, are left out.
 *
 * @example
 * const kept = memoryStore()
 * const cases = await readSessionCases(kept, { last: 100, tags: { plan: 'pro' } })
 * if (cases.length > 0) await evaluate({ agent, cases })
 *
 * @throws {EvaluationError} `invalid_option`
 * @throws {StoreError} `corrupt_log`, …
 */
export async function readSessionCases(
  store: SessionStore,
  options: SessionCasesOptions = {},
): Promise<EvaluationCase<string>[]> {
  expectArgument('readSessionCases(store)', store, objectRule(['list', 'read', 'get'], 'a SessionStore'))
  expectArgument('readSessionCases(store, options)', options, optionsRule)
  const { last = 100, ...which } = options
  if (!Number.isSafeInteger(last) || last < 1)
    throw evaluationOptionError('last', 'must be a whole number from 1')
  const cases: EvaluationCase<string>[] = []
  let after: ListedSession | undefined
  /* oxlint-disable no-await-in-loop -- one log at a time is in memory */
  for (;;) {
    const page = await store.list({ ...which, limit: pageSize, after })
    for (const { id, summary } of page) {
      if (summary?.tags?.[evaluationTag] !== undefined) continue
      const one = await readSessionCase(store, id, summary?.tags)
      if (one !== null) cases.push(one)
      if (cases.length === last) return cases
    }
    after = page.at(-1)
    if (page.length < pageSize || after === undefined) return cases
  }
  /* oxlint-enable no-await-in-loop */
}

async function readSessionCase(
  store: SessionStore,
  id: string,
  tags: SessionTags | undefined,
): Promise<EvaluationCase<string> | null> {
  const [opening] = await store.read(id, { to: 1 })
  const entry = opening && openRecord(opening, 0, id)
  if (entry?.type === 'opened' && entry.forkedFrom) return null
  const { messages, run } = await replaySession(store, id)
  const turns = listTurns(messages)
  const [first] = turns
  if (first === undefined) return null
  const output = run?.output ?? ''
  return {
    id,
    input: first,
    ...(output !== '' && { expected: output }),
    ...(tags && { tags }),
    recorded: { turns, calls: await readResults(store, id, messages) },
  }
}

/** Results that a tool, a client, a sub-agent or a person gave; not those that the loop gave in their place. */
const given: ReadonlySet<string> = new Set(['ok', 'error', 'timeout', 'denied', 'rejected'])

/** In the order in which they came. What shields have not cleared is not told, and so not here. */
async function readResults(
  store: SessionStore,
  id: string,
  messages: readonly Message[],
): Promise<RecordedResult[]> {
  const results: RecordedResult[] = []
  const asked = new Map<string, ToolCall['function']>()
  const told = new Set<string>()
  for (const event of [...replayEvents(await store.read(id), id)].flatMap(({ events }) => events)) {
    if (event.type === 'tool_call' && !event.call.hosted) asked.set(event.call.id, event.call.function)
    if (event.type !== 'tool_result') continue
    told.add(event.callId)
    const call = asked.get(event.callId)
    const { status, content, media, errorKind } = event
    const more = { ...(media && { media }), ...(errorKind && { errorKind }) }
    if (call && given.has(status)) results.push({ ...call, result: { status, content, ...more } })
  }
  return [...listEarlierResults(messages, told), ...results]
}

/** Those of a fork, or of a conversation that was given: they are in the transcript alone. */
function listEarlierResults(messages: readonly Message[], told: ReadonlySet<string>): RecordedResult[] {
  const asked = new Map<string, ToolCall>()
  return messages.flatMap((message): RecordedResult[] => {
    if (message.role === 'assistant') for (const call of message.tool_calls ?? []) asked.set(call.id, call)
    if (message.role !== 'tool' || told.has(message.tool_call_id)) return []
    const call = asked.get(message.tool_call_id)
    if (!call || call.hosted) return []
    const { content, media } = message
    return [{ ...call.function, result: { status: 'ok', content, ...(media && { media }) } }]
  })
}

/** What the user said, a turn for each answer: messages that follow one another are one turn. */
function listTurns(messages: readonly Message[]): UserInputMessage[][] {
  const turns: UserInputMessage[][] = []
  let isAnswered = true
  for (const message of messages) {
    if (message.role !== 'user') {
      isAnswered = true
      continue
    }
    if (message.internal || message.data?.['withheld'] === true) continue
    const said: UserInputMessage = { content: message.content }
    if (isAnswered) turns.push([said])
    else turns.at(-1)?.push(said)
    isAnswered = false
  }
  return turns
}
