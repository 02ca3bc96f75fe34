import { fingerprintCall } from '../../guards/lib/fingerprint.js'
import { parseJsonOr } from '../../guards/lib/json.js'
import { isRecord } from '../../guards/lib/stored.js'
import type { Approval } from './approvals.js'
import { type BatchCall, getFirstFingerprint } from './batch-calls.js'

/** A value that an argument must have. Texts are compared exactly. */
export type GrantValue = string | number | boolean | null

/**
 * Allows an argument to have this value, one of these values, or a number in this range.
 * @example
 * const upTo500: GrantMatcher = { max: 500 }
 */
export type GrantMatcher = GrantValue | readonly GrantValue[] | { min?: number; max?: number }

/** The limits of a grant. */
export interface GrantLimits {
  /**
   * The allowed values by argument name. Other arguments may have any value. If absent, the grant covers exactly the
   * arguments of the approved call.
   */
  when?: Readonly<Record<string, GrantMatcher>>
  /** The time when the grant ends, in milliseconds since the epoch. If absent, the grant does not end. */
  until?: number
  /** How many calls may start. Unlimited if absent. */
  uses?: number
}

/** A submitted grant. */
export interface NewGrant extends GrantLimits {
  id: string
  /** Digest of the tool's description and schema. */
  digest?: string
}

/**
 * An approval for later calls to one tool, within limits.
 * @example
 * run.events$.subscribe((event) => {
 *   if (event.type !== 'grant_changed') return
 *   const { tool, givers }: Grant = event.grant
 *   console.log(tool, event.change, givers)
 * })
 */
export interface Grant extends NewGrant {
  tool: string
  /** The handoff name of the agent that has the tool. Absent for the session's first agent. */
  speaker?: string
  /** The approved arguments as JSON text, for a grant without `when`. */
  arguments?: string
  /** The people who gave the grant. They must satisfy the approver terms of each call. */
  givers: readonly Approval[]
  /** How many more calls may start. Unlimited if absent. */
  uses?: number
}

export const isGrantOver = ({ uses, until }: Grant, now: number): boolean =>
  uses === 0 || (until !== undefined && now >= until)

/** Without `when`, the arguments must equal the approved ones. Key order and whitespace make no difference. */
export function allowsArguments({ when, tool, arguments: approved }: Grant, call: BatchCall): boolean {
  if (when) return matchesAll(when, call.arguments)
  return approved !== undefined && fingerprintCall(tool, approved) === getFirstFingerprint(call)
}

/** Compares own keys of parsed JSON, because keys such as `__proto__` are inherited by every object. */
function matchesAll(when: Readonly<Record<string, GrantMatcher>>, text: string): boolean {
  const values = parseJsonOr(text, null)
  if (!isRecord(values)) return false
  return Object.entries(when).every(
    ([name, matcher]) => Object.hasOwn(values, name) && matches(matcher, values[name]),
  )
}

function matches(matcher: GrantMatcher, value: unknown): boolean {
  if (Array.isArray(matcher)) return matcher.includes(value as GrantValue)
  if (!isRecord(matcher)) return matcher === value
  const { min = -Infinity, max = Infinity } = matcher as { min?: number; max?: number }
  return typeof value === 'number' && value >= min && value <= max
}
