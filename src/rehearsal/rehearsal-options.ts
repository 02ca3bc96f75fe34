import type { IncomingHttpHeaders } from 'node:http'
import * as z from 'zod'
import { type Clock, systemClock } from '../core/base/clock.js'
import { RehearsalError } from './errors.js'
import type { ChatRequest } from './chat-request.js'
import { invalidScenarioError, parseScenario, type Scenario } from './scenario.js'

/** The scenarios of a rehearsal, and how strict it is. */
export interface RehearsalOptions {
  /** Played by every model name that names no other. Without it, only `scenarios` play. */
  scenario?: Scenario | undefined
  /** Scenarios by name; a request for the model `rehearsal/NAME` plays NAME. */
  scenarios?: Record<string, Scenario> | undefined
  /**
   * The conversation that a request belongs to: each plays its scenario from the start. Default: the header
   * `x-rehearsal-conversation`, else the `user` of the body, else one conversation for all.
   */
  conversation?: ((request: ChatRequest, headers: IncomingHttpHeaders) => string) | undefined
  /** Answer 400 to a history that providers refuse (a tool call without its result, and the like). Default true. */
  strictHistory?: boolean | undefined
  /**
   * Answer 400, with a sentence, to everything that some provider refuses: also names of calls, arguments that are no
   * JSON object, blank content, torn surrogate pairs, roles out of turn and sizes. For tests of what your agent sends,
   * your own provider and histories of your own. Default false.
   */
  strict?: boolean | undefined
  /** Default 0: a free one. */
  port?: number | undefined
  /** Default `127.0.0.1`. */
  host?: string | undefined
  /**
   * Web pages that may send requests, by their origin (`https://app.test:8443`), besides those of this machine
   * (`http://localhost:5173`); `*` stands for all. Default: none.
   */
  origins?: readonly string[] | undefined
  /** For the delays of turns and the times of requests. Default: the system's. */
  clock?: Clock | undefined
}

/** Options with every default filled in. The default scenario is the one with the empty name. */
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
  clock: z.custom<Clock>(isClock, 'expected now, setTimeout and clearTimeout').default(systemClock),
})

/** Checks a scenario, or options with scenarios in them. @throws RehearsalError */
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
      'There is nothing to rehearse: pass a scenario ({ turns: […] }), or options with scenario or scenarios.'
    throw new RehearsalError('invalid_options', message, 'scenario')
  }
  return { ...settings, scenarios }
}

/** The conversation of a request by default. */
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
  if (typeof value !== 'object' || value === null) return false
  const { now, setTimeout, clearTimeout } = value as Partial<Clock>
  return [now, setTimeout, clearTimeout].every(isFunction)
}
