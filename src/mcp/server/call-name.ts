import { fingerprintCall } from '../../../guards/lib/fingerprint.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import type { FoldedSession } from '../../core/sessions/fold-session.js'
import { findClientId } from '../../core/sessions/find-turn.js'

/**
 * Identifies a call in the log of its session: the `clientId` of the message that begins the turn. Shields change the message,
 * so that a call that comes again is recognised by a digest of its arguments as received.
 */
export interface CallName {
  /** A digest of the idempotency key; empty without one. */
  key: string
  /** A digest of the tool and its arguments. */
  words: string
}

/** Includes the session, so that a fork does not answer calls of its origin. */
export function createCallName(
  session: string,
  { agent, key, digest }: { agent: string; key: string | undefined; digest: string },
): CallName {
  return {
    key: key === undefined ? '' : shorten(sha256(JSON.stringify([session, key]))),
    words: shorten(sha256(JSON.stringify([session, agent, digest]))),
  }
}

/** A digest of arguments as received, whatever the order of their keys. The session of a call counts separately. */
export function digestArguments(tool: string, args: Readonly<Record<string, unknown>>): string {
  return fingerprintCall(tool, JSON.stringify(args))
}

export function formatClientId({ key, words }: CallName, turn: number): string {
  return `mcp-${key}-${words}-${turn}`
}

/** The calls that began turns of a session, the latest last. */
export function listCalls({ keys, run }: FoldedSession): (CallName & { turn: number })[] {
  // The session remembers its last keys, and the transcript those of the messages that it still has.
  const messages = run?.context.messages ?? []
  const ids = [...messages.flatMap((message) => findClientId(message) ?? []), ...keys]
  return ids.flatMap((id) => {
    const [, key = '', words = '', turn] = /^mcp-([\da-f]*)-([\da-f]+)-(\d+)$/.exec(id) ?? []
    return turn === undefined ? [] : [{ key, words, turn: Number(turn) }]
  })
}

/** 128 bits. */
const shorten = (digest: string): string => digest.slice(0, 32)
