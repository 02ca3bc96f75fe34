import type { AnyEventObject } from 'xstate'

/** Events under names that people use. */
export type Events = Record<string, AnyEventObject>

/** When everything of an exploration happens, and a time after every deadline. */
export const early = 1_000
export const late = 1_000_000
/** When a run is to be woken that sleeps, and a later time. */
export const wakeTime = 500_000
export const laterWakeTime = 600_000
/** When the shared budget is whole again that a run waits for. */
export const nextWindow = 700_000

export function stampEvent(event: AnyEventObject, now = early): AnyEventObject {
  return { ...event, now }
}
