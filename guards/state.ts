import { isRecord } from './lib/stored.js'
import type { OnHalt } from './lib/settings.js'
import { lastWordsAsked } from './lib/words.js'
import {
  type AnyRule,
  type GuardName,
  type GuardrailsConfig,
  type GuardStates,
  filterFact,
  rules,
  findSettings,
} from './roster.js'
import type { Fact, Finding } from './types.js'
import { restoreUserStates, type UserStates } from './user-state.js'

const version = 1

/**
 * The state of all guards, as it is stored with the session: plain JSON of bounded size however long a run is: under
 * 8 KB for the guards built in, and at most `mostUserState` for each of the user's own.
 */
export interface GuardrailsState extends GuardStates {
  version: typeof version
  user: UserStates
}

/** One for all: who has learned something makes another. */
export function getInitialGuardrails(): GuardrailsState {
  return initial
}

/** Whether any guard watches the calls; without one, nothing about them need be hashed or remembered. */
export function isWatching(config: GuardrailsConfig): boolean {
  return rules.some(([key]) => findSettings(key, config) !== null)
}

/** Tells every guard that is on. */
export function observeAll(state: GuardrailsState, fact: Fact, config: GuardrailsConfig): GuardrailsState {
  const next = mapRules((key, guard) => {
    // A log of an older version has no state of a guard that it did not know.
    const before: object | undefined = state[key]
    const settings = findSettings(key, config)
    if (settings === null) return before ?? guard.initial
    return guard.observe(before ?? guard.initial, filterFact(key, fact, config), settings)
  })
  return { version, ...next, user: state.user }
}

/** Requests leave out the messages from `head` up to `from`: what was learned from them may be asked for again. */
export function forgetDroppedMessages(state: GuardrailsState, head: number, from: number): GuardrailsState {
  let isSame = true
  const after = mapRules((key, guard) => {
    const before: object | undefined = state[key]
    const next = before && guard.forget ? guard.forget(before, head, from) : before
    isSame &&= next === before
    return next ?? guard.initial
  })
  return isSame ? state : { ...state, ...after }
}

/** A finding, and what its guard does when it halts. */
export type GuardrailFinding = Finding<GuardName> & { onHalt: OnHalt }

/**
 * What the guards say after the last fact, the weightiest first: halts before blocks before nudges, and among equals
 * the guard that knows most about the cause.
 */
export function collectFindings(state: GuardrailsState, config: GuardrailsConfig): GuardrailFinding[] {
  const all: GuardrailFinding[] = []
  for (const [key, guard] of rules) {
    const settings: { onHalt?: OnHalt; lastWords?: boolean } | null = findSettings(key, config)
    const verdict = settings && guard.verdict(state[key], settings)
    if (!verdict || verdict.action === 'ok') continue
    const isHalt = verdict.action === 'halt'
    const onHalt = (isHalt ? verdict.onHalt : undefined) ?? settings.onHalt ?? 'error'
    const asks = isHalt && onHalt === 'pause' && settings.lastWords
    all.push({ ...(asks && { lastWords: lastWordsAsked }), ...verdict, onHalt })
  }
  return all.length > 1 ? all.sort((a, b) => weight[a.action] - weight[b.action]) : all
}

/**
 * Resuming after a guard's halt resets that guard alone; a name that is no guard's changes nothing. `userGuard` says
 * which of the user's own it was, when the name is `user_guard`.
 */
export function resetGuard(state: GuardrailsState, name: string, userGuard?: string): GuardrailsState {
  if (name === 'user_guard' && userGuard !== undefined) {
    return { ...state, user: withoutUserState(state.user, userGuard) }
  }
  const halted = rules.filter(([, { reasons }]) => reasons.some((reason) => reason === name))
  if (halted.length === 0) return state
  return { ...state, ...Object.fromEntries(halted.map(([key, { initial }]) => [key, initial])) }
}

/** A new user message: every streak is the run's and starts anew. */
export function startTurn(_state: GuardrailsState): GuardrailsState {
  return getInitialGuardrails()
}

/** `note`: what could not be used and starts anew. */
export type RestoredGuardrails = { state: GuardrailsState; note?: string } | { error: string }

/**
 * The state that a session was stored with. What is missing, because the session is new or an older version knew fewer
 * guards, starts anew; so does, with a note, what is damaged. A newer version is refused, because dropping what it
 * knows would switch guards off in silence.
 */
export function restoreGuardrails(stored: unknown): RestoredGuardrails {
  if (stored === undefined || stored === null) return { state: getInitialGuardrails() }
  if (!isRecord(stored)) return { state: getInitialGuardrails(), note: formatDamaged(['all of it']) }
  if (typeof stored['version'] === 'number' && stored['version'] > version) {
    return {
      error:
        `The guard state of this session has version ${stored['version']}; this Statewright knows versions up to ` +
        `${version}. Load the session with the newer Statewright that stored it.`,
    }
  }
  const lost: string[] = []
  const restored = <State>(name: string, restore: (of: unknown) => State | null, initial: State): State => {
    if (stored[name] === undefined) return initial
    const state = restore(stored[name])
    if (state === null) lost.push(name)
    return state ?? initial
  }
  const states = mapRules((key, guard) => restored(key, (of) => guard.restore(of), guard.initial))
  const state = { version, ...states, user: restored('user', restoreUserStates, {}) } as const
  return lost.length > 0 ? { state, note: formatDamaged(lost) } : { state }
}

/** Something for each guard, under its key. */
function mapRules(of: (key: keyof GuardStates, guard: AnyRule) => object): GuardStates {
  const made: Partial<Record<keyof GuardStates, object>> = {}
  for (const [key, guard] of rules) made[key] = of(key, guard)
  return made as GuardStates
}

function formatDamaged(what: readonly string[]): string {
  return `The stored guard state of this session could not be read (${what.join(', ')}); these guards start anew.`
}

function withoutUserState(states: UserStates, name: string): UserStates {
  return Object.fromEntries(Object.entries(states).filter(([one]) => one !== name))
}

const initial: GuardrailsState = Object.freeze({
  version,
  ...mapRules((_, guard) => guard.initial),
  user: Object.freeze({}),
})

const weight: Record<Finding['action'], number> = { halt: 0, block: 1, nudge: 2 }
