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
  const { guardrails, steps, attempt, rateLimits } = context
  const { recoveries, reprompts, emptyRetries, outputRepairs } = context
  const watching = isWatching(context.config.guardrails)
  return JSON.stringify([
    getNumber(context.config),
    getNumber(context.features),
    [
      steps,
      attempt,
      attempt > 1 && context.backOffUntil,
      rateLimits,
      recoveries,
      reprompts,
      emptyRetries,
      outputRepairs,
      context.callCounts,
    ],
    [context.state, context.reason, context.lastBatchFailed, context.pausing],
    [context.deadline, context.timeLeft, findBudgetReason(context), isConcluding(context), context.wakeAt],
    [
      context.loaded.length,
      context.retrieved !== null,
      context.pendingAnswer !== null,
      context.unemittedStep !== null,
      listUnclearedInput(context).length,
    ],
    [context.steering.length > 0, context.inbox.length > 0, context.verdict?.guard, context.verdict?.onHalt],
    context.plan && [context.plan.step - steps, context.plan.tools],
    context.speaker,
    context.grants?.map(({ id, uses, until }) => [id, uses, until]),
    context.refusals && [context.refusals, context.resends],
    context.skills.map(({ name, allowedTools }) => [name, allowedTools]),
    context.calls.map((call) => [
      (watching ||
        context.skills.length > 0 ||
        context.plan?.tools ||
        context.tools[call.name]?.endsRun ||
        context.tools[call.name]?.handoff) &&
        call.name,
      call.skill,
      call.handoff?.to,
      call.needs,
      call.started,
      call.unscreenedResult,
      call.unscreenedArguments,
      call.decisions && [
        findStrictest(call),
        listApprovers(call),
        call.undecided,
        call.client,
        call.approved,
        call.approvals?.map(({ by }) => by?.id),
      ],
      call.unloaded,
      (call.approved || call.ungranted || call.grant !== undefined) && [
        call.approved,
        call.approvals?.map(({ by }) => by?.id),
        call.grant,
        call.ungranted,
      ],
      call.expiresAt !== undefined && [call.expiresAt, getExpiry(call, context.expiry), call.approved],
      isInDoubt(context, call),
      call.wakeAt,
      call.result?.wakeAt,
      call.questions?.map(({ needs, fromTool, answer, expiresAt }) => [
        needs,
        fromTool,
        answer !== undefined,
        expiresAt,
      ]),
      call.result && (watching ? [call.result.status, call.result.content] : call.result.status === 'ok'),
    ]),
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
