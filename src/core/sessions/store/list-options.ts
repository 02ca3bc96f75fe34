import { type AgentState, agentStates } from '../../../../machines/agent/run-result.js'
import { UsageError } from '../../base/errors.js'

/** Where a session stands in a list. */
interface ListPosition {
  updatedAt: number
  id: string
}

/**
 * Which sessions to list.
 *
 * @example
 * const options: ListOptions = { state: ['PAUSED', 'WAITING_FOR_INPUT'], limit: 50 }
 * const page = await memoryStore().list(options)
 * const next = await memoryStore().list({ ...options, cursor: page.at(-1) })
 */
export interface ListOptions {
  /** Those whose latest run is in this state, or in one of these. Default: any. */
  state?: AgentState | readonly AgentState[] | undefined
  /** Those of the agent with this name. Default: any. */
  agent?: string | undefined
  /** At most so many. Default: all. */
  limit?: number | undefined
  /** The last session of the page before: the list goes on after it. Fewer than `limit` are the last page. */
  cursor?: ListPosition | undefined
}

/** The same, checked, with every key; null is any. */
export interface Listing {
  states: readonly AgentState[] | null
  agent: string | null
  limit: number
  cursor: ListPosition | null
}

const optionNames: readonly string[] = ['state', 'agent', 'limit', 'cursor'] satisfies (keyof ListOptions)[]

/** @throws {UsageError} `invalid_option`, naming the key */
export function checkListOptions(options: ListOptions = {}): Listing {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new UsageError('invalid_option', `list takes options: ${optionNames.join(', ')}.`, 'list')
  for (const key of Object.keys(options))
    if (!optionNames.includes(key))
      throw listOptionError(key, `is no option. They are ${optionNames.join(', ')}`)
  const { state, agent, limit, cursor } = options
  const states: readonly AgentState[] | null =
    state === undefined
      ? null
      : Array.isArray(state)
        ? (state as readonly AgentState[])
        : [state as AgentState]
  if (states !== null && !states.every((one) => agentStates.includes(one)))
    throw listOptionError('state', `is a state, or a list of them: ${agentStates.join(', ')}`)
  if (agent !== undefined && typeof agent !== 'string')
    throw listOptionError('agent', 'is the name of an agent')
  if (limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 1))
    throw listOptionError('limit', 'is a whole number from 1')
  if (cursor !== undefined && !(Number.isFinite(cursor?.updatedAt) && typeof cursor?.id === 'string'))
    throw listOptionError('cursor', 'is the last session of the page before: { updatedAt, id }')
  return { states, agent: agent ?? null, limit: limit ?? Number.MAX_SAFE_INTEGER, cursor: cursor ?? null }
}

interface Listable extends ListPosition {
  summary: { state: AgentState | null; agent?: string } | null
}

/** Whether a session stands in the list. */
export function isListed({ states, agent, cursor }: Listing, { id, updatedAt, summary }: Listable): boolean {
  if (states !== null && !(summary?.state && states.includes(summary.state))) return false
  if (agent !== null && summary?.agent !== agent) return false
  return cursor === null || updatedAt < cursor.updatedAt || (updatedAt === cursor.updatedAt && id > cursor.id)
}

function listOptionError(key: string, what: string): UsageError {
  return new UsageError('invalid_option', `list({ ${key} }): it ${what}.`, key)
}
