import { chance } from '../chaos/world.js'
import { createHash } from './chance.js'

/** Everything that a process asks of others: where it may die, fall asleep, or get no answer. */
export const points = [
  'acquire',
  'renew',
  'release',
  'append',
  'read',
  'get',
  'put',
  'inbox',
  'remove',
  'unread',
  'timers',
  'request',
  'effect',
] as const

export type Point = (typeof points)[number]

/** A moment: by the clock, or right before or after something is done for the nth time. */
export type When = { at: number; process: number } | { point: Point; nth: number; phase: 'before' | 'after' }

/** What becomes of one question to the store. */
export const losses = [
  'refused',
  'lost request',
  'lost reply',
  'no reply',
  'late request',
  'late reply',
] as const
export type Loss = (typeof losses)[number]

/** How a request to the model fails. */
export const modelFaults = ['503', '429', '429 for long', 'cut', 'silence', 'fatal'] as const
export type ModelFault = (typeof modelFaults)[number]

export type Fault =
  /** The process is gone, and comes back after `ms`. */
  | { kind: 'kill'; when: When; ms: number }
  /** The process stands still for `ms`, as by SIGSTOP. */
  | { kind: 'pause'; when: When; ms: number }
  /** The process is asked to stop in order, and begins again after `ms`. */
  | { kind: 'stop'; at: number; process: number; ms: number }
  /** The clock of a process is set. */
  | { kind: 'jump'; at: number; process: number; ms: number }
  /** The store is away. */
  | { kind: 'outage'; at: number; ms: number; how: 'refused' | 'lost reply' | 'no reply' }
  /** The way to the store takes longer. */
  | { kind: 'slow'; at: number; ms: number; by: number }
  | { kind: 'store'; point: Exclude<Point, 'request' | 'effect'>; nth: number; how: Loss }
  | { kind: 'model'; nth: number; how: ModelFault }

/** What somebody says, and where: at process 0, which never dies, or at one that works. */
export interface Saying {
  at: number
  session: number
  desk: number
  what: 'steer' | 'cancel' | 'pause' | 'resume' | 'sleep' | 'next' | 'now'
  /** Says it again, under the same id, whether the first time was heard or not. */
  twice: boolean
}

/** How people answer questions: after a while, at which desk, and how. */
export interface Manner {
  rejects: number
  edits: number
  twice: number
  /** Without the id of the message that asks. */
  loose: number
  byDrive: number
  slowest: number
}

/** Clients that send again, under the same key and to another process, until they see a reply. */
export interface Clients {
  /** The share of replies that are lost on the way to them. */
  lost: number
  /** How long they wait for a reply, in milliseconds. */
  patienceMs: number
  messages: { at: number; session: number; desk: number; when: 'next' | 'now' }[]
}

/** A whole story, before it happens: JSON, from which parts can be taken away. */
export interface Plan {
  seed: number
  processes: number
  sessions: number
  /** By how many milliseconds each process's clock is off. */
  skews: number[]
  store: {
    /** It answers at once; its faults are thrown. */
    sync: boolean
    /** The longest way to the store and back, in milliseconds. */
    slowest: number
    releasesInAppend: boolean
    renewsAll: boolean
  }
  agent: {
    stream: boolean
    maxSteps: number
    timeoutMs: number
    tokenBudget: number
    onInterrupted: 'result' | 'approval'
    concurrency: number
    research: boolean
    /** Whether a tool lets its run sleep, and a scheduler in each process wakes it. */
    naps?: boolean
    /** Whether a wait before a retry is left to another call. */
    maxRetryWaitMs: number | null
  }
  manner: Manner
  faults: Fault[]
  sayings: Saying[]
  clients?: Clients
}

/** When faults end, in milliseconds. */
export const calmAt = 240_000

const minutes = 60_000

/** The story of a seed: some are of runs that sleep, and some of clients that send again. */
export function createPlan(seed: number): Plan {
  const plan = createWakefulPlan(seed)
  const next = chance(createHash(seed, 'naps'))
  return addClients(next() < 0.15 ? addNaps(plan, next) : plan)
}

/** In some stories clients send again. */
function addClients(plan: Plan): Plan {
  const next = chance(createHash(plan.seed, 'clients'))
  if (next() >= 0.2) return plan
  const below = (most: number): number => Math.floor(next() * most)
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
  return {
    ...plan,
    clients: {
      lost: pick([0.3, 0.6]),
      patienceMs: pick([1000, 8000, 30_000]),
      messages: Array.from({ length: 1 + below(4) }, () => ({
        at: below(calmAt * 0.5),
        session: 1 + below(plan.sessions),
        desk: below(plan.processes + 1),
        when: pick(['next', 'now'] as const),
      })),
    },
  }
}

/** Clocks differ by a minute then, and jump by two: the date of a sleep is of the clock of the process that set it. */
function addNaps(plan: Plan, next: () => number): Plan {
  const below = (most: number): number => Math.floor(next() * most)
  const toSeconds = (ms: number): number => Math.round(ms / 60)
  const faults = plan.faults.map((one) => (one.kind === 'jump' ? { ...one, ms: toSeconds(one.ms) } : one))
  const ofTimers = (): Fault => {
    const nth = 1 + below(6)
    return next() < 0.5
      ? { kind: 'store', point: 'timers', nth, how: losses[below(losses.length)] as Loss }
      : {
          kind: 'kill',
          when: { point: 'timers', nth, phase: next() < 0.5 ? 'before' : 'after' },
          ms: 5000,
        }
  }
  const sleep = (): Saying => ({
    at: below(calmAt * 0.5),
    session: 1 + below(plan.sessions),
    desk: below(plan.processes + 1),
    what: 'sleep',
    twice: false,
  })
  return {
    ...plan,
    skews: plan.skews.map(toSeconds),
    agent: { ...plan.agent, naps: true },
    faults: [...faults, ...Array.from({ length: below(3) }, ofTimers)],
    sayings: [...plan.sayings, ...Array.from({ length: below(3) }, sleep)],
  }
}

function createWakefulPlan(seed: number): Plan {
  const next = chance(createHash(seed, 'plan'))
  const below = (most: number): number => Math.floor(next() * most)
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
  const often = (share: number): boolean => next() < share
  const processes = 1 + below(4)
  const sessions = often(0.8) ? 1 : 2
  const moment = (): number => below(calmAt * 0.6)
  const when = (): When =>
    often(0.4)
      ? { at: moment(), process: 1 + below(processes) }
      : {
          point: pick([
            'append',
            'append',
            'append',
            'effect',
            'effect',
            'request',
            'acquire',
            'read',
            'renew',
            'release',
            'inbox',
            'remove',
            'put',
          ] as const),
          nth: 1 + below(8),
          phase: pick(['before', 'after', 'after'] as const),
        }
  const fault = (): Fault => {
    switch (below(13)) {
      case 0:
      case 1:
      case 2:
        return { kind: 'kill', when: when(), ms: pick([500, 5000, 40_000]) }
      case 3:
      case 4:
      case 12:
        return { kind: 'pause', when: when(), ms: pick([3000, 20_000, 45_000, 45_000, 90_000]) }
      case 5:
        return { kind: 'stop', at: moment(), process: 1 + below(processes), ms: pick([1000, 15_000]) }
      case 6:
        return { kind: 'jump', at: moment(), process: 1 + below(processes), ms: (below(240) - 120) * minutes }
      case 7:
        return {
          kind: 'outage',
          at: moment(),
          ms: pick([1000, 8000, 40_000]),
          how: pick(['refused', 'lost reply', 'no reply'] as const),
        }
      case 8:
        return { kind: 'slow', at: moment(), ms: pick([5000, 30_000]), by: pick([800, 6000, 25_000]) }
      case 9:
      case 10:
        return {
          kind: 'store',
          point: pick([
            'append',
            'append',
            'append',
            'acquire',
            'renew',
            'release',
            'read',
            'put',
            'inbox',
            'remove',
            'get',
          ] as const),
          nth: 1 + below(10),
          how: pick(losses),
        }
      default:
        return { kind: 'model', nth: 1 + below(8), how: pick(modelFaults) }
    }
  }
  const saying = (): Saying => ({
    at: below(calmAt * 0.4),
    session: 1 + below(sessions),
    desk: below(processes + 1),
    what: pick([
      'steer',
      'steer',
      'cancel',
      'pause',
      'resume',
      'next',
      'next',
      'now',
      'now',
      'now',
      'now',
    ] as const),
    twice: often(0.5),
  })
  return {
    seed,
    processes,
    sessions,
    skews: Array.from({ length: processes + 1 }, () => (often(0.5) ? 0 : (below(120) - 60) * minutes)),
    store: {
      sync: often(0.25),
      slowest: pick([20, 200, 2000]),
      releasesInAppend: often(0.6),
      renewsAll: often(0.5),
    },
    agent: {
      stream: often(0.5),
      maxSteps: pick([3, 6, 12]),
      timeoutMs: pick([0, 0, 90_000]),
      tokenBudget: pick([0, 0, 120]),
      onInterrupted: pick(['result', 'approval'] as const),
      concurrency: pick([1, 8]),
      research: often(0.3),
      maxRetryWaitMs: pick([null, 2000]),
    },
    manner: {
      rejects: pick([0, 0.3]),
      edits: pick([0, 0.3]),
      twice: pick([0, 0.4]),
      loose: pick([0, 0.5]),
      byDrive: pick([0, 0.5, 1]),
      slowest: pick([2000, 30_000]),
    },
    faults: Array.from({ length: below(8) }, fault),
    sayings: Array.from({ length: below(7) }, saying),
  }
}
