import type { Message } from './messages.js'

/** A kind of content besides text. */
export type MediaKind = 'image' | 'audio' | 'file'

/** Content that a provider has refused. Later requests in the session omit it. */
export type Refusal =
  /** Whole messages. `question` is the user message that was unanswered at the time. */
  | { what: 'messages'; ids: string[]; question: string | null }
  /** The provider refused media for this model: all parts of these kinds, or only the parts with these descriptions. */
  | { what: 'media'; model: string; kinds: MediaKind[] }
  | { what: 'media'; model: string; parts: string[] }
  /** Stored reasoning and signatures for this model, up to this message number or all of them (null). */
  | { what: 'reasoning'; model: string; upTo: number | null }

/** Counts the attempts at the current request. A request without the refused content is a different request. */
export function countAttempts({ attempt, resends = 0 }: { attempt: number; resends?: number }): number {
  return attempt - resends
}

export function readRefusal(event: { type: string; error?: unknown }): Refusal | null {
  if (event.type !== 'xstate.error.actor.model' && event.type !== 'xstate.error.actor.conclusion') return null
  const error = event.error as { refusal?: Refusal } | null | undefined
  return error?.refusal ?? null
}

export function isNewRefusal(known: readonly Refusal[], refusal: Refusal): boolean {
  const text = JSON.stringify(refusal)
  return known.every((one) => JSON.stringify(one) !== text)
}

/** Whether the provider refuses the user's question itself, so that nothing is left to answer. */
export function isRefusedQuestion(refusal: Refusal): boolean {
  return refusal.what === 'messages' && refusal.question !== null && refusal.ids.includes(refusal.question)
}

/** Adds a refusal. Messages that were omitted for the same question without success are sent again. */
export function addRefusal(known: readonly Refusal[], refusal: Refusal): Refusal[] {
  const isNeeded = (one: Refusal): boolean =>
    !isRefusedQuestion(refusal) ||
    one.what !== 'messages' ||
    refusal.what !== 'messages' ||
    one.question !== refusal.question
  return [...known.filter(isNeeded), refusal]
}

export function listRefusedIds(refused: readonly Refusal[]): Set<string> {
  return new Set(refused.flatMap((one) => (one.what === 'messages' ? one.ids : [])))
}

export function findOpenQuestion(messages: readonly Message[]): Message | undefined {
  return listUnanswered(messages).findLast(({ role, internal }) => role === 'user' && !internal)
}

export function listUnanswered(messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex(isAnswer) + 1)
}

function isAnswer({ role, data }: Message): boolean {
  return role === 'assistant' && data?.['partial'] !== true
}
