import { configError, describeError } from '../../core/base/errors.js'
import { warnProcess } from '../../core/base/platform.js'
import { type Agents, agentsRule, getCommonStore } from '../../core/drive/define-agents.js'
import { type SessionRunnerOptions } from '../../core/drive/driver.js'
import { internalsByAgent } from '../../core/agent/agent-internals.js'
import {
  callbackRule,
  checkOptions,
  countRule,
  type OptionRules,
  textRule,
} from '../../core/config/check-options.js'
import type { Authorize } from '../../web/authorize.js'
import { callSafely } from '../../web/error-response.js'
import { checkExpose, type ExposeOptions } from '../../web/exposure.js'
import { createAgentTools, type McpAgentTool } from './agent-tools.js'

export interface McpServerOptions<Context = unknown> extends SessionRunnerOptions {
  /**
   * Each agent is a tool with this name. The agents must share a store with an inbox, and must not be `interactive`.
   */
  agents: Agents<Context>
  /** Determines the sessions that a request may start, read and answer, as in `chatHandler`. Required. */
  authorize: Authorize<NoInfer<Context>>
  /** Descriptions of the tools, by agent name. */
  tools?: Readonly<Record<string, McpAgentTool>>
  /** The name of the server. Defaults to `statewright`. */
  name?: string
  /** The version of your app. Defaults to `1.0.0`. */
  version?: string
  /** Instructions for the client's model. */
  instructions?: string
  /** Returns the address where a person can answer a session, for clients that cannot be asked. */
  answerUrl?: (task: string) => string
  /**
   * The command that answers a session, without arguments, such as `statewright send`. Results for clients that cannot
   * be asked include it with its arguments, for the calling model. Defaults to none, or to `statewright send` over stdio.
   * `null` omits the command.
   */
  answerCommand?: string | null
  /**
   * The allowed host names in requests (`Host`, `Origin`), against DNS rebinding and requests from other sites. With
   * `authorize: 'none'`, defaults to the names of this machine. With a function, which may read cookies, defaults to any
   * `Host` but no `Origin` from another site.
   */
  hosts?: readonly string[]
  /** Maximum size of a request body in bytes. Defaults to 4,194,304. */
  maxBodyBytes?: number
  /** Poll interval for clients, in milliseconds. Defaults to 1,000. */
  pollMs?: number
  /** Which errors clients see, as in `chatHandler`. Defaults to a sentence and a code. */
  expose?: Pick<ExposeOptions, 'errors'>
  /** Receives each error that clients do not see in full. Defaults to a process warning. */
  onError?: (error: unknown) => void
}

export type CheckedOptions = ReturnType<typeof checkServerOptions>

const optionRules: OptionRules<McpServerOptions> = {
  agents: { ...agentsRule, isRequired: true },
  authorize: {
    is: (value) => value === 'none' || typeof value === 'function',
    phrase: "a function of the request that returns its sessions' prefix, or 'none'",
    isRequired: true,
  },
  tools: null,
  name: textRule,
  version: textRule,
  instructions: textRule,
  answerUrl: callbackRule,
  answerCommand: {
    is: (value) => value === null || textRule.is(value),
    phrase: 'a non-empty string, or null',
  },
  hosts: {
    is: (value) => Array.isArray(value) && value.every((host) => typeof host === 'string'),
    phrase: "a list of host names, such as ['mcp.example.com']",
  },
  maxBodyBytes: countRule,
  pollMs: countRule,
  expose: null,
  onError: callbackRule,
  drainMs: null,
}

/** @throws {ConfigError} `invalid_config`, naming the key */
export function checkServerOptions(by: string, options: McpServerOptions) {
  const given = checkOptions(`${by}(options)`, options, optionRules, configError)
  const { agents, authorize, name = 'statewright', version = '1.0.0' } = given
  const report = given.onError ?? warnOfError
  const onError = (error: unknown): void => callSafely(() => report(error), warnOfError)
  const store = getCommonStore(agents)
  if (!store.inbox)
    throw configError(
      `${by} needs a store with an inbox, because any process may answer any request.`,
      'store',
    )
  const interactive = agents.names.find(
    (agent) => internalsByAgent.get(agents.get(agent).agent)?.parts.config.interactive,
  )
  if (interactive !== undefined)
    throw configError(
      `'${interactive}' is interactive, but an agent that serves as a tool must end its run with its answer.`,
      'agents',
    )
  return {
    ...given,
    pollMs: given.pollMs ?? 1000,
    authorize: authorize as Authorize,
    store,
    tools: createAgentTools(agents, options.tools),
    info: { name, version },
    answerCommand: given.answerCommand ?? undefined,
    hosts: given.hosts ?? (authorize === 'none' ? ['localhost', '127.0.0.1', '[::1]'] : undefined),
    expose: checkExpose(given.expose, onError),
    onError,
  }
}

const warnOfError = (error: unknown): void => warnProcess(describeError(error))
