import { getStepId } from '../../../machines/agent/messages.js'
import type { AnyActorRef, SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { Step, StepCompleted, StepType } from '../../../machines/agent/announcements.js'
import type { AgentContext, AgentMachineEvent } from '../../../machines/agent/context.js'
import type { Defer, Emitter } from './answer-stream.js'
import type { Clock } from '../base/clock.js'
import { attachCause, toPlainError } from '../base/errors.js'

type PayloadOf<Type extends StepType> = Extract<StepCompleted, { stepType: Type }>['payload']

/** Without `outcome`, the outcome is `ok`. */
export interface StepEnding<Type extends StepType> extends Partial<Pick<StepCompleted, 'outcome' | 'error'>> {
  payload: PayloadOf<Type>
}

export interface StepWork<Type extends StepType, Output> {
  readonly step: Extract<Step, { stepType: Type }>
  readonly callId?: string
  /** Called when the end of the step is emitted. A null output means none. */
  toEnding(output: Output | null, context: AgentContext): StepEnding<Type>
  /** Whether shields still have to screen the output. The end is then emitted after the screening. */
  isUncleared?(context: AgentContext): boolean
}

interface OpenStep {
  work: StepWork<StepType, unknown>
  owner: AnyActorRef
  startedAt: number
  /** The event that ended the work, and the time of the event. Set while shields screen the output. */
  endedBy?: { event: AgentMachineEvent; completedAt: number }
  isOver?: true
}

/** The steps in progress. A step ends exactly once, with the event that contains its outcome or stops its actor. */
export class OpenSteps {
  #open: OpenStep[] = []
  readonly #clock: Clock
  readonly #emitter: Emitter

  constructor(clock: Clock, emitter: Emitter) {
    this.#clock = clock
    this.#emitter = emitter
  }

  /** Opens a step for work that `owner` has started. A subscriber may stop the work, so check the signal afterwards. */
  start<Type extends StepType, Output>(owner: AnyActorRef, work: StepWork<Type, Output>): void {
    const startedAt = this.#clock.now()
    const step = { work: work as unknown as StepWork<StepType, unknown>, owner, startedAt }
    // Usually few steps are in progress, and `push` reserves space for sixteen more. With thousands, it avoids a copy
    // each.
    if (this.#open.length < 16) this.#open = this.#open.concat(step)
    else this.#open.push(step)
    this.#emitter.emit({ type: 'step_started', ...work.step, startedAt })
  }

  /** Ends the step of work that ended before the work's actor ended. */
  end<Type extends StepType, Output>(work: StepWork<Type, Output>, ending: StepEnding<Type>): void {
    const open = this.#open.find((one) => one.work === (work as unknown))
    if (open === undefined) return
    this.#complete(open, ending as unknown as StepEnding<StepType>)
    this.#dropEnded()
  }

  endByEvent(event: AgentMachineEvent, agent: AnyActorRef, defer: Defer): void {
    if (this.#open.length === 0) return
    defer(() => {
      const { status, children, context } = agent.getSnapshot() as SnapshotFrom<typeof agentMachine>
      const isAtWork = ({ id }: AnyActorRef) =>
        status === 'active' && (children as Readonly<Record<string, unknown>>)[id]
      const begun = this.#open
      const { length } = begun
      for (const [at, open] of begun.entries()) {
        // This event must not end steps that start in reaction to it.
        if (at === length) break
        if (open.isOver) continue
        if (status === 'active' && open.work.isUncleared?.(context)) {
          open.endedBy ??= { event, completedAt: this.#clock.now() }
          continue
        }
        const ending =
          findEnding(open.endedBy?.event ?? event, open, context) ??
          (isAtWork(open.owner) === open.owner ? null : createCancelledEnding(open, context))
        if (ending !== null) this.#complete(open, ending)
      }
      this.#dropEnded()
    })
  }

  /** Removes ended steps in one pass, because one event can end thousands of steps. */
  #dropEnded(): void {
    if (this.#open.some(({ isOver }) => isOver)) this.#open = this.#open.filter(({ isOver }) => !isOver)
  }

  #complete(open: OpenStep, { payload, outcome = 'ok', error }: StepEnding<StepType>): void {
    if (open.isOver) return
    open.isOver = true
    const { startedAt, endedBy } = open
    const { step } = open.work
    const completedAt = endedBy?.completedAt ?? this.#clock.now()
    const completed = { type: 'step_completed', ...step, startedAt, completedAt, outcome, payload }
    this.#emitter.emit((error ? { ...completed, error } : completed) as StepCompleted)
  }
}

function findEnding(
  event: AgentMachineEvent,
  open: OpenStep,
  context: AgentContext,
): StepEnding<StepType> | null {
  const { owner, work } = open
  if (work.callId !== undefined) {
    if (!('callId' in event) || event.callId !== work.callId) return null
    if (event.type === 'TOOL_RESULT') return work.toEnding(event.result, context)
    return event.type === 'CHILD_WAITING' ? createCancelledEnding(open, context) : null
  }
  if (event.type === `xstate.done.actor.${owner.id}` && 'output' in event)
    return work.toEnding(event.output, context)
  if (event.type === `xstate.error.actor.${owner.id}` && 'error' in event) {
    const failure = toPlainError(event.error)
    const { code, message } = failure
    return {
      outcome: 'error',
      error: attachCause({ code, message }, failure),
      ...work.toEnding(null, context),
    }
  }
  return null
}

function createCancelledEnding({ work }: OpenStep, context: AgentContext): StepEnding<StepType> {
  return { outcome: 'cancelled', payload: work.toEnding(null, context).payload }
}

/** A call's step id starts with that of the response that contains the call. */
export function getCallStepId({ runId, steps, batchNumber }: AgentContext, callId: string): string {
  return `${getStepId({ runId, steps: steps - 1, lastMessageNumber: batchNumber - 1 })}.tool.${callId}`
}
