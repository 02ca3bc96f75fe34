import { findStrictest, type PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { ToolCall } from '../../../machines/agent/messages.js'
import { attachSignal, runWithTimeout } from '../base/abort.js'
import type { Clock } from '../base/clock.js'
import { isObject } from '../base/values.js'
import { parseArguments, readJson } from './parse-arguments.js'
import {
  parseApprovers,
  parseExpiry,
  type PolicyCall,
  type PolicyScope,
  type PreparedCall,
} from './policy.js'
import type { Tool } from './tool.js'
import type { ToolSet } from './tool-set.js'

export async function prepareByPolicies(
  call: ToolCall,
  tools: ToolSet,
  own: PreparedCall | Promise<PreparedCall>,
  scope: { policies: PolicyScope; clock: Clock },
): Promise<PreparedCall> {
  const [prepared, verdicts] = await Promise.all([own, decideCall(call, tools, scope)])
  if (verdicts === null || prepared.approvalTimedOut) return prepared
  const decisions = [...(prepared.decisions ?? []), ...verdicts]
  const strictest = findStrictest({ decisions })
  if (strictest === 'deny') return { needs: 'nobody', decisions }
  if (strictest !== 'ask') return { ...prepared, decisions }
  return { needs: 'approval', decisions, ...(prepared.needs === 'client' && { client: true }) }
}

/** The decisions of the policies. Null for a call that cannot run. */
async function decideCall(
  { id: callId, hosted, function: { name, arguments: text } }: ToolCall,
  tools: ToolSet,
  { policies, clock }: { policies: PolicyScope; clock: Clock },
): Promise<PolicyVerdict[] | null> {
  if (hosted) {
    const tool = { name, kind: 'hosted', readOnly: false, idempotent: false } as const
    return askPolicies(policies, { tool, callId }, () => readJson(text), clock)
  }
  const known = tools.get(name)
  if (known === undefined || !(await parseArguments(known, text)).ok) return null
  const { readOnly, idempotent } = known
  const tool = { name, kind: getKind(known), readOnly, idempotent }
  const read = async (): Promise<unknown> => {
    const parsed = await parseArguments(known, text)
    return parsed.ok ? parsed.input : undefined
  }
  return askPolicies(policies, { tool, callId }, read, clock)
}

function getKind({ client, delegate, handoff, skill }: Tool): PolicyCall['tool']['kind'] {
  if (client) return 'client'
  if (delegate) return 'sub_agent'
  if (handoff) return 'handoff'
  return skill ? 'skill' : 'function'
}

/** Reads a decision in the log's format. Returns null if it is invalid. */
export function readDecision(value: unknown): Omit<PolicyVerdict, 'policy'> | null {
  const { decision, rule, reason, approvers, expiresMs, onExpiry, ...others } = isObject(value)
    ? value
    : { decision: value }
  const isText = (text: unknown): text is string | undefined => text === undefined || typeof text === 'string'
  if (decision !== 'allow' && decision !== 'ask' && decision !== 'deny') return null
  if (!isText(rule) || !isText(reason) || Object.keys(others).length > 0) return null
  const terms = approvers === undefined ? undefined : parseApprovers(approvers)
  const expiry = parseExpiry({ expiresMs, onExpiry })
  if (terms === null || typeof expiry === 'string') return null
  if (decision !== 'ask' && (terms || Object.keys(expiry).length > 0)) return null
  return {
    decision,
    ...(terms && { approvers: terms }),
    ...expiry,
    ...(rule !== undefined && { rule: rule.slice(0, 200) }),
    ...(reason !== undefined && { reason: reason.slice(0, 1000) }),
  }
}

/** Consults all policies about a call in parallel. `readArguments` creates a copy of the arguments for each policy. */
function askPolicies(
  { policies, call: shared, abort: outer }: PolicyScope,
  call: Pick<PolicyCall, 'tool' | 'callId'>,
  readArguments: () => unknown,
  clock: Clock,
): Promise<PolicyVerdict[]> {
  return Promise.all(
    policies.map(({ id: policy, decide, timeoutMs = 5_000, shadow }) => {
      const toVerdict = (decision: Omit<PolicyVerdict, 'policy'>): PolicyVerdict => ({
        policy,
        ...decision,
        ...(shadow && { shadow }),
      })
      const fail = (rule: string): PolicyVerdict => toVerdict({ decision: 'deny', rule, failed: true })
      const stop = (): PolicyVerdict => fail('policy_timeout')
      const limit = { what: 'The policy', timeoutMs, clock, outer, timedOut: stop, stopped: stop }
      return runWithTimeout(limit, async (abort) => {
        try {
          const question = { ...shared, ...call, arguments: await readArguments() }
          const decision = readDecision(await decide(attachSignal(question, abort)))
          // Without a known requester, nobody could approve.
          const isOpen = !decision?.approvers?.notRequester || shared.requester !== undefined
          return decision && isOpen ? toVerdict(decision) : fail('policy_invalid')
        } catch {
          return fail('policy_error')
        }
      })
    }),
  )
}
