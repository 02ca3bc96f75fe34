import { evidence } from '../../../guards/lib/evidence.js'
import { shown } from '../../../guards/lib/fingerprint.js'
import { toUserState, userStateOf, type UserStates } from '../../../guards/user-state.js'
import type { UserGuardsOutput, UserFinding } from '../../../machines/agent/consultation.js'
import type { Json } from '../../../machines/agent/json.js'
import { deepFreeze } from '../base/freeze.js'
import { CallAbort, onAbort, withSignal } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import { describeError } from '../base/describe-error.js'
import { withTimeout } from '../base/time-limit.js'
import type { GuardFact, GuardContext, UserGuard } from './guard.js'
import { readVerdict, type Said } from './verdict.js'

interface Setting {
  /** Aborts when the run is stopped. */
  signal: AbortSignal
  clock: Clock
  /** The app's own object. */
  context: unknown
}

interface Answer {
  guard: UserGuard
  state: Json
  said: Said
  /** What the guard has done wrong. */
  failure?: string
}

/** Tells all guards a fact and asks what they say, all at once. Whatever they do becomes plain data: never rejects. */
export async function consult(
  guards: readonly UserGuard[],
  states: UserStates,
  fact: GuardFact,
  { signal, clock, context }: Setting,
): Promise<UserGuardsOutput> {
  const aborts = guards.map(() => new CallAbort())
  const stopWaiting = onAbort(signal, () => {
    for (const abort of aborts) abort.abort(signal.reason)
  })
  const answers = await Promise.all(
    guards.map((guard, index) => {
      const abort = aborts[index] ?? new CallAbort()
      const state = deepFreeze(userStateOf(states, guard.name, guard.initial))
      return ask(guard, state, { fact, context, abort, clock })
    }),
  )
  stopWaiting()
  return toConsultation(answers, fact)
}

function ask(
  guard: UserGuard,
  before: Json,
  { fact, context, abort, clock }: { fact: GuardFact; context: unknown; abort: CallAbort; clock: Clock },
): Promise<Answer> {
  const { timeoutMs } = guard
  const question: GuardContext = withSignal({ fact, context }, abort)
  let state = before
  const failed = (failure: string): Answer => ({ guard, state, said: null, failure })
  return withTimeout(
    { timeoutMs, clock, abort, timedOut: () => failed(`verdict() took longer than ${timeoutMs} ms`) },
    async () => {
      try {
        if (guard.observe) {
          const next = toUserState(guard.observe(before, fact))
          if ('problem' in next) return failed(`observe() returned a state that ${next.problem}`)
          state = deepFreeze(next.state)
        }
        const verdict = readVerdict(await guard.verdict(state, question), fact)
        return 'problem' in verdict ? failed(verdict.problem) : { guard, state, said: verdict.said }
      } catch (error) {
        return failed(`it threw: ${describeError(error)}`)
      }
    },
  )
}

const weight: Record<UserFinding['action'], number> = { halt: 0, block: 1, nudge: 2 }

function toConsultation(answers: readonly Answer[], fact: GuardFact): UserGuardsOutput {
  const ignored = answers.filter(({ guard, failure }) => failure !== undefined && guard.onError === 'ignore')
  const remembering = answers.filter(({ guard }) => guard.observe)
  return {
    states: Object.fromEntries(remembering.map(({ guard, state }) => [guard.name, state])),
    findings: answers
      .flatMap((answer) => toFinding(answer, fact) ?? [])
      .sort((a, b) => weight[a.action] - weight[b.action]),
    warnings: ignored.map(({ guard, failure }) =>
      evidence(`Guard '${guard.name}' failed and was ignored (onError): ${failure}.`),
    ),
  }
}

function toFinding({ guard, said, failure }: Answer, fact: GuardFact): UserFinding | null {
  const { name, onHalt, onError } = guard
  const common = { guard: name, onHalt, callIds: null }
  if (failure !== undefined) {
    if (onError === 'ignore') return null
    const message = evidence(
      `Guard '${name}' failed: ${failure}. A guard that fails may have missed something, so the run stops; mend it, or set its onError to 'ignore'.`,
    )
    return { ...common, action: 'halt', message, evidence: evidence(`${name}: ${failure}`) }
  }
  switch (said?.action) {
    case 'nudge':
      return { ...common, ...said, evidence: seen(name, fact, null) }
    case 'block':
      return {
        ...common,
        ...said,
        message: `Not executed: ${said.message}`,
        evidence: seen(name, fact, said.callIds),
      }
    case 'halt':
      return {
        ...common,
        action: 'halt',
        message: `Guard '${name}' stopped the run: ${said.message}`,
        evidence: said.evidence === null ? seen(name, fact, null) : evidence(`${name}: ${said.evidence}`),
      }
    default:
      return null
  }
}

/** The calls that a verdict was about. */
function seen(name: string, fact: GuardFact, callIds: readonly string[] | null): string {
  const calls = fact.type === 'calls' ? fact.calls : fact.results
  const meant = calls.filter(({ id }) => callIds === null || callIds.includes(id))
  return evidence(`${name}: ${meant.map((call) => `${call.name}(${shown(call.argumentsText)})`).join(', ')}`)
}
