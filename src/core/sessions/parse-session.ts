import { type Message, parseMessageNumber } from '../../../machines/agent/messages.js'
import { restoreGuardrails } from '../../../guards/state.js'
import type { ForkTerms } from '../../../machines/agent/context.js'
import type { TurnEnd } from '../../../machines/agent/run-result.js'
import type { Refusal } from '../../../machines/agent/refusals.js'
import { addUsage, noUsage, type Usage } from '../../../machines/agent/usage.js'
import { checkInput } from '../config/check-input.js'
import type { KindValue } from '../config/kind.js'
import { ConfigError, UsageError } from '../base/errors.js'
import { Session, sessionVersion } from './session.js'
import { storedSession } from './session-schema.js'

export function parseSession(stored: unknown): Session {
  const copy = copyStored(stored)
  refuseNewerVersion(copy)
  const { id, name, messages, usage, metadata } = checkStoredSession(copy)
  const problem = findHistoryProblem(messages)
  if (problem !== null) throw new UsageError('invalid_session', `Invalid session: ${problem}`)
  // Damaged guard state is reset, because guards are reset at the next user message anyway.
  const guardrails = restoreGuardrails(metadata?.guardrails)
  if ('error' in guardrails) throw new UsageError('newer_session', guardrails.error, 'metadata.guardrails')

  const session = new Session(id, name)
  session.messages = messages
  session.usage = usage ? addUsage(noUsage, usage as Usage) : noUsage
  session.metadata = {
    guardrails: guardrails.state,
    warnedOfBudget: metadata?.warnedOfBudget ?? false,
    fit: metadata?.fit ?? null,
    ...(metadata?.loaded && { loaded: metadata.loaded }),
    ...(metadata?.terms && { terms: metadata.terms as ForkTerms }),
    ...(metadata?.turnEnds && { turnEnds: metadata.turnEnds as TurnEnd[] }),
    ...(metadata?.refusals && { refusals: metadata.refusals as Refusal[] }),
  }
  return session
}

/** Later changes by the caller must have no effect. */
function copyStored(stored: unknown): unknown {
  if (typeof stored === 'string') {
    throw new UsageError(
      'invalid_session',
      'A session is restored from the return value of session.toJSON(). This is a string. Parse it with JSON.parse.',
    )
  }
  try {
    const text: string | undefined = JSON.stringify(stored)
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch (error) {
    throw new UsageError('invalid_session', 'The stored session cannot be written as JSON.', undefined, {
      cause: error,
    })
  }
}

/** Must run first, because this version cannot validate a newer format. */
function refuseNewerVersion(stored: unknown): void {
  const version = typeof stored === 'object' && stored !== null && 'version' in stored ? stored.version : 0
  if (typeof version !== 'number' || version <= sessionVersion) return
  const message =
    `The stored session has version ${version}; this version of Statewright supports versions up to ${sessionVersion}. ` +
    'Load it with the newer version that stored it.'
  throw new UsageError('newer_session', message, 'version')
}

function checkStoredSession(stored: unknown): KindValue<typeof storedSession> & { messages: Message[] } {
  try {
    // Messages are kept unchanged, because they contain provider-specific keys that must be sent back.
    return checkInput(storedSession, stored, 'session') as ReturnType<typeof checkStoredSession>
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new UsageError('invalid_session', error.message, error.subject, { cause: error })
  }
}

/**
 * Each call must have exactly one result directly after it, in call order. Message numbers must increase (m1, m2, …)
 * and may have gaps in a session with branches.
 */
function findHistoryProblem(messages: readonly Message[]): string | null {
  let expected: string[] = []
  let last = 0
  for (const [i, message] of messages.entries()) {
    const number = parseMessageNumber(message.id) ?? 0
    if (number <= last)
      return `messages[${i}].id must be 'm${last + 1}' or have a higher number (got '${message.id}').`
    last = number
    if (message.role === 'tool') {
      if (message.tool_call_id === expected[0]) expected.shift()
      else
        return `messages[${i}] is a result of call '${message.tool_call_id}', which is not the pending call here.`
    } else {
      if (expected.length > 0) return `messages[${i}] comes before the result of call '${expected[0]}'.`
      expected = message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : []
    }
  }
  return expected.length > 0
    ? `call '${expected[0]}' has no result. Each call needs one right after it.`
    : null
}
