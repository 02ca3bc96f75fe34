import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import { expectArgument } from '../../core/base/expect-argument.js'
import { describeError } from '../../core/base/describe-error.js'
import { readConversation, type RunInput } from '../../core/sessions/input-history.js'
import type { UserInput } from '../../core/sessions/user-input.js'
import { findTagsFault, type SessionTags } from '../../core/sessions/store/session-tags.js'
import { type CaseProblem, EvaluationError } from './evaluation-error.js'

/**
 * One question of an evaluation. Plain JSON: a line of a file of cases.
 *
 * @example
 * const question: EvaluationCase = { id: 'capital', input: 'What is the capital of France?', expected: 'Paris' }
 */
export interface EvaluationCase<Expected = unknown> {
  /** Unlike those of all other cases: up to 200 characters. */
  id: string
  /** What the user says: a text, messages, or a conversation that ends with the user. */
  input: RunInput
  /** For the scorers: an answer, a pattern, whatever they compare with. */
  expected?: Expected
  /** The report groups by them. */
  tags?: SessionTags
  /** What the case plays: see `readSessionCases`. */
  recorded?: RecordedSession
}

/** What of a stored session is played on another agent. */
export interface RecordedSession {
  /** What the user said, one run each. */
  turns: readonly UserInput[]
  /** The calls that have a result. */
  calls: readonly RecordedResult[]
}

/** A call, and what it returned. */
export interface RecordedResult {
  name: string
  /** JSON text. */
  arguments: string
  result: Pick<ToolResult, 'status' | 'content' | 'media' | 'errorKind'>
}

const keys = ['id', 'input', 'expected', 'tags', 'recorded']

/**
 * The cases of a file, one JSON object a line; empty lines are left out.
 *
 * @example
 * const cases = parseCases('{ "id": "capital", "input": "The capital of France?", "expected": "Paris" }')
 *
 * @param name of the file, for the error
 * @throws {EvaluationError} `invalid_cases`: its `problems` name every line that cannot be read
 */
export function parseCases(text: string, name = 'The cases'): EvaluationCase[] {
  expectArgument('parseCases(text)', text, { is: (value) => typeof value === 'string', phrase: 'a text' })
  const problems: CaseProblem[] = []
  const given: { line: number; value: unknown }[] = []
  for (const [i, row] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (row.trim() === '') continue
    try {
      given.push({ line: i + 1, value: JSON.parse(row) })
    } catch (error) {
      problems.push({ line: i + 1, message: `is no JSON: ${describeError(error)}` })
    }
  }
  return readCases(given, problems, { name, place: 'line' })
}

/** The cases of a list. @throws {EvaluationError} `invalid_cases` */
export function checkCases(cases: readonly unknown[]): EvaluationCase[] {
  return readCases(
    cases.map((value, i) => ({ line: i + 1, value })),
    [],
    { name: 'evaluate({ cases })', place: 'case' },
  )
}

function readCases(
  given: readonly { line: number; value: unknown }[],
  problems: CaseProblem[],
  { name, place }: { name: string; place: string },
): EvaluationCase[] {
  const lines = new Map<string, number>()
  const cases: EvaluationCase[] = []
  for (const { line, value } of given) {
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
  const what = problems.length === 0 ? 'has no case in it' : `${shown.join('; ')}${rest}`
  throw new EvaluationError(
    'invalid_cases',
    `${name}: ${what}. A case is { "id", "input", "expected"?, "tags"? }.`,
    sorted[0] === undefined ? undefined : `${place} ${sorted[0].line}`,
    { problems: sorted },
  )
}

/** Problems that a message names. */
const mostShown = 10

/** What is wrong with a case, as the end of a sentence; null: nothing is. */
function findProblem(value: unknown, lines: ReadonlyMap<string, number>, place: string): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'is no JSON object'
  const { id, input, tags } = value as Record<string, unknown>
  if (id === undefined) return 'has no id'
  if (typeof id !== 'string' || id.trim() === '' || id.length > 200 || /[\0\p{Cs}]/u.test(id))
    return 'has an id that is no text of 1 to 200 characters'
  const earlier = lines.get(id)
  const shown = JSON.stringify(id)
  if (earlier !== undefined) return `has the id ${shown} of ${place} ${earlier}`
  const unknown = Object.keys(value).find((key) => !keys.includes(key))
  if (unknown !== undefined) return `(${shown}) has the key '${unknown}', which cases do not have`
  if (input === undefined) return `(${shown}) has no input`
  try {
    readConversation(input, 0)
  } catch (error) {
    return `(${shown}) has an input that cannot be said: ${describeError(error)}`
  }
  const fault = tags === undefined ? null : findTagsFault(tags)
  return fault === null ? null : `(${shown}): tags ${fault}`
}
