import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import * as z from 'zod'
import { StatewrightError, describeError } from '../core/base/errors.js'
import type { RecordedRequest, ChatRequest } from './chat-request.js'
import { type Turn, turnSchema } from './turn-schema.js'
import { type Clock, systemClock } from '../core/base/clock.js'
import { readProperty } from '../core/base/json.js'

/**
 * A rehearsal that cannot start. `code` is `invalid_scenario` or `invalid_options` (`subject` is the path of
 * the problem, such as `turns[2].toolCalls[0].name`), `unreadable_scenario` (`subject` is the file) or
 * `cannot_listen`.
 *
 * @example
 * try {
 *   parseScenario({ turns: 1 })
 * } catch (error) {
 *   if (error instanceof RehearsalError) console.log(error.code, error.message)
 * }
 */
export class RehearsalError extends StatewrightError {
  override readonly name = 'RehearsalError'
}

/**
 * A turn computed from the request. If it throws or returns an invalid turn, the response has status 400.
 *
 * @example
 * const echo: TurnFunction = ({ body }) => ({ text: `You said: ${JSON.stringify(body.messages.at(-1)?.content)}` })
 * const rehearsal = await startRehearsal({ scenario: { turns: [echo], onExhausted: 'repeatLast' } })
 * await rehearsal.close()
 */
export type TurnFunction = (request: RecordedRequest) => Turn | Promise<Turn>

/**
 * The model's responses, one per request. Plain JSON unless a turn is a function.
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
  name?: string | undefined
  description?: string | undefined
  /** The turns, one per request. At least one is required. */
  turns: readonly (Turn | TurnFunction)[]
  /**
   * The response after the last turn: status 400 (`error`, the default), the last turn again (`repeatLast`), or
   * the first turn (`loop`).
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
 * Validates a scenario.
 *
 * @example const scenario = parseScenario(JSON.parse(text))
 * @throws {RehearsalError} `invalid_scenario`, with the path of the first mistake as `subject`
 */
export function parseScenario(value: unknown, origin = 'The scenario'): Scenario {
  const { data, error } = scenarioSchema.safeParse(value)
  if (error) throw invalidScenarioError('invalid_scenario', origin, error)
  return data as Scenario
}

/** @throws RehearsalError `invalid_scenario` */
export function parseTurn(value: unknown): Turn {
  const { data, error } = turnSchema.safeParse(value)
  if (error) throw invalidScenarioError('invalid_scenario', 'The result of the turn function', error)
  return data
}

/**
 * Reads and validates a scenario file (JSON).
 *
 * @example const rehearsal = await startRehearsal(await loadScenario('test/scenarios/refund.json'))
 * @throws {RehearsalError} `unreadable_scenario` if the file is missing, `invalid_scenario` with the path of the
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

function invalidScenarioError(code: string, origin: string, { issues }: z.ZodError): RehearsalError {
  const { path, message } = issues[0] ? describeIssue(issues[0]) : { path: [], message: 'it is invalid' }
  const subject = z.core.toDotPath(path)
  return new RehearsalError(code, `${origin} is invalid${subject && ` at ${subject}`}: ${message}.`, subject)
}

/** Unknown keys become part of the path. */
function describeIssue(issue: z.core.$ZodIssue): { path: PropertyKey[]; message: string } {
  if (issue.code !== 'unrecognized_keys') return { path: issue.path, message: issue.message }
  return { path: [...issue.path, ...issue.keys.slice(0, 1)], message: 'the key is unknown' }
}

/** Options for a rehearsal. */
export interface RehearsalOptions {
  /**
   * The default scenario, played for every model without a scenario of that name. Without it, only `scenarios`
   * play.
   */
  scenario?: Scenario | undefined
  /** Scenarios by name. Requests for the model `rehearsal/NAME` play NAME. */
  scenarios?: Record<string, Scenario> | undefined
  /**
   * Returns the conversation of a request. Each conversation plays its scenario from the start. Defaults to the header
   * `x-rehearsal-conversation`, or else the `user` of the body, or else one shared conversation.
   */
  conversation?: ((request: ChatRequest, headers: IncomingHttpHeaders) => string) | undefined
  /**
   * Whether to reject histories that providers reject, such as a tool call without a result, with status 400. Defaults
   * to true.
   */
  strictHistory?: boolean | undefined
  /**
   * Whether to reject everything that some provider rejects, with status 400 and an explanation. This includes invalid
   * call names, arguments that are not JSON objects, blank content, unpaired surrogates, roles out of order, and
   * excessive sizes. Use it to test what your agent or custom provider sends. Defaults to false.
   */
  strict?: boolean | undefined
  /** The port to listen on. Defaults to 0, which selects any free port. */
  port?: number | undefined
  /** The address to listen on. Defaults to `127.0.0.1`. */
  host?: string | undefined
  /**
   * Origins of web pages that may send requests (`https://app.test:8443`), in addition to pages on this machine. `*`
   * allows all. None by default.
   */
  origins?: readonly string[] | undefined
  /** The clock for turn delays and request times. Defaults to the system clock. */
  clock?: Clock | undefined
}

/** Options with defaults. The default scenario has the empty name. */
export type RehearsalSettings = Required<{
  [Key in Exclude<keyof RehearsalOptions, 'scenario' | 'scenarios'>]: NonNullable<RehearsalOptions[Key]>
}> & { scenarios: Map<string, Scenario> }

const optionsSchema = z.strictObject({
  scenario: z.unknown().optional(),
  scenarios: z.record(z.string().min(1), z.unknown()).default({}),
  conversation: z
    .custom<RehearsalSettings['conversation']>(isFunction, 'expected a function')
    .default(() => getConversation),
  strictHistory: z.boolean().default(true),
  strict: z.boolean().default(false),
  port: z.int().min(0).max(65_535).default(0),
  host: z.string().min(1).default('127.0.0.1'),
  origins: z
    .array(z.string().refine(isOrigin, "expected an origin, such as 'https://app.test', or '*'"))
    .default([]),
  clock: z
    .custom<Clock>(isClock, "expected an object with the functions 'now', 'setTimeout' and 'clearTimeout'")
    .default(systemClock),
})

/** @throws RehearsalError */
export function parseOptions(value: Scenario | RehearsalOptions): RehearsalSettings {
  if (typeof value === 'object' && value !== null && 'turns' in value)
    return parseOptions({ scenario: value })
  const { data, error } = optionsSchema.safeParse(value)
  if (error) throw invalidScenarioError('invalid_options', 'The rehearsal', error)
  const { scenario, scenarios: named, ...settings } = data
  const scenarios = new Map(
    Object.entries(named).map(([name, value]) => [name, parseScenario(value, `The scenario '${name}'`)]),
  )
  if (scenario !== undefined) scenarios.set('', parseScenario(scenario))
  if (scenarios.size === 0) {
    const message =
      'No scenario to play. Pass a scenario ({ turns: […] }), or options with scenario or scenarios.'
    throw new RehearsalError('invalid_options', message, 'scenario')
  }
  return { ...settings, scenarios }
}

function getConversation({ user }: ChatRequest, headers: IncomingHttpHeaders): string {
  const header = headers['x-rehearsal-conversation']
  return (Array.isArray(header) ? header[0] : header) ?? user ?? ''
}

function isOrigin(value: string): boolean {
  return value === '*' || (URL.canParse(value) && new URL(value).origin === value)
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

function isClock(value: unknown): boolean {
  return ['now', 'setTimeout', 'clearTimeout'].every((name) => isFunction(readProperty(value, name)))
}
