import { truncateLine } from '../../../guards/lib/words.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { expectArgument, objectRule, optionsRule } from '../../core/base/values.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { isMachineSession } from '../../core/sessions/log/machine-record.js'
import { readConversation, type RunInput } from '../../core/sessions/input-history.js'
import type { UserInput, UserInputMessage } from '../../core/sessions/user-input.js'
import type { StepMark } from '../../core/sessions/store/step-marks.js'
import { formatMessageText } from '../../core/format/format-words.js'
import { findTagsFault, maxValueLength, type SessionTags } from '../../core/sessions/store/session-tags.js'
import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import { replayEvents } from '../../core/run/watch-session.js'
import { openRecord } from '../../core/sessions/log/log-record.js'
import { readSessionAt, toSessionSnapshot } from '../../core/sessions/replay-session.js'
import { listSessions } from '../../core/run/delete-sessions.js'
import { StoreError } from '../../core/sessions/store/store-error.js'
import type { SessionStore } from '../../core/sessions/store/store.js'

/**
 * One case of an evaluation, as plain JSON. A case file contains one case per line.
 *
 * @example
 * const question: EvaluationCase = { id: 'capital', input: 'What is the capital of France?', expected: 'Paris' }
 */
export interface EvaluationCase<Expected = unknown> {
  /** The id of the case, which is unique and has up to 200 characters. */
  id: string
  /** A text, messages, or a conversation that ends with the user. */
  input: RunInput
  /** An answer, a pattern, or any other reference for the scorers. */
  expected?: Expected
  /** Tags. The report groups scores by tag. */
  tags?: SessionTags
  /** A recorded session to replay. See `readSessionCases`. */
  recorded?: RecordedSession
}

/** A stored session to replay on another agent. */
export interface RecordedSession {
  /** User input, with one entry per run. */
  turns: readonly UserInput[]
  /** Calls with a result. */
  calls: readonly RecordedResult[]
}

export interface RecordedResult {
  name: string
  /** The arguments as JSON text. */
  arguments: string
  result: Pick<ToolResult, 'status' | 'content' | 'media' | 'errorKind'>
}

export const evaluationTag = 'evaluation'

const keys = ['id', 'input', 'expected', 'tags', 'recorded']

/**
 * Parses cases, one JSON object per line. Empty lines are skipped.
 *
 * @example
 * const cases = parseCases('{ "id": "capital", "input": "The capital of France?", "expected": "Paris" }')
 *
 * @param name of the file, for the error
 * @throws {EvaluationError} `invalid_cases`, whose `problems` list every line that cannot be read
 */
export function parseCases(text: string, name = 'The cases'): EvaluationCase[] {
  expectArgument('parseCases(text)', text, { is: (value) => typeof value === 'string', phrase: 'a text' })
  const problems: CaseProblem[] = []
  const rows: { line: number; value: unknown }[] = []
  for (const [i, row] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (row.trim() === '') continue
    try {
      rows.push({ line: i + 1, value: JSON.parse(row) })
    } catch (error) {
      problems.push({ line: i + 1, message: `is not JSON: ${describeError(error)}` })
    }
  }
  return readCases(rows, problems, { name, place: 'line' })
}

export function checkCases(cases: readonly unknown[]): EvaluationCase[] {
  return readCases(
    cases.map((value, i) => ({ line: i + 1, value })),
    [],
    { name: 'evaluate({ cases })', place: 'case' },
  )
}

function readCases(
  rows: readonly { line: number; value: unknown }[],
  problems: CaseProblem[],
  { name, place }: { name: string; place: string },
): EvaluationCase[] {
  const lines = new Map<string, number>()
  const cases: EvaluationCase[] = []
  for (const { line, value } of rows) {
    const problem = findProblem(value, lines, place)
    if (problem !== null) problems.push({ line, message: problem })
    const one = value as EvaluationCase
    if (problem === null) cases.push(one)
    if (typeof one?.id === 'string' && !lines.has(one.id)) lines.set(one.id, line)
  }
  if (problems.length === 0 && cases.length > 0) return cases
  const sorted = problems.toSorted((a, b) => a.line - b.line)
  const shown = sorted.slice(0, mostShown).map((one) => `${place} ${one.line} ${one.message}`)
  const rest = sorted.length > mostShown ? ` … and ${sorted.length - mostShown} more` : ''
  const what = problems.length === 0 ? 'contains no cases' : `${shown.join('; ')}${rest}`
  throw new EvaluationError(
    'invalid_cases',
    `${name}: ${what}. A case is { "id", "input", "expected"?, "tags"? }.`,
    sorted[0] === undefined ? undefined : `${place} ${sorted[0].line}`,
    { problems: sorted },
  )
}

const mostShown = 10

/** The problem with a case, phrased to complete a sentence, or null. */
function findProblem(value: unknown, lines: ReadonlyMap<string, number>, place: string): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is not a JSON object'
  const { id, input, tags } = value as Record<string, unknown>
  if (id === undefined) return 'has no id'
  if (typeof id !== 'string' || id.trim() === '' || id.length > 200 || /[\0\p{Cs}]/u.test(id))
    return 'has an id that is not a string of 1 to 200 characters'
  const earlier = lines.get(id)
  const shown = JSON.stringify(id)
  if (earlier !== undefined) return `has the id ${shown} of ${place} ${earlier}`
  const unknown = Object.keys(value).find((key) => !keys.includes(key))
  if (unknown !== undefined) return `(${shown}) has the unknown key '${unknown}'`
  if (input === undefined) return `(${shown}) has no input`
  try {
    readConversation(input, 0)
  } catch (error) {
    return `(${shown}) has an invalid input: ${describeError(error).replace(/\.$/, '')}`
  }
  const fault = tags === undefined ? null : findTagsFault(tags)
  return fault === null ? null : `(${shown}): tags ${fault}`
}

/**
 * - `invalid_cases`: cases cannot be read; `problems` names each line
 * - `invalid_option`, `not_an_agent`, `invalid_report`: an invalid argument to `evaluate`, `judge` or a comparison
 * - `other_evaluation`: the store has sessions with this evaluation id that were started with another agent or input
 * - `judge_failed`: a judge returned no verdict
 * - `invalid_score`: a scorer returned an invalid score
 */
export type EvaluationErrorCode =
  | 'invalid_cases'
  | 'invalid_option'
  | 'invalid_report'
  | 'not_an_agent'
  | 'other_evaluation'
  | 'judge_failed'
  | 'invalid_score'

export interface CaseProblem {
  /** Line in the file, or position in the list, from 1. */
  line: number
  message: string
}

/**
 * An evaluation that cannot run.
 *
 * @example
 * try {
 *   parseCases('{ "id": "a" }')
 * } catch (error) {
 *   if (error instanceof EvaluationError) for (const { line, message } of error.problems) console.log(line, message)
 * }
 */
export class EvaluationError extends StatewrightError {
  override readonly name = 'EvaluationError'
  declare readonly code: EvaluationErrorCode
  /** The invalid cases, for `invalid_cases`. */
  readonly problems: readonly CaseProblem[]

  constructor(
    code: EvaluationErrorCode,
    message: string,
    subject?: string,
    { problems = [], ...options }: ErrorOptions & { problems?: readonly CaseProblem[] } = {},
  ) {
    super(code, message, subject, options)
    this.problems = problems
  }
}

export function evaluationOptionError(key: string, what: string): EvaluationError {
  return new EvaluationError('invalid_option', `evaluate: ${key} ${what}.`, key)
}

/** Selects the sessions to convert. */
export interface SessionCasesOptions {
  /** Maximum number of sessions, most recently updated first. Defaults to 100. */
  last?: number
  /** Sessions with all of these tags. */
  tags?: SessionTags
  /** Sessions whose ids start with this text and a colon. */
  prefix?: string
  /** Sessions of the agent with this name. */
  agent?: string
  /** Whether to convert only the steps that people have marked. Each of these steps becomes a case. */
  marked?: boolean
  /** Called for each session that cannot be read, which is then skipped. By default, the first one throws. */
  onDamaged?: (error: StoreError) => void
}

/**
 * Converts stored sessions to cases with the recorded user input, the recorded tool results, and the final answer as
 * `expected`. Forks, machines, evaluation sessions, and sessions without user input cleared by shields are skipped.
 *
 * With `marked`, each step that a person has marked is a case, with the conversation up to that step. Only an answer
 * that was marked as good is `expected`. The tags `mark` and `note` contain the mark.
 *
 * @example
 * const kept = memoryStore()
 * const cases = await readSessionCases(kept, { last: 100, tags: { plan: 'pro' } })
 * if (cases.length > 0) await evaluate({ agent, cases })
 *
 * @throws {EvaluationError} `invalid_option`
 * @throws {StoreError} `corrupt_log`, … without `onDamaged`, `store_unavailable`
 */
export async function readSessionCases(
  store: SessionStore,
  options: SessionCasesOptions = {},
): Promise<EvaluationCase<string>[]> {
  expectArgument('readSessionCases(store)', store, objectRule(['list', 'read', 'get'], 'a SessionStore'))
  expectArgument('readSessionCases(store, options)', options, optionsRule)
  const { last = 100, marked = false, onDamaged, ...which } = options
  if (!Number.isSafeInteger(last) || last < 1)
    throw evaluationOptionError('last', 'must be a positive integer')
  const cases: EvaluationCase<string>[] = []
  for await (const entry of listSessions(store, which)) {
    const { id, summary, marks = [] } = entry
    if (summary?.tags?.[evaluationTag] !== undefined || isMachineSession(entry)) continue
    try {
      for (const mark of marked ? marks : [undefined]) {
        // One log at a time is in memory.
        const one = await readSessionCase(store, id, { tags: summary?.tags, mark })
        if (one !== null) cases.push(one)
        if (cases.length === last) return cases
      }
    } catch (error) {
      if (!onDamaged || !(error instanceof StoreError) || error.code === 'store_unavailable') throw error
      onDamaged(error)
    }
  }
  return cases
}

async function readSessionCase(
  store: SessionStore,
  id: string,
  { tags, mark }: { tags: SessionTags | undefined; mark: StepMark | undefined },
): Promise<EvaluationCase<string> | null> {
  const [opening] = await store.read(id, { to: 1 })
  const entry = opening && openRecord(opening, 0, id)
  if (entry?.type === 'opened' && entry.forkedFrom) return null
  const { messages, run } = toSessionSnapshot(await readSessionAt(store, id, mark?.seq))
  const turns = listTurns(messages)
  const [first] = turns
  if (first === undefined) return null
  const output = mark ? findMarkedAnswer(messages, mark) : (run?.output ?? '')
  return {
    id: mark ? `${id}@${mark.seq}` : id,
    input: first,
    ...(output !== '' && { expected: output }),
    ...(mark ? { tags: toMarkTags(tags, mark) } : tags && { tags }),
    recorded: { turns, calls: await readResults(store, id, messages) },
  }
}

/** The answer that a person marked as good. Empty for other marks and for a step with tool calls. */
function findMarkedAnswer(messages: readonly Message[], { mark }: StepMark): string {
  const last = messages.at(-1)
  return mark === 'good' && last?.role === 'assistant' && !last.tool_calls?.length
    ? formatMessageText(last)
    : ''
}

const toMarkTags = (tags: SessionTags | undefined, { mark, note }: StepMark): SessionTags => ({
  ...tags,
  mark,
  ...(note !== '' && { note: truncateLine(note, maxValueLength - 1) }),
})

/** Results from tools, clients, sub-agents and people, as opposed to results created by the loop. */
const toolStatuses: ReadonlySet<string> = new Set(['ok', 'error', 'timeout', 'denied', 'rejected'])

/** The results in arrival order. Content pending review is not emitted and therefore missing. */
async function readResults(
  store: SessionStore,
  id: string,
  messages: readonly Message[],
): Promise<RecordedResult[]> {
  const results: RecordedResult[] = []
  const callsById = new Map<string, ToolCall['function']>()
  const announced = new Set<string>()
  for (const event of [...replayEvents(await store.read(id), id)].flatMap(({ events }) => events)) {
    if (event.type === 'tool_call' && !event.call.hosted) callsById.set(event.call.id, event.call.function)
    if (event.type !== 'tool_result') continue
    announced.add(event.callId)
    const call = callsById.get(event.callId)
    const { status, content, media, errorKind } = event
    const more = { ...(media && { media }), ...(errorKind && { errorKind }) }
    if (call && toolStatuses.has(status)) results.push({ ...call, result: { status, content, ...more } })
  }
  return [...listEarlierResults(messages, announced), ...results]
}

/** Results from a fork or a given conversation, which exist only in the transcript. */
function listEarlierResults(messages: readonly Message[], announced: ReadonlySet<string>): RecordedResult[] {
  const callsById = new Map<string, ToolCall>()
  return messages.flatMap((message): RecordedResult[] => {
    if (message.role === 'assistant')
      for (const call of message.tool_calls ?? []) callsById.set(call.id, call)
    if (message.role !== 'tool' || announced.has(message.tool_call_id)) return []
    const call = callsById.get(message.tool_call_id)
    if (!call || call.hosted) return []
    const { content, media } = message
    return [{ ...call.function, result: { status: 'ok', content, ...(media && { media }) } }]
  })
}

function listTurns(messages: readonly Message[]): UserInputMessage[][] {
  const turns: UserInputMessage[][] = []
  let isAnswered = true
  for (const message of messages) {
    if (message.role !== 'user') {
      isAnswered = true
      continue
    }
    if (message.internal || message.data?.['withheld'] === true) continue
    const userMessage: UserInputMessage = { content: message.content }
    if (isAnswered) turns.push([userMessage])
    else turns.at(-1)?.push(userMessage)
    isAnswered = false
  }
  return turns
}
