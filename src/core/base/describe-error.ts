import { StatewrightError } from './errors.js'
import { readProperty, toJson } from './to-json.js'

/** An error, the errors that caused it, and so on: at most `most`, cycles broken. */
export function listCauses(error: unknown, most = 5): unknown[] {
  const chain: unknown[] = []
  for (let next = error; chain.length < most && !chain.includes(next); next = readProperty(next, 'cause')) {
    if (next === undefined && chain.length > 0) break
    chain.push(next)
  }
  return chain
}

/** A sentence about anything that can be thrown, causes included. Never throws. */
export function describeError(error: unknown): string {
  const parts: string[] = []
  for (const cause of listCauses(error)) {
    const text = describeCause(cause)
    if (!parts.some((part) => part.includes(text))) parts.push(text)
    // An error of ours says in its own words what it was caused by, as far as that helps.
    if (isStatewrightError(cause)) break
  }
  return parts.join(': ').replaceAll('.: ', ': ')
}

function describeCause(error: unknown): string {
  if (typeof error === 'string') return error.trim() || 'an empty text was thrown'
  const message = readProperty(error, 'message')
  if (typeof message === 'string' && message.trim() !== '') return message
  // Without words, an error's code (`ECONNREFUSED` of an AggregateError) or name is all that there is.
  for (const key of ['code', 'name']) {
    const word = readProperty(error, key)
    if (typeof word === 'string' && word !== '') return word
  }
  const json = error === undefined ? 'undefined' : JSON.stringify(toJson(error))
  return `${json} was thrown`
}

/** Never throws, whatever a value does when it is asked what it is. */
function isStatewrightError(error: unknown): boolean {
  try {
    return error instanceof StatewrightError
  } catch {
    return false
  }
}
