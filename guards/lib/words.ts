import { cutLine } from './cut.js'
import { evidence } from './evidence.js'
import type { CallFact } from '../types.js'

/** The calls that a verdict is about, for people and the model. Short, because it is part of a guard's state. */
export interface Named {
  /** The tools: `read_file`, or `read_file, grep and 3 more`. */
  tools: string
  /** The calls with their arguments, secrets scrubbed. */
  calls: string
  /** How many calls. */
  number: number
}

const shownCalls = 3

export function named(calls: readonly CallFact[]): Named {
  return {
    tools: toolsOf(calls),
    calls: cutLine(
      evidence(
        calls
          .slice(0, shownCalls)
          .map((call) => `${cutLine(call.name, 64)}(${call.shown})`)
          .join('; '),
      ),
      240,
    ),
    number: calls.length,
  }
}

export function toolsOf(calls: readonly CallFact[]): string {
  const names = [...new Set(calls.map((call) => call.name))]
  const first = names
    .slice(0, shownCalls)
    .map((name) => cutLine(name, 64))
    .join(', ')
  const more = names.length - shownCalls
  return cutLine(more > 0 ? `${first} and ${more} more` : first, 96)
}

export function times(count: number): string {
  if (count === 1) return 'once'
  return count === 2 ? 'twice' : `${count} times`
}

/** What the model reads before the run pauses. */
export const lastWordsAsked =
  'The run stops here: say what you have done and found so far, and what is missing.'
