import { enqueueActions } from 'xstate'
import type { deadline } from '../missing-actors.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from '../context.js'

const clockAction = enqueueActions<
  AgentContext,
  AgentMachineEvent,
  undefined,
  AgentMachineEvent,
  { src: 'deadline'; logic: typeof deadline; id: string | undefined },
  never,
  never,
  never,
  never
>

export const startDeadline = clockAction(({ context, enqueue }) => {
  if (context.deadline === null) return
  enqueue.stopChild('deadline')
  enqueue.spawnChild('deadline', { id: 'deadline', input: { at: context.deadline } })
})

export const holdDeadline = clockAction(({ context, event, enqueue }) => {
  if (context.deadline === null) return
  enqueue.stopChild('deadline')
  enqueue.assign({ timeLeft: Math.max(0, context.deadline - getEventTime(event)) })
})

export const releaseDeadline = clockAction(({ context, event, enqueue }) => {
  if (context.timeLeft === null || event.type === 'CANCEL') return
  const at = getEventTime(event) + context.timeLeft
  enqueue.assign({ deadline: at, timeLeft: null })
  enqueue.spawnChild('deadline', { id: 'deadline', input: { at } })
})
