import { findStrictest, getExpiry, listApprovers } from '../../../machines/agent/approvals.js'
import { expectArgument, getOrCreate, objectRule } from '../../core/base/values.js'
import type { SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import { isInDoubt } from '../../../machines/agent/call-state.js'
import { listUnclearedInput } from '../../../machines/agent/mask-uncleared.js'
import { findBudgetReason, isNearBudget } from '../../../machines/agent/budget-totals.js'
import { isWatching } from '../../../guards/state.js'

export const agentSnapshot = objectRule(['context', 'value'], 'a snapshot of the agent machine')

/**
 * Serializes the parts of an agent's state that determine its future: everything that the chart's guards read, without
 * values that only grow.
 *
 * @example
 * checkInvariants(agentMachine, agentInvariants, { ...agentSpace({ only: ['watching progress'], maxSteps: 1 }), serializeState: serializeAgentState })
 */
export function serializeAgentState(snapshot: SnapshotFrom<typeof agentMachine>): string {
  expectArgument('serializeAgentState(snapshot)', snapshot, agentSnapshot)
  const { context } = snapshot
  const { config, features, guardrails, steps, attempt, plan, skills, tools, verdict } = context
  const { recoveries, reprompts, emptyRetries, outputRepairs, callCounts } = context
  const watching = isWatching(config.guardrails)
  return JSON.stringify([
    getNumber(config),
    getNumber(features),
    [steps, attempt, attempt > 1 && context.backOffUntil, context.rateLimits],
    [recoveries, reprompts, emptyRetries, outputRepairs, callCounts],
    [context.state, context.reason, context.lastBatchFailed, context.pausing],
    [context.deadline, context.timeLeft, findBudgetReason(context), isConcluding(context), context.wakeAt],
    [context.loaded.length, context.retrieved !== null, context.pendingAnswer !== null],
    [context.unemittedStep !== null, listUnclearedInput(context).length],
    [context.steering.length > 0, context.inbox.length > 0, verdict?.guard, verdict?.onHalt],
    plan && [plan.step - steps, plan.tools],
    context.speaker,
    context.grants?.map(({ id, uses, until }) => [id, uses, until]),
    context.refusals && [context.refusals, context.resends],
    skills.map(({ name, allowedTools }) => [name, allowedTools]),
    context.calls.map((call) => {
      const { name, approved, grant, ungranted, expiresAt, result } = call
      const voters = call.approvals?.map(({ by }) => by?.id)
      const { endsRun, handoff } = tools[name] ?? {}
      return [
        (watching || skills.length > 0 || plan?.tools || endsRun || handoff) && name,
        [call.skill, call.handoff?.to, call.needs, call.started, call.unloaded],
        [call.unscreenedResult, call.unscreenedArguments],
        call.decisions && [findStrictest(call), listApprovers(call), call.undecided, call.client],
        (call.decisions || approved || ungranted || grant !== undefined) && [approved, voters],
        [grant, ungranted],
        expiresAt !== undefined && [expiresAt, getExpiry(call, context.expiry), approved],
        [isInDoubt(context, call), call.wakeAt, result?.wakeAt],
        call.questions?.map((one) => [one.needs, one.fromTool, one.answer !== undefined, one.expiresAt]),
        result && (watching ? [result.status, result.content] : result.status === 'ok'),
      ]
    }),
    watching && guardrails,
  ])
}

/** Whether the next request is the last one because of the budget. */
function isConcluding(context: AgentContext): boolean {
  return context.config.limits.onNearBudget === 'conclude' && isNearBudget(context)
}

const numbers = new WeakMap<object, number>()
let lastNumber = 0

/** Configurations never change within a run, so they can be compared by identity. */
function getNumber(value: object): number {
  return getOrCreate(numbers, value, () => ++lastNumber)
}
