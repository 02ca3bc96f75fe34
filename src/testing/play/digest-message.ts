import { sha256 } from '../../../guards/lib/sha256.js'
import type { Message } from '../../../machines/agent/messages.js'
import { toCanonicalJson } from './record-agent.js'

const known = new WeakMap<Message, string>()

/** A fingerprint of what a message says, whatever its id and time. */
export function digestMessage(message: Message): string {
  const before = known.get(message)
  if (before !== undefined) return before
  const { id: _id, createdAt: _createdAt, ...said } = message
  const made = sha256(toCanonicalJson(said)).slice(0, 16)
  known.set(message, made)
  return made
}

/** Masks ids and times, which differ in every run. */
export function maskVolatile(text: string): string {
  return text
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '(id)')
    .replace(/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?\b/g, '(time)')
    .replace(/\b1\d{12}\b/g, '(time)')
}
