import type { AnyEventObject } from 'xstate'
import type { AgentContext, AgentInput } from '../../machines/agent/context.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { toRunResult } from '../../machines/agent/to-result.js'
import { isRecord } from '../../guards/lib/stored.js'
import { sha256 } from '../../guards/lib/sha256.js'
import type { AgentInternals } from '../core/agent/agent-internals.js'
import { type Clock, RunClock, wait } from '../core/base/clock.js'
import { StatewrightError } from '../core/base/errors.js'
import { findDueTime } from '../../machines/agent/due-times.js'
import { isDue, wakeRun } from '../core/drive/wake-sleepers.js'
import { runControls } from '../core/live/run-controls.js'
import type { Binding } from '../core/live/runtime.js'
import type { Run } from '../core/run/run.js'
import { sendToStoredSession } from '../core/run/send-to-stored-session.js'
import { reportError } from '../core/sessions/alarm-waker.js'
import { putMessage } from '../core/sessions/inbox/inbox-owners.js'
import type { SessionLog } from '../core/sessions/log/session-log.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { type ChildSession, runChild } from '../core/sub-agents/open-child.js'
import type { ActorReport, RunningActor } from './machine-hold.js'

interface AgentParts {
  agent: AgentInternals
  store: SessionStore
  clock: Clock
  child: Omit<ChildSession, 'isUnwanted' | 'now'>
  /** The input as the chart returned it, or as plain JSON after a restart. */
  input: unknown
  keys: readonly string[]
  report: ActorReport
}

/** The session of a running agent. A key is unique in the machine's session. */
export function getChildId(session: string, key: string): string {
  const id = `${session}:${key}`
  return /^[\w.@-]+$/.test(key) && isSessionId(id) ? id : `child:${sha256(`${session}:${key}`).slice(0, 32)}`
}

/** Cancels the run of an agent whose state was exited. An ended run is unchanged. */
export async function cancelChild(store: SessionStore, clock: Clock, session: string): Promise<void> {
  const message = { type: 'cancel', why: 'The machine has left the state that runs this agent.' } as const
  try {
    await sendToStoredSession({ store, clock }, session, message)
  } catch (error) {
    const isOver =
      error instanceof StatewrightError &&
      ['run_ended', 'unknown_session', 'not_waiting'].includes(error.code)
    if (!isOver) throw error
  }
}

/** A running agent with its own session, from which another process can continue the agent. */
export function startAgentActor(parts: AgentParts): RunningActor {
  const { agent, store, clock, child, input, report } = parts
  let state: 'working' | 'stopped' | 'left' | 'ended' = 'working'
  let run: Run | undefined
  let log: SessionLog | undefined
  /** Events that arrived before the session of the agent was open. */
  const early: AnyEventObject[] = []
  let markStopped = (): void => undefined
  const stopped = new Promise<'stopped'>((resolve) => {
    markStopped = () => resolve('stopped')
  })

  const actor = {
    isResting: false,
    wakeAt: undefined as number | undefined,
    wake: (): void => undefined,
    get keys() {
      return log?.inbox.keys ?? parts.keys
    },

    /** Events from the chart for the agent (`sendTo`), in the format of its inbox. */
    send(event: AnyEventObject): void {
      if (!run) return void early.push(event)
      deliver(event).catch((error: unknown) => reportError(undefined, error, { session: child.sessionId }))
    },

    async stop(isLeft: boolean): Promise<void> {
      if (state === 'ended') return
      state = isLeft ? 'left' : 'stopped'
      markStopped()
      actor.wake()
      if (isLeft) await cancelChild(store, clock, child.sessionId)
      else if (run) await runControls.release(run)
      await done
    },
  }

  const deliver = async (event: AnyEventObject): Promise<void> => {
    await putMessage(store, child.sessionId, JSON.stringify(event))
    actor.wake()
  }

  const work = async (): Promise<void> => {
    const session = { ...child, isUnwanted: () => state !== 'working' }
    while (is('working')) {
      try {
        const opened = await runChild(agent.host, store, session, openInput)
        log = opened.log
        if ('ended' in opened) return end(opened.ended)
        run = opened.run
        for (const event of early.splice(0)) actor.send(event)
        // The state may have been exited while the session was being opened.
        if (is('left')) return await cancelChild(store, clock, child.sessionId)
        if (is('stopped')) return await runControls.release(run)
        const context = await follow(run, new RunClock(clock, log.resumesAt))
        if (context === 'stopped') return
        if (log.hasFailed) await Promise.race([wait(clock, 1000), stopped])
        else if (isRestState(context.state)) await rest(context)
        else return end(context)
      } catch (error) {
        if (!(error instanceof StatewrightError && error.retryable)) return report.failed(error)
        await Promise.race([wait(clock, 1000), stopped])
      }
    }
  }

  const end = (context: AgentContext): void => {
    state = 'ended'
    // The output as plain JSON.
    report.done(JSON.parse(JSON.stringify(toRunResult(context))))
  }

  // The state may change during an await.
  const is = (one: typeof state): boolean => state === one

  /** Follows a run until it settles or ends. A run whose sleep is over continues. `time` is the run's clock. */
  const follow = async (run: Run, time: RunClock): Promise<AgentContext | 'stopped'> => {
    for (;;) {
      const outcome = await Promise.race([run.result, stopped])
      if (outcome === 'stopped') return outcome
      const { context } = run.snapshot() as { context: AgentContext }
      if (!isDue(context, time.now())) return context
      wakeRun(run)
    }
  }

  /** Waits for a message or a stop. The machine's session may be released in the meantime. */
  const rest = async (context: AgentContext): Promise<void> => {
    actor.wakeAt = findDueTime(context) ?? undefined
    actor.isResting = true
    const woken = new Promise<void>((resolve) => (actor.wake = resolve))
    report.changed()
    await woken
    actor.isResting = false
    actor.wakeAt = undefined
  }

  const openInput = (): { input: AgentInput; binding: Binding } => {
    const isStored = isRecord(input) && typeof input['runId'] === 'string' && isRecord(input['config'])
    if (!isStored) return agent.openInput(input)
    const bound = agent.host.bindings.get(input)
    return { input: { ...(input as unknown as AgentInput), now: clock.now() }, binding: bound ?? {} }
  }

  const done = work()
  return actor
}
