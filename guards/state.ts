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

/** Plain JSON under 8 KB for built-in guards, and at most `mostUserState` per user guard. */
export interface GuardrailsState extends GuardStates {
  version: typeof version
  user: UserStates
}

export function getInitialGuardrails(): GuardrailsState {
  return initial
}

/** Whether any guard watches calls. Otherwise calls are neither hashed nor stored. */
export function isWatching(config: GuardrailsConfig): boolean {
  return rules.some(([key]) => findSettings(key, config) !== null)
}

export function observeAll(state: GuardrailsState, fact: Fact, config: GuardrailsConfig): GuardrailsState {
  const next = mapRules((key, guard) => {
    // The key is missing in logs that are older than the guard.
    const before: object | undefined = state[key]
    const settings = findSettings(key, config)
    if (settings === null) return before ?? guard.initial
    return guard.observe(before ?? guard.initial, filterFact(key, fact, config), settings)
  })
  return { version, ...next, user: state.user }
}

/** The model may ask for content that requests now omit (messages `head` up to `from`). */
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

export type GuardrailFinding = Finding<GuardName> & { onHalt: OnHalt }

/** The findings after the latest fact: halts, then blocks, then nudges, each in roster order. */
export function collectFindings(state: GuardrailsState, config: GuardrailsConfig): GuardrailFinding[] {
  const all: GuardrailFinding[] = []
  for (const [key, guard] of rules) {
    const settings: { onHalt?: OnHalt; lastWords?: boolean } | null = findSettings(key, config)
    const verdict = settings && guard.verdict(state[key], settings)
    if (!verdict || verdict.action === 'ok') continue
    const onHalt = verdict.onHalt ?? settings.onHalt ?? 'error'
    const asks = verdict.action === 'halt' && onHalt === 'pause' && settings.lastWords
    all.push({ ...(asks && { lastWords: lastWordsAsked }), ...verdict, onHalt })
  }
  return all.length > 1 ? all.sort((a, b) => weight[a.action] - weight[b.action]) : all
}

/** Resets the guard that halted the run. Unknown names have no effect. */
export function resetGuard(state: GuardrailsState, name: string, userGuard?: string): GuardrailsState {
  if (name === 'user_guard' && userGuard !== undefined) {
    const { [userGuard]: _reset, ...user } = state.user
    return { ...state, user }
  }
  const halted = rules.filter(([, { reasons }]) => reasons.some((reason) => reason === name))
  if (halted.length === 0) return state
  return { ...state, ...Object.fromEntries(halted.map(([key, { initial }]) => [key, initial])) }
}

export function startTurn(_state: GuardrailsState): GuardrailsState {
  return getInitialGuardrails()
}

/** `note` describes unusable state that had to be reset. */
export type RestoredGuardrails = { state: GuardrailsState; note?: string } | { error: string }

/** Resets damaged state with a note. Rejects a newer version, because ignoring it would silently disable guards. */
export function restoreGuardrails(stored: unknown): RestoredGuardrails {
  if (stored === undefined || stored === null) return { state: getInitialGuardrails() }
  if (!isRecord(stored)) return { state: getInitialGuardrails(), note: formatDamaged(['all of it']) }
  if (typeof stored['version'] === 'number' && stored['version'] > version) {
    return {
      error:
        `The guard state of this session has version ${stored['version']}; this version of Statewright supports versions up to ` +
        `${version}. Load the session with the newer version that stored it.`,
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

function mapRules(of: (key: keyof GuardStates, guard: AnyRule) => object): GuardStates {
  const mapped: Partial<Record<keyof GuardStates, object>> = {}
  for (const [key, guard] of rules) mapped[key] = of(key, guard)
  return mapped as GuardStates
}

function formatDamaged(what: readonly string[]): string {
  return `The stored guard state of this session could not be read (${what.join(', ')}), so these guards start from their initial state.`
}

const initial: GuardrailsState = Object.freeze({
  version,
  ...mapRules((_, guard) => guard.initial),
  user: Object.freeze({}),
})

const weight: Record<Finding['action'], number> = { halt: 0, block: 1, nudge: 2 }
