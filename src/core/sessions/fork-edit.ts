import type { ContentPart } from '../../../machines/agent/messages.js'
import { inputError, copyAsJson, toMessage } from './user-input.js'

/**
 * What a fork has otherwise than the session that it comes from: a message of the user, by its id, the arguments of a
 * call that has not ended, the result of one that has, or the instructions of the agent.
 *
 * @example
 * const edits: ForkEdit[] = [
 *   { message: 'm1', content: 'And in June?' },
 *   { call: 'call_1', arguments: { month: 6 } },
 *   { call: 'call_1', result: { total: 12 } }, // an Error becomes an error result
 *   { instructions: 'You are brief.' }, // in this fork alone, in place of the agent's and of those of a step
 * ]
 */
export type ForkEdit =
  | { message: string; content: string | ContentPart[] }
  | { call: string; arguments: unknown }
  | { call: string; result: unknown }
  | { instructions: string }

/** What a fork may be given. */
export interface ForkOptions {
  /** One thing that is otherwise there. Default: nothing. */
  edit?: ForkEdit
  /**
   * Every call in the fork that is not read-only asks for approval first, so that nothing happens a second time unasked.
   * Default: false.
   */
  askFirst?: boolean
  /** The app's own object, handed to shields and to `needsApproval`. */
  context?: unknown
}

/** An edit as the log tells of it: what it came to, after the shields. */
export type LoggedEdit =
  | { message: string; content: string | ContentPart[] }
  | { call: string; arguments: string }
  | { call: string; result: string }
  | { instructions: string }

/**
 * @throws {UsageError} `invalid_input` for what is no edit
 */
export function readEdit(given: unknown): ForkEdit {
  const { message, content, call, ...rest } = (given ?? {}) as Record<string, unknown>
  const { instructions } = rest
  if (typeof instructions === 'string' && Object.keys(given as object).length === 1) return { instructions }
  if (typeof message === 'string' && call === undefined && Object.keys(rest).length === 0) {
    return { message, content: copyAsJson(toMessage({ content }, 'edit').content, 'edit.content') }
  }
  const keys = Object.keys(rest)
  const isOfCall = typeof call === 'string' && message === undefined && content === undefined
  if (isOfCall && keys.length === 1 && rest['arguments'] !== undefined)
    return { call, arguments: rest['arguments'] }
  if (isOfCall && keys.length === 1 && rest['result'] !== undefined) return { call, result: rest['result'] }
  throw inputError(
    'An edit is one of { message, content }, { call, arguments } and { call, result }, with the id of what is there and what ' +
      'is to be there, and { instructions }.',
    'edit',
  )
}
