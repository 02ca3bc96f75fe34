import type { Gap } from '../../../machines/agent/fit.js'
import type { Message } from '../../../machines/agent/messages.js'

/** Whether a gap, which may come from a stored session, can be cut out of a transcript without breaking it. */
export function isValidGap(messages: readonly Message[], { head, from, keep = [] }: Gap): boolean {
  return (
    [head, from].every(Number.isInteger) &&
    head >= 0 &&
    head <= from &&
    from <= messages.length &&
    isBoundary(messages, head) &&
    isBoundary(messages, from) &&
    Array.isArray(keep) &&
    keep.every((index, i) => index > (keep[i - 1] ?? head - 1) && index < from) &&
    keep.every((index) => messages[index]?.role === 'user')
  )
}

/** Whether a transcript can be parted before a message: a tool result stays with its call and the other results. */
export function isBoundary(messages: readonly Message[], index: number): boolean {
  return messages[index]?.role !== 'tool'
}

/** Whether a gap leaves a message out. */
export function isInGap({ head, from, keep = [] }: Gap, index: number): boolean {
  return index >= head && index < from && !keep.includes(index)
}

/** The messages that a gap leaves out. */
export function listLeftOut(messages: readonly Message[], gap: Gap): Message[] {
  return messages.filter((_, index) => isInGap(gap, index))
}
