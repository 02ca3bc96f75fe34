import { type AgentState, agentStates } from '../../../../machines/agent/run-result.js'
import { optionError, type UsageError } from '../../base/errors.js'
import { isObject } from '../../base/values.js'
import { expectKnownOptions } from '../../config/other-names.js'
import { isSessionId } from './session-id.js'
import { findTagsFault, hasTags, type SessionTags } from './session-tags.js'

/** `snapshot` starts at the last snapshot up to `to`, or at the first record if there is none. */
export interface ReadRange {
  /** Number of the first record. Defaults to 1. */
  from?: number | 'snapshot'
  /** Number of the last record. Defaults to the head. */
  to?: number
}

interface ListPosition {
  updatedAt: number
  id: string
}

/**
 * Selects the sessions to list. Sub-agent sessions are omitted unless `children` or `parent` is set.
 * @example
 * const options: ListOptions = { prefix: 'ann', state: ['PAUSED', 'WAITING_FOR_INPUT'], limit: 50 }
 * const page = await memoryStore().list(options)
 * const next = await memoryStore().list({ ...options, after: page.at(-1) })
 */
export interface ListOptions {
  /** Sessions whose ids start with this text and a colon, as `authorize` returns it. Defaults to all. */
  prefix?: string
  /** Sessions that have all of these tags. Defaults to all. */
  tags?: SessionTags
  /** Sessions whose latest run is in this state, or in one of these states. Defaults to all. */
  state?: AgentState | readonly AgentState[] | undefined
  /** Sessions of the agent with this name. Defaults to all. */
  agent?: string | undefined
  /** The sessions of the sub-agents that this session called directly. */
  parent?: string
  /** Whether to include sub-agent sessions. Defaults to false. With `parent`, only sub-agent sessions are listed. */
  children?: boolean | undefined
  /** Sessions written at or after this time, in milliseconds since the epoch. Defaults to all. */
  since?: number | undefined
  /** Sessions written before this time, in milliseconds since the epoch. Defaults to all. */
  before?: number | undefined
  /** Maximum number of sessions. Unlimited by default. */
  limit?: number | undefined
  /** The last session of the previous page. The list continues after it. A page with fewer than `limit` sessions is the last. */
  after?: ListPosition | undefined
}

export interface Listing {
  prefix: string | null
  tags: readonly (readonly [name: string, value: string])[]
  states: readonly AgentState[] | null
  agent: string | null
  parent: string | null
  children: boolean
  since: number | null
  before: number | null
  limit: number
  after: ListPosition | null
}

type OptionName = keyof ListOptions

const isTime = (value: unknown): boolean => Number.isSafeInteger(value)
const timeRule = [isTime, 'must be a time in whole milliseconds since the epoch'] as const

const rules: Readonly<Record<OptionName, readonly [is: (value: never) => boolean, phrase: string]>> = {
  prefix: [
    (value: string) => isSessionId(value) && !value.endsWith(':'),
    "must be the part of an id before the colon, such as 'ann'",
  ],
  tags: [
    (value: SessionTags) => findTagsFault(value) === null && hasTags(value),
    'must be one or more tags, such as { user: "ann" }',
  ],
  state: [
    (value: AgentState | AgentState[]) => [value].flat().every((one) => agentStates.includes(one)),
    `must be a state, or a list of states: ${agentStates.join(', ')}`,
  ],
  agent: [
    (value: unknown) => typeof value === 'string' && !value.includes('\0'),
    "must be an agent's name, without NUL",
  ],
  parent: [isSessionId, "must be a session's id"],
  children: [(value: unknown) => typeof value === 'boolean', 'must be true or false'],
  since: timeRule,
  before: timeRule,
  limit: [(value: number) => isTime(value) && value >= 1, 'must be a positive integer'],
  after: [
    (value: ListPosition | null) => isTime(value?.updatedAt) && isSessionId(value?.id),
    'must be the last session of the previous page: { updatedAt, id }',
  ],
}

const optionNames = Object.keys(rules) as OptionName[]

/** The options that select one owner's sessions. If undefined, they must not select all sessions. */
const ownerNames: readonly string[] = ['prefix', 'tags', 'parent'] satisfies OptionName[]

/** @throws {UsageError} `invalid_option`, naming the key */
export function checkListOptions(options: ListOptions = {}): Listing {
  if (!isObject(options))
    throw optionError(`list takes an options object: ${optionNames.join(', ')}.`, 'list')
  expectKnownOptions('list', options, optionNames)
  // Reads each option once, so that the validated value is the value used.
  const values: ListOptions = Object.fromEntries(
    optionNames.flatMap((name) => (name in options ? [[name, options[name]]] : [])),
  )
  for (const name of optionNames) {
    const value = values[name]
    const [is, phrase] = rules[name]
    const isAsked = value !== undefined || (name in values && ownerNames.includes(name))
    if (isAsked && !is(value as never)) throw listOptionError(name, phrase)
  }
  const { prefix = null, tags = {}, state, agent = null, parent = null, since = null, before = null } = values
  const { children = parent !== null, limit = Number.MAX_SAFE_INTEGER, after = null } = values
  if (parent !== null && !children)
    throw listOptionError('children', 'must not be false with parent, which lists only sub-agent sessions')
  if (since !== null && before !== null && since >= before)
    throw listOptionError('before', 'must be later than since')
  const states = state === undefined ? null : [state].flat()
  return { prefix, tags: Object.entries(tags), states, agent, parent, children, since, before, limit, after }
}

/** The ids that start with a prefix and a colon, in byte order. The end is exclusive. */
export const toIdRange = (prefix: string): [from: string, to: string] => [`${prefix}:`, `${prefix};`]

/** Compares sessions in list order. The session with the latest record comes first. */
export const compareListed = (a: ListPosition, b: ListPosition): number =>
  b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1)

interface Listable extends ListPosition {
  head: number
  summary: { state: AgentState | null; agent?: string; tags?: SessionTags; parent?: string } | null
}

/** A session without records is not listed. */
export function isListed(listing: Listing, { id, updatedAt, head, summary }: Listable): boolean {
  const { prefix, tags, states, agent, parent, children, since, before, after } = listing
  if (head === 0) return false
  if (states !== null && !(summary?.state && states.includes(summary.state))) return false
  if (agent !== null && summary?.agent !== agent) return false
  if (parent === null ? !children && summary?.parent !== undefined : summary?.parent !== parent) return false
  if (prefix !== null && !id.startsWith(`${prefix}:`)) return false
  if (!tags.every(([name, value]) => hasTag(summary?.tags, name, value))) return false
  if ((since !== null && updatedAt < since) || (before !== null && updatedAt >= before)) return false
  return after === null || updatedAt < after.updatedAt || (updatedAt === after.updatedAt && id > after.id)
}

const hasTag = (tags: SessionTags | undefined, name: string, value: string): boolean =>
  tags !== undefined && Object.hasOwn(tags, name) && tags[name] === value

function listOptionError(key: string, what: string): UsageError {
  return optionError(`list({ ${key} }): it ${what}.`, key)
}

export type ResolvedRange = Required<ReadRange>

export function resolveRange({
  from = 1,
  to = Number.MAX_SAFE_INTEGER,
}: ReadRange = {}): ResolvedRange | null {
  const last = Math.floor(Math.min(to, Number.MAX_SAFE_INTEGER))
  if (from === 'snapshot') return last >= 1 ? { from, to: last } : null
  const first = Math.ceil(Math.max(from, 1))
  return first <= last ? { from: first, to: last } : null
}
