import type { GuardrailsConfig, OnHalt } from './config.js'
import { cycle, type CycleState } from './cycle.js'
import { duplicates, type DuplicatesState } from './duplicates.js'
import { failing, type FailingState } from './failing.js'
import { forgetDropped, progress, type ProgressState } from './progress.js'
import { repeatedCall, type RepeatedCallState } from './repeated-call.js'
import { repeatedOutput, type RepeatedOutputState } from './repeated-output.js'
import { isRecord } from './lib/stored.js'
import { terminalDelegation, type TerminalDelegationState } from './terminal-delegation.js'
import type { Fact, Finding, Guard, Verdict } from './types.js'
import { restoreUserStates, type UserStates } from './user-state.js'

/** 2: the progress guard. A state of version 1 has none yet. */
const version = 2

/**
 * The state of all guards, as it is stored with the session: plain JSON of bounded size however long a run is: under
 * 8 KB for the guards built in, and at most `mostUserState` for each of the user's own.
 */
export interface GuardrailsState {
  version: typeof version
  repeatedCall: RepeatedCallState
  repeatedOutput: RepeatedOutputState
  cycle: CycleState
  failing: FailingState
  terminalDelegation: TerminalDelegationState
  progress: ProgressState
  duplicates: DuplicatesState
  user: UserStates
}

export function initialGuardrails(): GuardrailsState {
  return {
    version,
    repeatedCall: repeatedCall.initial,
    repeatedOutput: repeatedOutput.initial,
    cycle: cycle.initial,
    failing: failing.initial,
    terminalDelegation: terminalDelegation.initial,
    progress: progress.initial,
    duplicates: duplicates.initial,
    user: {},
  }
}

/** Whether any guard watches the calls; without one, nothing about them need be hashed or remembered. */
export function isWatching({
  repeatedCall,
  repeatedOutput,
  cycle,
  failing,
  terminalDelegation,
  progress: watched,
}: GuardrailsConfig): boolean {
  return [repeatedCall, repeatedOutput, cycle, failing, terminalDelegation, watched].some(
    (guard) => guard != null,
  )
}

/** Tells every guard that is on. */
export function observeAll(state: GuardrailsState, fact: Fact, config: GuardrailsConfig): GuardrailsState {
  const { maxRepeatedToolSteps } = config
  return {
    version,
    repeatedCall: told(
      repeatedCall,
      state.repeatedCall,
      fact,
      config.repeatedCall && { ...config.repeatedCall, maxRepeatedToolSteps },
    ),
    repeatedOutput: told(repeatedOutput, state.repeatedOutput, fact, config.repeatedOutput),
    cycle: told(cycle, state.cycle, fact, config.cycle),
    failing: told(failing, state.failing, fact, config.failing),
    terminalDelegation: told(terminalDelegation, state.terminalDelegation, fact, config.terminalDelegation),
    progress: told(progress, state.progress, withoutFailures(fact, config), config.progress),
    duplicates: told(duplicates, state.duplicates, fact, config.progress?.duplicates),
    user: state.user,
  }
}

/** Requests leave out the messages from `head` up to `from`: what was learned from them may be asked for again. */
export function dropped(state: GuardrailsState, head: number, from: number): GuardrailsState {
  // A log of an older version has no such state.
  const before: ProgressState | undefined = state.progress
  const after = before && forgetDropped(before, head, from)
  return after === before ? state : { ...state, progress: after }
}

/** Where the failing guard is on, failures are its business alone. */
function withoutFailures(fact: Fact, { failing: counts, progress: watched }: GuardrailsConfig): Fact {
  if (counts === null || !watched || fact.type !== 'results') return fact
  return { ...fact, results: fact.results.filter((result) => result.ok || result.refused) }
}

/** A finding, and what its guard does when it halts. */
export type StandingFinding = Finding & { onHalt: OnHalt }

/**
 * What the guards say after the last fact, the weightiest first: halts before blocks before nudges, and among equals
 * the guard that knows most about the cause.
 */
export function findings(state: GuardrailsState, config: GuardrailsConfig): StandingFinding[] {
  const { maxRepeatedToolSteps } = config
  const all = [
    ...asked(terminalDelegation, state.terminalDelegation, config.terminalDelegation),
    ...asked(failing, state.failing, config.failing),
    ...asked(
      repeatedCall,
      state.repeatedCall,
      config.repeatedCall && { ...config.repeatedCall, maxRepeatedToolSteps },
    ),
    ...asked(repeatedOutput, state.repeatedOutput, config.repeatedOutput),
    ...asked(cycle, state.cycle, config.cycle),
    ...asked(progress, state.progress, config.progress),
    ...asked(duplicates, state.duplicates, config.progress?.duplicates),
  ]
  return all.length > 1 ? all.sort((a, b) => weight[a.action] - weight[b.action]) : all
}

/**
 * Resuming after a guard's halt resets that guard alone; a name that is no guard's changes nothing. `userGuard` says
 * which of the user's own it was, when the name is `user_guard`.
 */
export function resetGuard(state: GuardrailsState, name: string, userGuard?: string): GuardrailsState {
  switch (name) {
    case 'repeated_call':
      return { ...state, repeatedCall: repeatedCall.initial }
    case 'repeated_output':
      return { ...state, repeatedOutput: repeatedOutput.initial }
    case 'cycle':
      return { ...state, cycle: cycle.initial }
    case 'repeated_failure':
      return { ...state, failing: failing.initial }
    case 'policy_denied':
      return { ...state, failing: failing.initial, progress: progress.initial }
    case 'no_progress':
      return { ...state, progress: progress.initial }
    case 'terminal_delegation':
      return { ...state, terminalDelegation: terminalDelegation.initial }
    case 'user_guard':
      return userGuard === undefined ? state : { ...state, user: without(state.user, userGuard) }
    default:
      return state
  }
}

/** A new user message: every streak is the run's and starts anew. */
export function newTurn(_state: GuardrailsState): GuardrailsState {
  return initialGuardrails()
}

/** `note`: what could not be used and starts anew. */
export type RestoredGuardrails = { state: GuardrailsState; note?: string } | { error: string }

/**
 * The state that a session was stored with. What is missing, because the session is new or an older version knew fewer
 * guards, starts anew; so does, with a note, what is damaged. A newer version is refused, because dropping what it
 * knows would switch guards off in silence.
 */
export function restoreGuardrails(stored: unknown): RestoredGuardrails {
  if (stored === undefined || stored === null) return { state: initialGuardrails() }
  if (!isRecord(stored)) return { state: initialGuardrails(), note: damaged(['all of it']) }
  if (typeof stored['version'] === 'number' && stored['version'] > version) {
    return {
      error:
        `The guard state of this session has version ${stored['version']}; this Statewright knows versions up to ` +
        `${version}. Load the session with the newer Statewright that stored it.`,
    }
  }
  const lost: string[] = []
  const restored = <State>(
    name: keyof GuardrailsState,
    guard: Pick<Guard<State, never>, 'initial' | 'restore'>,
  ): State => {
    if (stored[name] === undefined) return guard.initial
    const state = guard.restore(stored[name])
    if (state === null) lost.push(name)
    return state ?? guard.initial
  }
  const state: GuardrailsState = {
    version,
    repeatedCall: restored('repeatedCall', repeatedCall),
    repeatedOutput: restored('repeatedOutput', repeatedOutput),
    cycle: restored('cycle', cycle),
    failing: restored('failing', failing),
    terminalDelegation: restored('terminalDelegation', terminalDelegation),
    progress: restored('progress', progress),
    duplicates: restored('duplicates', duplicates),
    user: restored('user', { initial: {}, restore: restoreUserStates }),
  }
  return lost.length > 0 ? { state, note: damaged(lost) } : { state }
}

function damaged(what: readonly string[]): string {
  return `The stored guard state of this session could not be read (${what.join(', ')}); these guards start anew.`
}

function without(states: UserStates, name: string): UserStates {
  return Object.fromEntries(Object.entries(states).filter(([one]) => one !== name))
}

const weight: Record<Finding['action'], number> = { halt: 0, block: 1, nudge: 2 }

function told<State, Config>(
  guard: Guard<State, Config>,
  state: State | undefined,
  fact: Fact,
  config: Config | null | undefined,
): State {
  // A log of an older version has neither state nor configuration of a guard that it did not know.
  const before = state ?? guard.initial
  return config == null ? before : guard.observe(before, fact, config)
}

function asked<State, Config extends object>(
  guard: Guard<State, Config>,
  state: State,
  config: Config | null | undefined,
): StandingFinding[] {
  if (config == null) return []
  const verdict: Verdict = guard.verdict(state, config)
  if (verdict.action === 'ok') return []
  const onHalt = verdict.action === 'halt' ? verdict.onHalt : undefined
  return [{ ...verdict, onHalt: onHalt ?? (config as { onHalt?: OnHalt }).onHalt ?? 'error' }]
}
