import { truncateLine } from './cut.js'
import { toEvidence } from './evidence.js'
import type { CallFact } from '../types.js'

const shownCalls = 3

/** The calls in a verdict, formatted for people and the model. Kept short because it is part of a guard's state. */
export function nameCalls(calls: readonly CallFact[]): { tools: string; calls: string; number: number } {
  const shown = calls.slice(0, shownCalls).map((call) => `${formatName(call.name)}(${call.shown})`)
  const text = truncateLine(toEvidence(shown.join('; ')), 240)
  return { tools: formatTools(calls), calls: text, number: calls.length }
}

/** Tool names, such as `read_file` or `read_file, grep and 3 more`. */
export function formatTools(calls: readonly CallFact[]): string {
  const names = [...new Set(calls.map((call) => call.name))]
  const first = names.slice(0, shownCalls).map(formatName).join(', ')
  const more = names.length - shownCalls
  return truncateLine(more > 0 ? `${first} and ${more} more` : first, 96)
}

function formatName(name: string): string {
  return name === '' ? "''" : truncateLine(name, 64)
}

export function formatTimes(count: number): string {
  if (count === 1) return 'once'
  return count === 2 ? 'twice' : `${count} times`
}

export function formatRounds(count: number): string {
  return count === 1 ? '1 round' : `${count} rounds`
}

export const lastWordsAsked =
  'The run stops here. Summarize what you have done and found so far, and what is missing.'
