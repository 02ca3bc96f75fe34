import type { AnyEventObject } from 'xstate'
import { formatPath, type MachinePath, type PathStep } from '../machine-path.js'

/** A run that breaks a property: a way, and for what never comes, what goes on for ever after it. */
export interface PropertyStory {
  /** Its name. */
  property: string
  /** What is wrong. */
  reason: string
  /** From the start to the moment that breaks the property, or to where the loop begins. As short as can be. */
  path: MachinePath
  /** The steps that are repeated for ever. Empty: the run rests there for ever. Null: the path alone breaks the property. */
  loop: PathStep[] | null
  /** Property, reason, path and loop, to print. */
  toString(): string
}

/** A story without the machine's states: what a test replays. */
export interface ReplayedStory {
  input?: unknown
  /** The events after the start. */
  steps: readonly AnyEventObject[]
  /** Null or left out: the steps alone break the property. */
  loop?: readonly AnyEventObject[] | null
}

export function createStory(
  property: string,
  reason: string,
  path: MachinePath,
  loop: PathStep[] | null,
): PropertyStory {
  return {
    property,
    reason,
    path,
    loop,
    toString: () => {
      const way = `${property}: ${reason}\nStarting with ${path.input}:\n${formatPath(path)}`
      if (loop === null) return way
      return loop.length === 0
        ? `${way}\nand rests there for ever.`
        : `${way}\nand then again and again:\n${formatPath({ steps: loop })}`
    },
  }
}
