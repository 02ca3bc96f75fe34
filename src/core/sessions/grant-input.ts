import { digest } from '../../../guards/lib/fingerprint.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { isApproved, type Question } from '../../../machines/agent/approvals.js'
import type { AgentContext, ControlEvent } from '../../../machines/agent/context.js'
import type { GrantLimits, GrantMatcher, NewGrant } from '../../../machines/agent/grant.js'
import { findAskedCall, getQuestionTerms, withApproval } from '../../../machines/agent/questions.js'
import { readTime } from '../base/clock.js'
import { inputError } from '../base/errors.js'
import { createId } from '../base/platform.js'
import { isObject } from '../base/values.js'
import type { JsonObject } from '../../../machines/agent/json.js'

/**
 * The limits of a grant. `until` is a Date, or milliseconds since the epoch.
 * @example
 * const tenSmallOnes: GrantOptions = { when: { to: 'acme', amount: { max: 500 } }, uses: 10 }
 */
export type GrantOptions = Omit<GrantLimits, 'until'> & { until?: Date | number }

/** A grant with a new id, as the log stores it. @throws {UsageError} `invalid_input`, naming the key */
export function readGrant(options: unknown, where: string, now = -Infinity): NewGrant {
  const invalid = (key: string, rule: string) => inputError(`${where}: ${rule}.`, key)
  if (!isObject(options)) throw invalid('grant', 'grant must be an object with when, until or uses')
  const { when, until, uses, ...others } = options
  const [strange] = Object.keys(others)
  if (strange !== undefined) throw invalid(strange, `a grant has no key '${strange}'`)
  if (when !== undefined && !isObject(when)) throw invalid('when', 'when must map arguments to values')
  const bad = Object.keys(when ?? {}).find((name) => !isMatcher(when?.[name]))
  if (bad !== undefined)
    throw invalid(`when.${bad}`, `when.${bad} must be a value, a list of values, or a numeric { min, max }`)
  const end = until === undefined ? Infinity : readTime(until)
  if (end === null || end <= now) throw invalid('until', 'until must be a Date in the future')
  if (uses !== undefined && !(Number.isSafeInteger(uses) && (uses as number) > 0))
    throw invalid('uses', 'uses must be a whole number, at least 1')
  return {
    id: createId(),
    ...(when && { when: structuredClone(when) as NonNullable<GrantLimits['when']> }),
    ...(end < Infinity && { until: end }),
    ...(uses !== undefined && { uses: uses as number }),
  }
}

const isValue = (value: unknown): boolean =>
  value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)

function isMatcher(value: unknown): value is GrantMatcher {
  if (Array.isArray(value)) return value.every(isValue)
  if (!isObject(value)) return isValue(value)
  const { min, max, ...others } = value
  const limits = [min, max].filter((limit) => limit !== undefined)
  return (
    Object.keys(others).length === 0 &&
    limits.length > 0 &&
    limits.every(Number.isFinite) &&
    !((min as number) > (max as number))
  )
}

type Approve = Extract<ControlEvent, { type: 'APPROVE' }>

/** @throws {UsageError} `invalid_input` if an approval may not give the grant that it contains */
export function checkApprovalGrants(context: AgentContext, event: Approve): void {
  const asked = findAskedCall(context, event.callId)
  const { call, question } = asked ?? {}
  const why =
    question || !call || call.hosted || call.client
      ? 'grants cover only calls that this agent runs itself. Approve it without a grant'
      : isDecided(getQuestionTerms(context, { call }), event, context)
        ? context.features.callShields && event.arguments !== undefined && event.grant?.when === undefined
          ? 'a grant for edited arguments needs when, because shields have not screened them'
          : null
        : 'more people must approve the call, and only the last of them can give a grant'
  if (why !== null) throw inputError(`The grant for call '${event.callId}': ${why}.`, 'grant')
}

const isDecided = (terms: Question, event: Approve, { requesters }: AgentContext): boolean =>
  isApproved(withApproval(terms, event), requesters)

interface DescribedTool {
  description: string
  parameters: JsonObject
}

/** If the tool changes, its calls need approval again. */
export function digestTool({ description, parameters }: DescribedTool): string {
  return digest(JSON.stringify([description, parameters])).slice(0, 16)
}

export function withToolDigest(grant: NewGrant, tool: DescribedTool | undefined): NewGrant {
  return tool && grant.digest === undefined ? { ...grant, digest: digestTool(tool) } : grant
}

/** @throws {UsageError} `invalid_input` */
export function toGrantEvent(
  grant: unknown,
  where: string,
  now?: number,
): Extract<ControlEvent, { type: 'GRANT' }> {
  const { tool, ...limits } = isObject(grant) ? grant : {}
  if (typeof tool !== 'string' || tool === '')
    throw inputError(`${where}: a grant needs its tool's name.`, 'tool')
  if (limits.when === undefined)
    throw inputError(`${where}: a grant without a call needs when. when: {} allows any arguments.`, 'when')
  return { type: 'GRANT', tool, grant: readGrant(limits, where, now) }
}

export function toRevokeEvent(
  target:
    | { grant: string }
    | { callId: string; fingerprint?: string | undefined; messageId?: string | undefined },
): Extract<ControlEvent, { type: 'REVOKE' }> {
  if ('grant' in target) return { type: 'REVOKE', grant: target.grant }
  const { callId, fingerprint, messageId } = target
  return { type: 'REVOKE', callId, ...omitUndefined({ fingerprint, messageId }) }
}

/** Whether a message also concerns later runs. */
export function outlivesRun(event: ControlEvent | null): boolean {
  return event?.type === 'GRANT' || (event?.type === 'REVOKE' && 'grant' in event)
}
