import type { Message } from '../../../machines/agent/messages.js'

/** The messages of a transcript that a fit is built around. */
export interface Landmarks {
  /** How many system messages it begins with; they are never left out. */
  lead: number
  /** The first user message; -1: there is none. */
  first: number
  /** The newest user message that opened a turn; -1: there is none. Steering and the loop's own words open none. */
  opening: number
  /** The opening, and what the user has steered with since. */
  said: readonly number[]
  /** Where the newest unit begins: a message, or a message with calls and all their results. */
  latest: number
}

export function findLandmarks(messages: readonly Message[]): Landmarks {
  const firstOther = messages.findIndex(({ role }) => role !== 'system')
  const opensTurn = messages.findLastIndex((message) => isFromUser(message) && !isSteering(message))
  const opening = opensTurn >= 0 ? opensTurn : messages.findLastIndex(({ role }) => role === 'user')
  const steering = messages.flatMap((message, i) => (i > opening && isFromUser(message) ? [i] : []))
  return {
    lead: firstOther === -1 ? messages.length : firstOther,
    first: messages.findIndex(({ role }) => role === 'user'),
    opening,
    said: opening === -1 ? steering : [opening, ...steering],
    latest: messages.findLastIndex(({ role }) => role !== 'tool'),
  }
}

function isFromUser({ role, internal }: Message): boolean {
  return role === 'user' && internal !== true
}

function isSteering({ data }: Message): boolean {
  return data?.['reason'] === 'steering'
}
