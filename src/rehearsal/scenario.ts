import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import { describeError } from '../core/base/describe-error.js'
import { RehearsalError } from './errors.js'
import type { RecordedRequest } from './chat-request.js'
import { type Turn, turnSchema } from './turn-schema.js'

/**
 * A turn that depends on the request. What it throws is answered 400, as is a turn that is invalid.
 *
 * @example
 * const echo: TurnFunction = ({ body }) => ({ text: `You said: ${JSON.stringify(body.messages.at(-1)?.content)}` })
 * const rehearsal = await startRehearsal({ scenario: { turns: [echo], onExhausted: 'repeatLast' } })
 * await rehearsal.close()
 */
export type TurnFunction = (request: RecordedRequest) => Turn | Promise<Turn>

/**
 * The model's answers, one for each request. Plain JSON, unless a turn is a function.
 *
 * @example
 * const scenario: Scenario = {
 *   turns: [
 *     { toolCalls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] },
 *     { status: 429, retryAfter: 1 },
 *     ({ body }) => ({ text: `I have read ${body.messages.length} messages.` }),
 *   ],
 * }
 */
export interface Scenario {
  /** For people. */
  name?: string | undefined
  /** What it shows, for people. */
  description?: string | undefined
  /** One a request; at least one. */
  turns: readonly (Turn | TurnFunction)[]
  /**
   * What a request after the last turn gets: `error` (the default) a 400 that says so, `repeatLast` the last turn
   * again, `loop` the first one.
   */
  onExhausted?: 'error' | 'repeatLast' | 'loop' | undefined
}

const turnOrFunction = z.unknown().check(({ value: input, issues }) => {
  if (typeof input === 'function') return
  const { error } = turnSchema.safeParse(input)
  for (const issue of error?.issues ?? []) issues.push({ code: 'custom', input, ...describeIssue(issue) })
})

const scenarioSchema = z.strictObject({
  name: z.string().optional(),
  description: z.string().optional(),
  turns: z.array(turnOrFunction).min(1, 'a scenario needs at least one turn'),
  onExhausted: z.enum(['error', 'repeatLast', 'loop']).optional(),
})

/**
 * Checks a scenario.
 *
 * @example const scenario = parseScenario(JSON.parse(text))
 * @throws {RehearsalError} `invalid_scenario`, with the path of the first mistake as `subject`
 */
export function parseScenario(value: unknown, origin = 'The scenario'): Scenario {
  const { data, error } = scenarioSchema.safeParse(value)
  if (error) throw invalidScenarioError('invalid_scenario', origin, error)
  return data as Scenario
}

/** Checks what a turn function returned. @throws RehearsalError `invalid_scenario` */
export function parseTurn(value: unknown): Turn {
  const { data, error } = turnSchema.safeParse(value)
  if (error) throw invalidScenarioError('invalid_scenario', 'What the turn function returned', error)
  return data
}

/**
 * Reads and checks a scenario file (JSON).
 *
 * @example const rehearsal = await startRehearsal(await loadScenario('test/scenarios/refund.json'))
 * @throws {RehearsalError} `unreadable_scenario` when there is no such file, `invalid_scenario` with the path of the
 * first mistake
 */
export async function loadScenario(path: string): Promise<Scenario> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    const message = `Cannot read the scenario file ${path}: ${describeError(cause)}`
    throw new RehearsalError('unreadable_scenario', message, path, { cause })
  })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    const message = `The scenario file ${path} is not JSON: ${describeError(cause)}`
    throw new RehearsalError('invalid_scenario', message, path, { cause })
  }
  return parseScenario(value, `The scenario file ${path}`)
}

/** The first mistake as a sentence with its path. */
export function invalidScenarioError(code: string, origin: string, { issues }: z.ZodError): RehearsalError {
  const { path, message } = issues[0] ? describeIssue(issues[0]) : { path: [], message: 'it is invalid' }
  const subject = z.core.toDotPath(path)
  return new RehearsalError(code, `${origin} is invalid${subject && ` at ${subject}`}: ${message}.`, subject)
}

/** Where and what: an unknown key is part of the path. */
function describeIssue(issue: z.core.$ZodIssue): { path: PropertyKey[]; message: string } {
  if (issue.code !== 'unrecognized_keys') return { path: issue.path, message: issue.message }
  return { path: [...issue.path, ...issue.keys.slice(0, 1)], message: 'there is no such key' }
}
