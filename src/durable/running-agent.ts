import type { AgentContext, AgentInput } from '../../machines/agent/context.js'
import { isRestState } from '../../machines/agent/run-result.js'
import { toRunResult } from '../../machines/agent/to-result.js'
import { isRecord } from '../../guards/lib/stored.js'
import { sha256 } from '../../guards/lib/sha256.js'
import type { AnyEventObject } from 'xstate'
import type { AgentInternals } from '../core/agent/agent-internals.js'
import { type Clock, RunClock, wait } from '../core/base/clock.js'
import { StatewrightError } from '../core/base/errors.js'
import { findDueTime } from '../../machines/agent/expiry.js'
import { isDue, wakeRun } from '../core/drive/wake-sleepers.js'
import { releaseRun } from '../core/live/release-run.js'
import type { Binding } from '../core/live/runtime.js'
import type { Run } from '../core/run/run.js'
import { sendToStoredSession } from '../core/run/send-to-stored-session.js'
import { notifyOwner } from '../core/sessions/inbox/inbox-owners.js'
import type { SessionLog } from '../core/sessions/log/session-log.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { isSessionId } from '../core/sessions/store/session-id.js'
import { runChild } from '../core/sub-agents/open-child.js'
import { type ActorReport, type RunningActor, warn } from './machine-hold.js'

interface AgentParts {
  agent: AgentInternals
  store: SessionStore
  clock: Clock
  child: { session: string; parent: string; src: string }
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
export class RunningAgent implements RunningActor {
  isResting = false
  wakeAt: number | undefined
  wake: () => void = () => undefined
  readonly #parts: AgentParts
  #state: 'working' | 'stopped' | 'left' | 'ended' = 'working'
  #run: Run | undefined
  #log: SessionLog | undefined
  /** Events that arrived before the session of the agent was open. */
  readonly #early: AnyEventObject[] = []
  #stop: () => void = () => undefined
  readonly #stopped = new Promise<'stopped'>((resolve) => {
    this.#stop = () => resolve('stopped')
  })
  readonly #done: Promise<void>

  constructor(parts: AgentParts) {
    this.#parts = parts
    this.#done = this.#work()
  }

  get keys(): readonly string[] {
    return this.#log?.inbox.keys ?? this.#parts.keys
  }

  /** Events from the chart for the agent (`sendTo`), in the format of its inbox. */
  send(event: AnyEventObject): void {
    if (!this.#run) return void this.#early.push(event)
    const { child } = this.#parts
    this.#deliver(event).catch((error: unknown) => warn(error, { session: child.session }))
  }

  async #deliver(event: AnyEventObject): Promise<void> {
    const { store, child } = this.#parts
    const delivery = await store.inbox?.put(child.session, JSON.stringify(event))
    if (delivery) notifyOwner(store, child.session, delivery.message)
    this.wake()
  }

  async stop(isLeft: boolean): Promise<void> {
    if (this.#state === 'ended') return
    this.#state = isLeft ? 'left' : 'stopped'
    this.#stop()
    this.wake()
    const { store, clock, child } = this.#parts
    if (isLeft) await cancelChild(store, clock, child.session)
    else if (this.#run) await releaseRun(this.#run)
    await this.#done
  }

  async #work(): Promise<void> {
    const { agent, store, clock, child, report } = this.#parts
    const session = {
      name: child.src,
      sessionId: child.session,
      parentSessionId: child.parent,
      isUnwanted: () => this.#state !== 'working',
    }
    /* oxlint-disable no-await-in-loop -- one poll at a time */
    while (this.#state === 'working') {
      try {
        const opened = await runChild(agent.host, store, session, () => this.#openInput())
        this.#log = opened.log
        if ('ended' in opened) return this.#end(opened.ended)
        this.#run = opened.run
        for (const event of this.#early.splice(0)) this.send(event)
        // The state may have been exited while the session was being opened.
        if (this.#is('left')) return await cancelChild(store, clock, child.session)
        if (this.#is('stopped')) return await releaseRun(opened.run)
        const context = await this.#follow(opened.run, new RunClock(clock, opened.log.resumesAt))
        if (context === 'stopped') return
        if (opened.log.hasFailed) await Promise.race([wait(clock, 1000), this.#stopped])
        else if (isRestState(context.state)) await this.#rest(context)
        else return this.#end(context)
      } catch (error) {
        if (!(error instanceof StatewrightError && error.retryable)) return report.failed(error)
        await Promise.race([wait(clock, 1000), this.#stopped])
      }
    }
    /* oxlint-enable no-await-in-loop */
  }

  #end(context: AgentContext): void {
    this.#state = 'ended'
    // The output as plain JSON.
    this.#parts.report.done(JSON.parse(JSON.stringify(toRunResult(context))))
  }

  #is(state: 'left' | 'stopped'): boolean {
    return this.#state === state
  }

  /** Follows a run until it settles or ends. A run whose sleep is over continues. `time` is the run's clock. */
  async #follow(run: Run, time: RunClock): Promise<AgentContext | 'stopped'> {
    const getContext = (): AgentContext => (run.snapshot() as { context: AgentContext }).context
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one rest at a time
      const outcome = await Promise.race([run.result, this.#stopped])
      if (outcome === 'stopped') return outcome
      const context = getContext()
      if (!isDue(context, time.now())) return context
      wakeRun(run)
    }
  }

  /** Waits for a message or a stop. The machine's session may be released in the meantime. */
  async #rest(context: AgentContext): Promise<void> {
    this.wakeAt = findDueTime(context) ?? undefined
    this.isResting = true
    const woken = new Promise<void>((resolve) => (this.wake = resolve))
    this.#parts.report.changed()
    await woken
    this.isResting = false
    this.wakeAt = undefined
  }

  #openInput(): { input: AgentInput; binding: Binding } {
    const { agent, input, clock } = this.#parts
    const isStored = isRecord(input) && typeof input['runId'] === 'string' && isRecord(input['config'])
    if (!isStored) return agent.openInput(input)
    const bound = agent.host.findBinding(input)
    return { input: { ...(input as unknown as AgentInput), now: clock.now() }, binding: bound ?? {} }
  }
}
