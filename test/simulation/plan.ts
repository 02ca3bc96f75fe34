import { chance } from '../chaos/world.js'
import { createHash } from './chance.js'

/** All external requests of a process, where it may die, fall asleep, or get no answer. */
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

/** A moment, given as a time or as right before or after the nth operation of a kind. */
export type When = { at: number; process: number } | { point: Point; nth: number; phase: 'before' | 'after' }

/** The fate of one store query. */
export const losses = [
  'refused',
  'lost request',
  'lost reply',
  'no reply',
  'late request',
  'late reply',
] as const
export type Loss = (typeof losses)[number]

/** How a model request fails. */
export const modelFaults = ['503', '429', '429 for long', 'cut', 'silence', 'fatal'] as const
export type ModelFault = (typeof modelFaults)[number]

export type Fault =
  /** The process dies and restarts after `ms`. */
  | { kind: 'kill'; when: When; ms: number }
  /** The process is suspended for `ms`, as by SIGSTOP. */
  | { kind: 'pause'; when: When; ms: number }
  /** The process shuts down in order and restarts after `ms`. */
  | { kind: 'stop'; at: number; process: number; ms: number }
  /** The clock of a process is set. */
  | { kind: 'jump'; at: number; process: number; ms: number }
  /** The store is unavailable. */
  | { kind: 'outage'; at: number; ms: number; how: 'refused' | 'lost reply' | 'no reply' }
  /** The latency to the store increases. */
  | { kind: 'slow'; at: number; ms: number; by: number }
  | { kind: 'store'; point: Exclude<Point, 'request' | 'effect'>; nth: number; how: Loss }
  | { kind: 'model'; nth: number; how: ModelFault }

/** A user's message and its entry point: process 0, which never dies, or a working process. */
export interface Saying {
  at: number
  session: number
  desk: number
  what: 'steer' | 'cancel' | 'pause' | 'resume' | 'sleep' | 'next' | 'now'
  /** Repeats it under the same id, whether or not the first message arrived. */
  twice: boolean
}

/** How people answer questions: delay, entry point, and answer. */
export interface Manner {
  rejects: number
  edits: number
  twice: number
  /** Omits the id of the asking message. */
  loose: number
  byDrive: number
  slowest: number
}

/** Clients that retry with the same key at another process until they see a reply. */
export interface Clients {
  /** The share of replies that are lost. */
  lost: number
  /** Their reply timeout, in milliseconds. */
  patienceMs: number
  messages: { at: number; session: number; desk: number; when: 'next' | 'now' }[]
}

/** People who approve later calls of `pay`, and change their minds. */
export interface Grants {
  /** The share of approvals that come with a grant. */
  withApproval: number
  given: {
    at: number
    session: number
    desk: number
    /** Null means unlimited. */
    uses: number | null
    /** When all grants of the session are revoked, or null. */
    revokedAt: number | null
  }[]
}

/** A whole story in advance, as JSON with removable parts. */
export interface Plan {
  seed: number
  processes: number
  sessions: number
  /** Each process's clock offset in milliseconds. */
  skews: number[]
  store: {
    /** It answers at once, and its faults are thrown. */
    sync: boolean
    /** The maximum round trip to the store, in milliseconds. */
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
    /** Whether a tool makes its run sleep, with a scheduler in each process to wake it. */
    naps?: boolean
    /** Whether a retry wait is deferred to another call. */
    maxRetryWaitMs: number | null
  }
  manner: Manner
  faults: Fault[]
  sayings: Saying[]
  clients?: Clients
  grants?: Grants
}

/** When faults end, in milliseconds. */
export const calmAt = 240_000

const minutes = 60_000

/** The story of a seed. Some stories have sleeping runs, some have retrying clients, some have grants. */
export function createPlan(seed: number): Plan {
  const plan = createWakefulPlan(seed)
  const next = chance(createHash(seed, 'naps'))
  return addGrants(addClients(next() < 0.15 ? addNaps(plan, next) : plan))
}

/** In some stories, people approve later calls. */
function addGrants(plan: Plan): Plan {
  const next = chance(createHash(plan.seed, 'lending'))
  if (next() >= 0.2) return plan
  const below = (most: number): number => Math.floor(next() * most)
  const createGrant = (): Grants['given'][number] => {
    const at = below(calmAt * 0.4)
    return {
      at,
      session: 1 + below(plan.sessions),
      desk: below(plan.processes + 1),
      uses: next() < 0.3 ? null : 1 + below(3),
      revokedAt: next() < 0.5 ? null : at + below(calmAt * 0.3),
    }
  }
  return {
    ...plan,
    grants: { withApproval: next() < 0.5 ? 0 : 0.5, given: Array.from({ length: below(4) }, createGrant) },
  }
}

/** In some stories, clients retry. */
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

/**
 * In this case clocks differ by a minute and jump by two. A wake-up date uses the clock of the process that
 * set it.
 */
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
