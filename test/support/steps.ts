import type { StepCompleted, StepStarted } from '../../machines/agent/announcements.js'
import type { AgentEvent } from '../../src/index.js'
import type { Play } from './play.js'

/** The start and end of each step of a run, one line each. */
export function lines({ events }: Pick<Play, 'events'>): string[] {
  return events.flatMap((event) => {
    if (event.type !== 'step_started' && event.type !== 'step_completed') return []
    const what = event.stepType === 'shield_call' ? `shield_call ${event.point}` : event.stepType
    return [event.type === 'step_started' ? `${what} …` : `${what} ${event.outcome}`]
  })
}

/** The completed steps of one kind. */
export function completed(play: Play, type: StepCompleted['stepType']): StepCompleted[] {
  return play.of('step_completed').filter(({ stepType }) => stepType === type)
}

/** Waits for a step to start. */
export function started(play: Play, type: StepStarted['stepType']): Promise<unknown> {
  return play.event('step_started', ({ stepType }) => stepType === type)
}

/**
 * The steps that the events leave open. Throws if they break the rule: each started step completes exactly
 * once, under the same id, and before the end of the session.
 */
export function openStepsOf(events: readonly AgentEvent[]): string[] {
  const open = new Set<string>()
  for (const event of events) {
    if (event.type === 'run_ended' && open.size > 0) throw new Error(`open at the end: ${[...open].join()}`)
    if (event.type !== 'step_started' && event.type !== 'step_completed') continue
    const key = `${event.stepType} ${event.stepId} ${event.stepType === 'inference' ? event.attempt : ''}`
    if (open.has(key) === (event.type === 'step_started'))
      throw new Error(`${event.type} out of turn: ${key}`)
    if (event.type === 'step_started') open.add(key)
    else open.delete(key)
    if (event.type === 'step_completed' && event.completedAt < event.startedAt)
      throw new Error(`${key} ended before it began`)
  }
  return [...open]
}

/** Pending until its signal aborts. */
export const forever = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(new Error('stopped'))
    })
  })
