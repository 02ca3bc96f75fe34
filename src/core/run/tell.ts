import { isWorkState } from '../../../machines/agent/outcome.js'
import { transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { PublicEvent } from '../../../machines/agent/events.js'
import { UsageError } from '../base/errors.js'
import { tellHolder } from '../sessions/inbox/holders.js'
import {
  checkedMessage,
  eventOf,
  isAnswer,
  readMessage,
  type Receipt,
  type SessionMessage,
} from '../sessions/inbox/message.js'
import { plainCopy } from '../sessions/input.js'
import { type FoldedRun, standingAfter } from '../sessions/standing.js'
import type { SessionInbox } from '../sessions/store/inbox.js'
import { unknownSession } from '../sessions/store/refusals.js'
import { checkedSessionId } from '../sessions/store/session-id.js'
import { type ToolSet, toolSet } from '../tools/tool-set.js'
import { awaitedCall } from './awaited-call.js'
import { clientOutput } from './client-output.js'
import { cancelStored, type StoreParts } from './end-stored.js'
import { editedArguments } from './edited-arguments.js'
import { notWaiting, refuseEnded, refuseUnfit } from './fits.js'

export interface TellParts extends StoreParts {
  /** By which edited arguments are looked at; without them, whoever carries the call out does. */
  tools?: ToolSet
}

/**
 * Leaves a message for a session, for whoever holds it, or resumes it. A `cancel` of a session that nobody holds is
 * carried out here: the store is all that it takes.
 */
export async function tell(parts: TellParts, sessionId: string, given: SessionMessage): Promise<Receipt> {
  const { store } = parts
  const message = checkedMessage(given)
  const id = checkedSessionId(sessionId)
  const { inbox } = store
  if (!inbox) {
    throw new UsageError(
      'no_inbox',
      'This store has no inbox: sessions in it can be told nothing from elsewhere. memoryStore(), fileStore() and ' +
        'postgresStore() have one; a store of your own takes messages with `inbox`.',
      'store',
    )
  }
  const listed = await store.get(id)
  if (listed === null) throw unknownSession(id)
  const isHeld = listed.holder !== null
  const isForAnyWork = message.type === 'cancel' || message.type === 'pause' || message.type === 'steer'
  const event =
    isHeld && isForAnyWork ? eventOf(message) : await fitting(parts, inbox, { id, message, isHeld })
  const { message: number, holder } = await inbox.put(id, JSON.stringify(plainCopy(event, message.type)))
  if (holder !== null) {
    tellHolder(store, id, number)
    return { message: number, status: 'sent' }
  }
  if (event.type === 'CANCEL') return { message: number, status: await cancelStored(parts, id, number) }
  try {
    // Whoever held it may have let it go since it was looked at.
    if (isHeld) await fitting(parts, inbox, { id, message, isHeld: false, besides: number })
  } catch (error) {
    await inbox.remove(id, [number])
    throw error
  }
  return { message: number, status: 'waiting' }
}

interface Telling {
  id: string
  message: SessionMessage
  isHeld: boolean
  /** What was put there for this message. */
  besides?: number
}

/** What the machine is told, if the run takes it as it stands, and as what was told before will leave it. */
async function fitting(
  { store, tools }: TellParts,
  inbox: SessionInbox,
  { id, message, isHeld, besides }: Telling,
): Promise<PublicEvent> {
  const standing = standingAfter(await store.read(id, { from: 'snapshot' }), id)
  if (standing.run === null) throw notWaiting(id, 'has no run')
  let run = standing.run
  for (const { message: number, text } of await inbox.read(id)) {
    if (number > standing.inbox && number !== besides) run = after(run, readMessage(text), id)
  }
  refuseEnded(run, id)
  const event = isAnswer(message) ? await answerOf(message, run, tools) : eventOf(message)
  refuseUnfit(event, run, id)
  if (!isHeld && !isAnswer(message) && message.type !== 'cancel') {
    const left = stateOf(standing.run)
    if (isWorkState(left)) throw notWaiting(id, `was interrupted: it is ${left}, and nobody holds it`)
    if (message.type === 'pause' && !isWorkState(stateOf(run)))
      throw notWaiting(id, `is ${stateOf(run)}, and nothing of it is at work`)
  }
  return event
}

const stateOf = ({ context }: FoldedRun) => context.state ?? 'RUNNING'

function after(run: FoldedRun, event: PublicEvent | null, id: string): FoldedRun {
  try {
    if (event === null) return run
    refuseUnfit(event, run, id)
    return transition(agentMachine, run, event)[0]
  } catch {
    // It will come to nothing.
    return run
  }
}

/** An answer as the machine takes it: for the very call that waits. */
async function answerOf(
  message: Extract<SessionMessage, { callId: string }>,
  { context }: FoldedRun,
  tools: ToolSet | undefined,
): Promise<PublicEvent> {
  const { callId } = message
  const needs = message.type === 'toolOutput' ? 'client' : 'approval'
  const asked = awaitedCall(context, callId, needs, message)
  const { fingerprint } = asked
  if (message.type === 'reject') return { type: 'REJECT', callId, why: message.why ?? '', fingerprint }
  if (message.type === 'toolOutput') {
    const { value, isError } = message
    const maxChars = context.config.toolCalls.maxResultChars
    return clientOutput(asked, value, { maxChars, isError: isError === true || value instanceof Error })
  }
  if (message.editedInput === undefined) return { type: 'APPROVE', callId, fingerprint }
  const { text, problem } = editedArguments(message.editedInput, asked, tools ?? toolSet([]))
  const refusal = await problem
  if (refusal) throw refusal
  return { type: 'APPROVE', callId, fingerprint, arguments: text }
}
