import type { ContentPart } from '../../../machines/agent/messages.js'
import { inputError } from '../base/errors.js'
import { copyAsJson, toMessage } from './user-input.js'

/**
 * A change that a fork makes to the copied session. The change edits a user message (by its id), the arguments of an
 * unfinished call, the result of a finished call, or the agent's instructions.
 * @example
 * const edits: ForkEdit[] = [
 *   { message: 'm1', content: 'And in June?' },
 *   { call: 'call_1', arguments: { month: 6 } },
 *   { call: 'call_1', result: { total: 12 } }, // an Error becomes an error result
 *   { instructions: 'You are brief.' }, // only in this fork, instead of the instructions of the agent or a step
 * ]
 */
export type ForkEdit =
  | { message: string; content: string | ContentPart[] }
  | { call: string; arguments: unknown }
  | { call: string; result: unknown }
  | { instructions: string }

/** Options for forking a session. */
export interface ForkOptions {
  /** A change to the forked state. Defaults to none. */
  edit?: ForkEdit
  /**
   * Requires approval for all calls in the fork that are not read-only, so that no side effect repeats without
   * confirmation. Defaults to false.
   */
  askFirst?: boolean
  /** The app's context object, passed to shields and to `needsApproval`. */
  context?: unknown
}

/** An edit as stored in the log, after the shields have checked it. */
export type LoggedEdit =
  | { message: string; content: string | ContentPart[] }
  | { call: string; arguments: string }
  | { call: string; result: string }
  | { instructions: string }

/**
 * @throws {UsageError} `invalid_input` if the value is not an edit
 */
export function readEdit(edit: unknown): ForkEdit {
  const { message, content, call, ...rest } = (edit ?? {}) as Record<string, unknown>
  const { instructions } = rest
  if (typeof instructions === 'string' && Object.keys(edit as object).length === 1) return { instructions }
  if (typeof message === 'string' && call === undefined && Object.keys(rest).length === 0) {
    return { message, content: copyAsJson(toMessage({ content }, 'edit').content, 'edit.content') }
  }
  const keys = Object.keys(rest)
  const isOfCall = typeof call === 'string' && message === undefined && content === undefined
  if (isOfCall && keys.length === 1 && rest['arguments'] !== undefined)
    return { call, arguments: rest['arguments'] }
  if (isOfCall && keys.length === 1 && rest['result'] !== undefined) return { call, result: rest['result'] }
  throw inputError(
    'edit must be { message, content }, { call, arguments }, { call, result } or { instructions }. message and call are ids.',
    'edit',
  )
}
