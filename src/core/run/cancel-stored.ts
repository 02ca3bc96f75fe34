import { transition } from 'xstate'
import { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../machines/agent/events.js'
import type { Clock } from '../base/clock.js'
import { childSessionId } from '../live/abandon.js'
import { readMessage, type Receipt } from '../sessions/inbox/message.js'
import { openSession } from '../sessions/open-session.js'
import type { SessionStore } from '../sessions/store/store.js'
import { StoreError } from '../sessions/store/store-error.js'

export interface StoreParts {
  store: SessionStore
  clock: Clock
}

/**
 * Ends the run of a session that nobody holds as `cancel` in its inbox says, with nothing but the store: the machine needs
 * neither model nor tools for it. Somebody who takes the session in this very moment hears the message itself.
 */
export async function cancelStored(
  parts: StoreParts,
  sessionId: string,
  message: number,
): Promise<Receipt['status']> {
  const { store, clock } = parts
  try {
    const { log, standing } = await openSession(store, sessionId, { clock, holder: 'whoever cancels it' })
    try {
      const { run, told } = standing
      const waiting = (await store.inbox?.read(sessionId)) ?? []
      const found = waiting.find((one) => one.message === message)
      const cancel = found && readMessage(found.text)
      if (run?.status !== 'active' || !cancel) return 'applied'
      const event: AgentMachineEvent = { now: clock.now(), ...cancel, inbox: message }
      const [next, actions] = transition(agentMachine, run, event)
      const news = actions.filter(({ type }) => (type as string) === 'xstate.emit').length
      log.counting(() => (told ?? 0) + news)
      log.append({ type: 'event', event })
      await log.rest(next.context)
      // Cancelling always wins: what else was told comes to nothing.
      await store.inbox?.remove(
        sessionId,
        waiting.map((one) => one.message),
      )
      await cancelChildren(parts, run.context)
      return 'applied'
    } finally {
      await log.close()
    }
  } catch (error) {
    if (error instanceof StoreError && error.code === 'session_busy') return 'sent'
    throw error
  }
}

/** Sub-agents whose calls this has closed rest in the store as well. What cannot be reached is left as it is. */
async function cancelChildren(parts: StoreParts, context: AgentContext): Promise<void> {
  const { store } = parts
  for (const { id, name, questions, started, result } of context.calls) {
    const isBegun = questions !== undefined || (started === true && context.tools[name]?.delegate === true)
    if (!isBegun || result !== undefined) continue
    const child = childSessionId(context, id)
    try {
      const text = JSON.stringify({ type: 'CANCEL', why: 'The run that it worked for has ended.' })
      const put = await store.inbox?.put(child, text)
      if (put?.holder === null) await cancelStored(parts, child, put.message)
    } catch {
      // It has not begun, or somebody else goes on with it.
    }
  }
}
