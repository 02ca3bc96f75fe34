import { addRequester, type Principal } from '../../../machines/agent/principal.js'
import { inputError } from '../base/errors.js'
import { expectArgument, isObject, optionsRule } from '../base/values.js'

/** The person or program that starts a run, or sends a message or an answer. A string is short for `{ id }`. */
export interface SentBy {
  by?: string | Principal | undefined
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= 200

/** Null if the value does not identify a person or a program. */
export function parsePrincipal(by: unknown): Principal | null {
  const { id, roles = [], ...others } = isObject(by) ? by : { id: by }
  if (!isName(id) || !Array.isArray(roles) || !roles.every(isName) || Object.keys(others).length > 0)
    return null
  return { id, ...(roles.length > 0 && { roles: [...roles] }) }
}

/** @throws {UsageError} `invalid_input` */
export function readSender(sender: SentBy, where: string): { by?: Principal } {
  expectArgument(`The options of ${where}`, sender, optionsRule)
  const { by } = sender
  if (by === undefined) return {}
  const principal = parsePrincipal(by)
  if (principal !== null) return { by: principal }
  const message = `${where}: by must be a name, or { id, roles? }. Each is a string of 1 to 200 characters.`
  throw inputError(message, 'by')
}

/** @throws {UsageError} `invalid_input` */
export const toRequesters = (sender: SentBy, where: string): { requesters?: readonly Principal[] } =>
  addRequester([], readSender(sender, where).by)
