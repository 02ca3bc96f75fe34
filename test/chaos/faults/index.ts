import { answers } from './answers.js'
import { bodies } from './bodies.js'
import { calls } from './calls.js'
import { connection } from './connection.js'
import type { Fault } from './fault.js'
import { statuses } from './statuses.js'

export type { Scene } from './fault.js'

/** Possible provider behaviors. */
export const faults = { ...calls, ...answers, ...bodies, ...statuses, ...connection } satisfies Record<
  string,
  Fault
>

export type FaultName = keyof typeof faults

export const faultNames = Object.keys(faults) as FaultName[]
