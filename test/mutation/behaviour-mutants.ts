import { agentMachine } from '../../machines/agent.machine.js'
import { isRunnable } from '../../machines/agent/batch-calls.js'
import { toAction } from '../../machines/agent/update-action.js'
import * as conditions from '../../machines/agent/conditions.js'
import { type AgentContext, type AgentMachineEvent, getEventTime } from '../../machines/agent/context.js'
import { isNewRefusal, isRefusedQuestion, readRefusal } from '../../machines/agent/refusals.js'
import { findBudgetWait } from '../../machines/agent/actions/sleep.js'
import { addGrant, readNewGrant } from '../../machines/agent/grants.js'
import { findOwnApproval, withoutApproval } from '../../machines/agent/questions.js'
import { addUsage } from '../../machines/agent/usage.js'
import { isNearBudget } from '../../machines/agent/budget-totals.js'
import type { Mutant } from './config-mutants.js'

interface Scope {
  context: AgentContext
  event: AgentMachineEvent
}

/** Guards with slightly wrong decisions, as a careless change would produce. */
const guards: Record<
  string,
  Partial<Record<keyof typeof conditions, (scope: Scope, params: never) => boolean>>
> = {
  'retries without limit': {
    mayRetry: ({ event }) =>
      kindOf(event) === 'transient' || kindOf(event) === 'rate_limit' || kindOf(event) === 'incomplete',
  },
  'retries what cannot be mended': {
    mayRetry: ({ context }) => context.attempt < context.config.retry.maxAttempts,
  },
  'never retries': { mayRetry: () => false },
  'ends at content that is refused': { maySendWithout: () => false },
  'sends a request again for a refusal that it knows': {
    maySendWithout: ({ event }) => {
      const refusal = readRefusal(event)
      return refusal !== null && !isRefusedQuestion(refusal)
    },
  },
  'answers without the question': {
    maySendWithout: ({ context, event }) => {
      const refusal = readRefusal(event)
      return refusal !== null && isNewRefusal(context.refusals ?? [], refusal)
    },
  },
  'counts rate limits with the other failures': {
    mayRetry: ({ context, event }) =>
      kindOf(event) !== 'fatal' && context.attempt < context.config.retry.maxAttempts,
  },
  'allows one step too many': {
    isAtStepCap: ({ context }) => context.steps > (context.config.limits.maxSteps ?? Infinity),
    concludesAtStepCap: ({ context }) =>
      context.config.limits.onLimit === 'conclude' &&
      context.steps > (context.config.limits.maxSteps ?? Infinity),
  },
  'never sleeps': { isAsleep: () => false },
  'sleeps on after its time': { isAsleep: ({ context }) => context.wakeAt !== null },
  'is woken by a resume for later': { isForLater: () => false },
  'takes every resume of a run that sleeps for one for later': {
    isForLater: ({ context }) => context.reason === 'sleeping',
  },
  'ends where it could wait for a shared budget': { waitsForBudget: () => false },
  'knows no reserve for last words': { concludesNearBudget: () => false },
  'says last words near every budget': { concludesNearBudget: ({ context }) => isNearBudget(context) },
  'ends in ERROR what its budget has stopped': { isStoppedByBudget: () => false },
  'allows one step too few': {
    isAtStepCap: ({ context }) => context.steps + 1 >= (context.config.limits.maxSteps ?? Infinity),
  },
  'knows no budget': {
    isBudgetSpent: () => false,
    isOverBudget: () => false,
    isSpentByFailure: () => false,
  },
  'checks the budget only before a request': { isOverBudget: () => false },
  'executes the batch that crosses the budget': {
    isOverBudget: ({ context, ...scope }) =>
      context.response !== 'calls' && conditions.isOverBudget({ context, ...scope }),
  },
  'lets the deadline pass while the run rests': { isClockRunning: () => true },
  'forgets the deadline': { isPastDeadline: () => false },
  'executes truncated calls': {
    hasCalls: ({ context }) => context.response === 'calls' || context.response === 'truncatedCalls',
  },
  'continues a truncated answer forever': {
    mayContinue: ({ context }) => context.response === 'truncated' || context.response === 'truncatedCalls',
  },
  'never continues a truncated answer': { mayContinue: () => false },
  'asks forever after an empty answer': {
    mayRetryEmptyAnswer: ({ context }) => context.response === 'empty',
  },
  'takes an empty answer for an end': { isEmpty: () => false },
  'needs no approval': {
    hasRunnableCalls: ({ context }) => context.calls.some(({ result }) => result === undefined),
    hasCallsToApprove: () => false,
  },
  'forgets the calls of the client': { hasClientCalls: () => false },
  'runs after the first of two approvals': { isLastApproval: (scope) => conditions.awaitsApproval(scope) },
  'starts calls whose time has passed': {
    hasLateCalls: () => false,
    hasRunnableCalls: ({ context }) => context.calls.some(isRunnable),
  },
  'never cancels when a question expires': { cancelsOnExpiry: () => false },
  'waits for approvals that came': { isLastApproval: () => false },
  'takes an approval of any call': {
    awaitsApproval: ({ event }) => 'callId' in event,
  },
  'takes results of nobody’s call': { isOpenCall: () => true },
  'asks the model about a result that is the answer': {
    isAnswered: () => false,
    hasResultToClear: () => false,
  },
  'never asks about a step': { asksForPlan: () => false },
  'ends with any result': {
    isAnswered: ({ context }) => context.calls.some(({ result }) => result?.status === 'ok'),
  },
  'lets no shield see a result that is the answer': { hasResultToClear: () => false },
  'never knows the last result': { isLastResult: () => false },
  'does not see what a shield says': { isBlocked: () => false },
  'does not see a halt': { isHalted: () => false },
  'never pauses on a halt': { pausesOnHalt: () => false },
  'never concludes': { concludesOnHalt: () => false, concludesAtStepCap: () => false },
  'ends in ERROR what the step limit has stopped': { isStoppedByCap: () => false },
  'goes on after the cap of tool calls': { isOverCallCap: () => false },
  'never concludes at the cap of tool calls': { concludesAtCallCap: () => false },
  'ends before steering is heard': { hasSteering: () => false },
  'forgets that it is interactive': { isInteractive: () => false },
  'ignores the revocation of a grant': { revokesGrant: () => false },
  'ignores the revocation of an approval': { revokesApproval: () => false },
  'starts no waiting call when it takes a grant': { startsCalls: () => false },
  breaks: {
    mayRetry: () => {
      throw new TypeError('undefined is not an object')
    },
  },
}

/** Actions with slightly wrong writes. */
const actions: Record<string, Partial<Record<keyof typeof agentMachine.implementations.actions, unknown>>> = {
  'takes an incomplete answer for a whole one': {
    noteFailure: toAction((context, event) =>
      kindOf(event) === 'incomplete' ? { response: 'answer', steps: context.steps + 1 } : { error: failed },
    ),
  },
  'does not count what a failed attempt has cost': { noteFailure: toAction(() => ({ error: failed })) },
  'bills a failed attempt twice': {
    noteFailure: toAction((context, event) => {
      const usage = 'error' in event ? event.error.usage : null
      const twice = usage && addUsage(usage, usage)
      return {
        error: failed,
        ...(twice && {
          usage: { run: addUsage(context.usage.run, twice), session: addUsage(context.usage.session, twice) },
        }),
      }
    }),
  },
  'waits for no time between attempts': {
    scheduleRetry: toAction((context) => ({ attempt: context.attempt + 1, backOffUntil: 0 })),
  },
  'takes every failure for one of its own': { setFailureReason: toAction(() => ({ reason: 'internal' })) },
  'takes every failure for one of the model': {
    setFailureReason: toAction(() => ({ reason: 'provider_error' })),
  },
  'takes every end for a whole answer': { setAnswerReason: toAction(() => ({ reason: 'end_turn' })) },
  'takes every pause for one that somebody wants': { setPauseReason: toAction(() => ({ reason: 'paused' })) },
  'takes every budget for that of tokens': { setBudgetReason: toAction(() => ({ reason: 'token_budget' })) },
  'takes every cap for that of steps': { setCapReason: toAction(() => ({ reason: 'max_steps' })) },
  'sleeps until the first date that it reads': {
    noteSleep: toAction((context) => {
      const [first] = context.calls.flatMap(({ result }) => result?.wakeAt ?? [])
      return first === undefined ? undefined : { wakeAt: first }
    }),
  },
  'forgets what its sub-agents sleep for': {
    noteSleep: toAction(({ calls }) => {
      const dates = calls.flatMap(({ result }) => result?.wakeAt ?? [])
      return dates.length > 0 ? { wakeAt: Math.max(...dates) } : undefined
    }),
  },
  'forgets a resume for later': { noteWakeTime: toAction(() => undefined) },
  'puts a run off without a reason': {
    postpone: toAction((_context, event) =>
      event.type === 'RESUME' ? { wakeAt: event.at ?? 0 } : undefined,
    ),
  },
  'waits for a shared budget without a date': { sleepForBudget: toAction(() => undefined) },
  'waits for a shared budget until the first date': {
    sleepForBudget: toAction(({ wakeAt }, event) => ({ wakeAt: wakeAt ?? findBudgetWait(event) })),
  },
  'takes a wait for a budget for sleep': {
    setPauseReason: toAction(({ verdict, pausing, wakeAt }) =>
      verdict === null && !pausing && wakeAt !== null
        ? { reason: 'sleeping' as const }
        : { reason: verdict?.guard ?? ('paused' as const), wakeAt: null },
    ),
  },
  'takes every reserve for that of tokens': { setNearReason: toAction(() => ({ reason: 'token_budget' })) },
  'sleeps again when it was woken': { forgetSleep: toAction(() => undefined) },
  'calls every sleep a pause': {
    setPauseReason: toAction(({ verdict }) => ({ reason: verdict?.guard ?? 'paused' })),
  },
  'lets a pause end by the time': {
    setPauseReason: toAction(({ verdict, wakeAt }) => ({
      reason: verdict?.guard ?? (wakeAt === null ? 'paused' : 'sleeping'),
    })),
  },
  'announces a result twice': {
    recordResult: toAction((context, event, tell) => {
      if (event.type !== 'TOOL_RESULT') return undefined
      const { callId, result } = event
      const emitted = {
        type: 'tool_result',
        callId,
        name: '',
        status: result.status,
        content: result.content,
        durationMs: 0,
      }
      tell(emitted as never)
      tell(emitted as never)
      return { calls: context.calls.map((call) => (call.id === callId ? { ...call, result } : call)) }
    }),
  },
  'forgets what a call goes on from': { noteHandle: toAction(() => undefined) },
  'takes the handle of a call for one of all calls': {
    noteHandle: toAction(({ calls }, event) =>
      event.type === 'HANDLE_SAVED'
        ? { calls: calls.map((call) => ({ ...call, handle: event.handle })) }
        : undefined,
    ),
  },
  'replaces results that it has': {
    closeStartedCalls: toAction((context) => ({
      calls: context.calls.map((call) => ({
        ...call,
        result: { status: 'interrupted' as const, content: '', durationMs: 0 },
      })),
    })),
  },
  'puts results in the order in which they came': {
    settleBatch: toAction((context) => {
      if (context.calls.length === 0) return undefined
      const results = context.calls.map((call) => ({
        role: 'tool' as const,
        id: `result of ${call.id} at ${context.lastMessageNumber}`,
        createdAt: 0,
        tool_call_id: call.id,
        content: call.result?.content ?? 'Closed.',
      }))
      return { calls: [], messages: [...context.messages, ...results.reverse()] }
    }),
  },
  'hands over before the batch is over': {
    noteHandoff: toAction((_context, event, tell) => {
      if (event.type !== 'HANDED_OFF') return undefined
      const { callId, to, tools } = event
      tell({ type: 'handed_off', callId, from: null, to })
      return { speaker: to, tools }
    }),
  },
  'forgets who it is handed to': { noteHandoff: toAction(() => undefined) },
  'hands over to one who has no tools': {
    noteHandoff: toAction((context, event) => {
      if (event.type !== 'HANDED_OFF') return undefined
      const { callId, to } = event
      const handoff = { to, tools: context.tools }
      return { calls: context.calls.map((call) => (call.id === callId ? { ...call, handoff } : call)) }
    }),
  },
  'starts calls that wait for an approval': {
    markStarted: toAction((context) => ({
      calls: context.calls.map((call) => ({ ...call, started: true as const })),
    })),
  },
  'approves all calls at once': {
    approve: toAction((context) => ({
      calls: context.calls.map((call) => ({ ...call, needs: 'nobody' as const })),
    })),
  },
  'takes grants without their limits': {
    takeGrant: toAction((context, event) => {
      const grant = readNewGrant(context, event)
      if (grant === undefined) return undefined
      const { uses: _uses, until: _until, ...unlimited } = grant
      return { grants: addGrant(context, unlimited, getEventTime(event)) }
    }),
  },
  'lets an older grant start a call whose approval was revoked': {
    revokeApproval: toAction((context, event) => {
      const own = findOwnApproval(context, event)
      const calls = own && withoutApproval(context.calls, own)
      return calls && { calls: calls.map(({ ungranted: _ungranted, ...call }) => call) }
    }),
  },
  'writes a Date into the context': {
    notePause: toAction(() => ({ pausing: true, continuedText: new Date(0) as unknown as string })),
  },
  'says twice that it ended': {
    finish: toAction<{ state: never }>((context, _event, tell, { state }) => {
      tell({ type: 'state_changed', from: context.state, to: state, reason: context.reason })
      tell({ type: 'run_ended', state, reason: context.reason ?? 'internal' })
      tell({ type: 'run_ended', state, reason: context.reason ?? 'internal' })
      return { state }
    }),
  },
  'resets every guard after a halt': {
    forgetHalt: toAction(() => ({ verdict: null, error: null, pausing: false, guardrails: null as never })),
  },
  'takes a reply without new counters': {
    takeReply: toAction((_context, event) =>
      event.type === 'REPLY' ? { inbox: event.messages } : undefined,
    ),
  },
  throws: {
    queueSteering: toAction(() => {
      throw new TypeError('undefined is not an object')
    }),
  },
}

/** Faults inside guards and actions, which the chart does not show. */
export function behaviourMutants(): Mutant[] {
  return [
    ...Object.entries(guards).map(([name, changed]) => ({
      name: `a machine that ${name}`,
      machine: agentMachine.provide({ guards: changed as never }),
    })),
    ...Object.entries(actions).map(([name, changed]) => ({
      name: `a machine that ${name}`,
      machine: agentMachine.provide({ actions: changed as never }),
    })),
  ]
}

const failed = { code: 'internal', message: 'It failed.', recoverable: false }

function kindOf(event: AgentMachineEvent): string {
  return 'error' in event ? event.error.kind : ''
}
