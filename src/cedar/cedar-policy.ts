import { ConfigError } from '../core/base/errors.js'
import { loadPeer } from '../core/base/platform.js'
import { isObject } from '../core/base/values.js'
import type { Policy, PolicyCall, PolicyDecision } from '../core/tools/policy.js'

/** An entity in Cedar's JSON format. */
export interface CedarEntity {
  uid: { type: string; id: string }
  attrs: object
  parents: { type: string; id: string }[]
}

/** The functions of `@cedar-policy/cedar-wasm` that are used. */
export interface CedarEngine {
  checkParsePolicySet(policies: object): { type: string; errors?: { message: string }[] }
  isAuthorized(call: object): {
    type: string
    response?: { decision: string; diagnostics: { reason: string[]; errors: unknown[] } }
  }
}

export interface CedarOptions extends Pick<Policy, 'timeoutMs' | 'shadow'> {
  /** Cedar policies, as one text, or each with its id. */
  policies: string | Readonly<Record<string, string>>
  /** Defaults to `cedar`. */
  id?: string
  /** Entities of the app. One for the requester replaces the default, whose parents are its roles. */
  entities?: (call: PolicyCall) => readonly CedarEntity[] | Promise<readonly CedarEntity[]>
  /** The initialized module `@cedar-policy/cedar-wasm`. Defaults to its build for Node. */
  engine?: CedarEngine
}

/**
 * A policy that asks Cedar: may `User::"ann"` perform `Action::"transfer"` on `Session::"ann:7"`? The context has
 * `arguments`, `session`, `path` and `approved`. A call that is permitted only with `approved: true` needs approval,
 * and any other call is denied. An error also denies the call.
 *
 * @example
 * const policies = 'permit (principal, action, resource) when { context.approved };'
 * const agent = createAgent({ model, policy: await cedar({ policies }) })
 *
 * @throws {StatewrightError} `missing_package`
 * @throws {ConfigError} `invalid_option` if the policies cannot be parsed
 */
export async function cedar(options: CedarOptions): Promise<Policy> {
  const { policies, id = 'cedar', entities, engine, ...limits } = Object(options) as CedarOptions
  if (typeof policies !== 'string' && !isObject(policies))
    throw new ConfigError(
      'invalid_option',
      'policies must be a string of Cedar policies, or { ID: STRING }.',
      'policies',
    )
  const own = engine ?? (await loadPeer<CedarEngine>('@cedar-policy/cedar-wasm/nodejs', 'cedar()'))
  const policySet = { staticPolicies: policies }
  const { type, errors = [] } = own.checkParsePolicySet(policySet)
  if (type !== 'success') {
    const why = errors.map(({ message }) => message).join(' ')
    throw new ConfigError('invalid_option', `The Cedar policies cannot be parsed. ${why}`, 'policies')
  }
  const decide = async (call: PolicyCall): Promise<PolicyDecision> => {
    const { tool, requester, session, path } = call
    if (requester === undefined) return { decision: 'deny', rule: 'no_principal' }
    const principal = { type: 'User', id: requester.id }
    const parents = (requester.roles ?? []).map((role) => ({ type: 'Role', id: role }))
    const more = (await entities?.(call)) ?? []
    const isGiven = more.some(({ uid }) => uid.type === principal.type && uid.id === principal.id)
    const request = {
      principal,
      action: { type: 'Action', id: tool.name },
      resource: { type: 'Session', id: session.id },
      policies: policySet,
      entities: isGiven ? more : [...more, { uid: principal, attrs: {}, parents }],
    }
    const context = { arguments: toCedarValue(call.arguments), session: toCedarValue(session), path }
    const ask = (approved: boolean) => {
      const answer = own.isAuthorized({ ...request, context: { ...context, approved } })
      const { decision, diagnostics } = answer.response ?? {}
      if (answer.type !== 'success' || diagnostics?.errors.length !== 0)
        throw new Error('Cedar could not decide.')
      return { isAllowed: decision === 'allow', rule: diagnostics.reason.join(', ') }
    }
    const plain = ask(false)
    if (plain.isAllowed) return { decision: 'allow', rule: plain.rule }
    const approved = ask(true)
    return { decision: approved.isAllowed ? 'ask' : 'deny', rule: approved.rule }
  }
  return { id, decide, ...limits }
}

/** Converts a value for Cedar, which has no null and no fractions, and reads `__entity` as a reference. */
function toCedarValue(value: unknown): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)) return value
  if (Array.isArray(value)) return value.map(toCedarValue)
  if (!isObject(value)) throw new Error(`Cedar cannot represent ${describeUnsupported(value)}`)
  const entries = Object.entries(value).filter(([, each]) => each !== null && each !== undefined)
  if (entries.some(([key]) => key.startsWith('__'))) throw new Error('A key starts with __.')
  return Object.fromEntries(entries.map(([key, each]) => [key, toCedarValue(each)]))
}

function describeUnsupported(value: unknown): string {
  if (typeof value === 'number')
    return `the number ${value}. Use ${Number.isInteger(value) ? 'a string' : 'an integer'}.`
  return value === null || value === undefined ? `${value}.` : `a ${typeof value}.`
}
