import type { AgentConfigInput } from '../../../../src/index.js'
import type { Outcome, Scene } from './play-scene.js'

/**
 * The witness of one setting is a scene whose outcome changes when only this setting changes. For a number,
 * the first three values are N−1, N and N+1, where N is the value that the scene reaches.
 */
export interface Knob {
  /** The setting's path, such as `limits.maxSteps`. */
  key: string
  scene: Scene
  values: readonly unknown[]
  /** Selects the compared part of an outcome. */
  look: (outcome: Outcome) => unknown
  /** The expected observation for each value. */
  sees: readonly unknown[]
}

/** The scene's configuration with one setting changed. */
export function withSetting({ key, scene }: Pick<Knob, 'key' | 'scene'>, value: unknown): AgentConfigInput {
  const copy = structuredClone(scene.config ?? {}) as Record<string, unknown>
  const path = key.split('.')
  const last = path.pop() as string
  let at = copy
  for (const part of path) {
    const inner = (at[part] ?? {}) as Record<string, unknown>
    at[part] = inner
    at = inner
  }
  at[last] = value
  return copy as AgentConfigInput
}

export const lookAtState = ({ state }: Outcome): string => state
export const lookAtEnd = ({ state, reason }: Outcome): string => `${state} ${reason}`
export const countRequests = ({ requests }: Outcome): number => requests.length

/** Whether a guard took this action. */
export const lookFor =
  (action: 'nudge' | 'block' | 'halt') =>
  ({ events }: Outcome): boolean =>
    events.some((event) => event.type === 'guardrail' && event.action === action)

/** Whether the run emitted an event of this type. */
export const sawEvent =
  (type: string) =>
  ({ events }: Outcome): boolean =>
    events.some((event) => event.type === type)
