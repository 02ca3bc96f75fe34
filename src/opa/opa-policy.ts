import { ConfigError } from '../core/base/errors.js'
import { isObject } from '../core/base/values.js'
import type { Policy, PolicyCall, PolicyDecision } from '../core/tools/policy.js'

export interface OpaOptions extends Pick<Policy, 'timeoutMs' | 'shadow'> {
  /** The address of a rule in OPA's Data API, such as `http://127.0.0.1:8181/v1/data/agent/decision`. */
  url: string
  /** Defaults to `opa`. */
  id?: string
  /** Headers for each request, such as `authorization`. */
  headers?: Readonly<Record<string, string>>
  /** The input for the rule. Defaults to the call without the app's `context`. */
  input?: (call: PolicyCall) => unknown
  fetch?: typeof globalThis.fetch
}

/**
 * A policy that asks an Open Policy Agent server. The rule returns `true`, `false` or a decision, such as
 * `{"decision": "ask", "approvers": {"count": 2}}`. An undefined result or an error denies the call.
 *
 * @example
 * const policy = opa({ url: 'http://127.0.0.1:8181/v1/data/agent/decision' })
 * const agent = createAgent({ model, policy })
 *
 * @throws {ConfigError} `invalid_option` if the URL is invalid
 */
export function opa(options: OpaOptions): Policy {
  const { url, id = 'opa', headers, input = toInput, fetch: send, ...limits } = Object(options) as OpaOptions
  if (!/^https?:$/.test(typeof url === 'string' && URL.canParse(url) ? new URL(url).protocol : ''))
    throw new ConfigError('invalid_option', 'url must be an address of OPA: http(s)://HOST/v1/data/…', 'url')
  const decide = async (call: PolicyCall): Promise<PolicyDecision> => {
    const response = await (send ?? globalThis.fetch)(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ input: input(call) }),
      // A redirect could send the call to another server.
      redirect: 'error',
      signal: call.signal,
    })
    if (!response.ok) throw new Error(`OPA returned ${response.status}.`)
    const body: unknown = await response.json()
    if (!isObject(body)) throw new Error('OPA did not return an object.')
    const { result } = body
    if (result === undefined) return { decision: 'deny', rule: 'undefined' }
    if (typeof result === 'boolean') return result ? 'allow' : 'deny'
    return result as PolicyDecision
  }
  return { id, decide, ...limits }
}

function toInput({ context: _context, signal: _signal, ...input }: PolicyCall): object {
  return input
}
