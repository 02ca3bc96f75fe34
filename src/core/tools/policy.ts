import {
  type Approvers,
  type DecisionKind,
  type Expiry,
  expiryEnds,
} from '../../../machines/agent/approvals.js'
import type { ModelOutput } from '../../../machines/agent/model-response.js'
import type { Principal } from '../../../machines/agent/principal.js'
import type { CallAbort } from '../base/abort.js'
import { parsePrincipal } from '../sessions/principal.js'
import { configError } from '../base/errors.js'
import { isObject, maxWaitMs } from '../base/values.js'

/** A call for a policy to decide on. */
export interface PolicyCall {
  tool: {
    name: string
    /** A `hosted` tool is run by the provider, and a `client` tool by the caller of the run. */
    kind: 'function' | 'client' | 'hosted' | 'sub_agent' | 'handoff' | 'skill'
    readOnly: boolean
    idempotent: boolean
  }
  /** The validated arguments, copied for each policy. For a hosted tool, the arguments as parsed JSON. */
  // oxlint-disable-next-line no-explicit-any -- its type depends on the tool
  arguments: any
  /** The app's context object. */
  // oxlint-disable-next-line no-explicit-any -- the app knows its type
  context: any
  session: { id: string; tags: Readonly<Record<string, string>> }
  /** The latest author of the run's messages. Absent if no sender is known. */
  requester?: Principal
  /** The names of the sub-agents that lead to the call, outermost first. */
  path: readonly string[]
  callId: string
  /** Aborts at the timeout, or when the run stops. */
  signal: AbortSignal
}

/**
 * The decision on a call. The model reads the reason for a denial. People read the reason for a question.
 */
export type PolicyDecision =
  | DecisionKind
  | ({
      decision: DecisionKind
      /** The rule that applied. Stored in the log. */
      rule?: string
      /** The reason for the decision. Truncated to 1,000 characters. */
      reason?: string
      /** Who may approve, if the decision is `ask`. */
      approvers?: Approvers
    } & Expiry)

/**
 * Decides which calls run, which ask for approval, and which are denied. Each call is decided once, with the arguments
 * with which it will run. The decision is logged, so resumes and replays do not ask again. A policy that throws, times
 * out or returns anything else denies the call.
 *
 * @example
 * const policy: Policy = {
 *   id: 'payments',
 *   decide: ({ tool, arguments: { amount } }) => (tool.name !== 'transfer' || amount < 100 ? 'allow' : 'ask'),
 * }
 */
export interface Policy {
  /** The id of the policy, 1 to 100 characters. Stored in the log. */
  id: string
  decide: (call: PolicyCall) => PolicyDecision | Promise<PolicyDecision>
  /** Timeout for a decision in milliseconds. Defaults to 5,000. */
  timeoutMs?: number
  /** Whether decisions are only recorded and have no effect. Defaults to false. */
  shadow?: boolean
}

export type PreparedCall = Omit<ModelOutput['calls'][number], 'id'>

/** The policies of a run, and the part of their input that is the same for all of the run's calls. */
export interface PolicyScope {
  policies: readonly Policy[]
  call: Pick<PolicyCall, 'context' | 'session' | 'requester' | 'path'>
  /** Aborts when the run stops. */
  abort: AbortSignal | CallAbort
}

/** @throws {ConfigError} `invalid_config`, naming the key */
export function checkPolicies(option: unknown): readonly Policy[] {
  const policies = option === undefined ? [] : Array.isArray(option) ? (option as unknown[]) : [option]
  const ids = new Set<unknown>()
  for (const [i, policy] of policies.entries()) {
    const at = Array.isArray(option) ? `policy[${i}]` : 'policy'
    const refuse = (key: string, rule: string): never => {
      throw configError(`${at}${key && `.${key}`} ${rule}`, `${at}${key && `.${key}`}`)
    }
    if (!isObject(policy)) return refuse('', 'must be { id, decide, timeoutMs?, shadow? }.')
    const { id, decide, timeoutMs = 1, shadow = false, ...others } = policy
    if (typeof id !== 'string' || id.trim() === '' || id.length > 100)
      refuse('id', 'must be a string of 1 to 100 characters.')
    if (ids.has(id)) refuse('id', `'${String(id)}' is another policy's id.`)
    if (typeof decide !== 'function')
      refuse('decide', "must be a function that returns 'allow', 'ask' or 'deny'.")
    if (typeof timeoutMs !== 'number' || !(timeoutMs > 0 && timeoutMs <= maxWaitMs))
      refuse('timeoutMs', 'must be a number of milliseconds above 0.')
    if (typeof shadow !== 'boolean') refuse('shadow', 'must be true or false.')
    for (const key of Object.keys(others))
      refuse(key, 'is not a key of a policy. Use id, decide, timeoutMs and shadow.')
    ids.add(id)
  }
  return policies as Policy[]
}

/** Parses the terms of approval. Returns null if they are invalid or if nobody could meet them. */
export function parseApprovers(terms: unknown): Approvers | null {
  const { ids, roles, count = 1, notRequester = false, ...others } = isObject(terms) ? terms : { count: null }
  const isNames = (value: unknown): value is string[] | undefined =>
    value === undefined ||
    (Array.isArray(value) && value.length > 0 && value.every((name) => parsePrincipal(name) !== null))
  if (!isNames(ids) || !isNames(roles) || typeof notRequester !== 'boolean' || Object.keys(others).length > 0)
    return null
  if (!Number.isSafeInteger(count) || Number(count) < 1 || Number(count) > 100) return null
  if (ids && !roles && Number(count) > new Set(ids).size) return null
  return {
    ...(ids && { ids: [...ids] }),
    ...(roles && { roles: [...roles] }),
    ...(count !== 1 && { count: Number(count) }),
    ...(notRequester && { notRequester }),
  }
}

/** Parses a time limit. Returns the invalid key if there is one. */
export function parseExpiry({ expiresMs, onExpiry }: Record<string, unknown>): Expiry | keyof Expiry {
  const isTime = typeof expiresMs === 'number' && expiresMs >= 0 && expiresMs <= maxWaitMs
  if (expiresMs !== undefined && !isTime) return 'expiresMs'
  const end = expiryEnds.find((one) => one === onExpiry)
  if (onExpiry !== undefined && end === undefined) return 'onExpiry'
  return { ...(isTime && { expiresMs: Math.ceil(expiresMs) }), ...(end && { onExpiry: end }) }
}

/** @throws {ConfigError} `invalid_config`, naming the key */
export function checkApprovals(option: unknown): { approvers?: readonly Approvers[]; expiry?: Expiry } {
  const refuse = (key: string, rule: string): never => {
    throw configError(`${key} ${rule}`, key)
  }
  if (!isObject(option)) return refuse('approvals', 'must be { approvers?, expiresMs?, onExpiry? }.')
  const { approvers, expiresMs, onExpiry, ...others } = option
  for (const key of Object.keys(others)) refuse(`approvals.${key}`, 'is not a key of approvals.')
  const terms = approvers === undefined ? undefined : parseApprovers(approvers)
  if (terms === null)
    return refuse(
      'approvals.approvers',
      'must be { ids?, roles?, count?, notRequester? }: lists of names, and a count that does not exceed them.',
    )
  const expiry = parseExpiry({ expiresMs, onExpiry })
  if (expiry === 'expiresMs')
    return refuse('approvals.expiresMs', 'must be milliseconds from 0 (never) to 366 days.')
  if (expiry === 'onExpiry') return refuse('approvals.onExpiry', `must be one of ${expiryEnds.join(', ')}.`)
  return { ...(terms && { approvers: [terms] }), expiry }
}
