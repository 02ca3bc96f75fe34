import { describeError, StatewrightError, configError } from '../base/errors.js'
import type { RunInput } from '../sessions/input-history.js'
import type { WithContext } from '../tools/tool.js'
import type { RunSessionOptions } from './drive-options.js'
import { internalsByAgent } from '../agent/agent-internals.js'
import { systemClock } from '../base/clock.js'
import { expectArgument, optionsRule } from '../base/values.js'
import { expectKnownOptions } from '../config/other-names.js'
import { type SendOptions, sendToStoredSession } from '../run/send-to-stored-session.js'
import type { Receipt, SessionMessage } from '../sessions/inbox/session-message.js'
import type { SessionStore } from '../sessions/store/store.js'
import { type Agents, agentsRule, getCommonStore } from './define-agents.js'
import { createSessionRunner, type SessionRunner, type SessionRunnerOptions } from './driver.js'
import { getListedDefinition } from '../sessions/agent-definition.js'

/** App functions that supply values per session, so that the engine does not have to store them. */
export interface HostFunctions<Context = unknown> {
  /** Returns the app's context object for the tools of this session. Called each time a process works on the session. */
  context?: (session: string) => Context | Promise<Context>
  /** The input of a run whose request has none, of any length. Called once, when the run starts. */
  loadInput?: (session: string) => RunInput | Promise<RunInput>
}

/** The options of a host. `context` is required if tools need one. */
export type HostOptionsFor<Options, Context> =
  WithContext<unknown, Context> extends { context: unknown }
    ? [options: Options & Required<Pick<HostFunctions<Context>, 'context'>>]
    : [options?: Options]

const hostFunctionNames = ['context', 'loadInput'] as const satisfies (keyof HostFunctions)[]

export function checkHostFunctions(host: string, options: HostFunctions): void {
  for (const key of hostFunctionNames)
    if (options[key] !== undefined && typeof options[key] !== 'function')
      throw configError(`${key} of ${host} must be a function of the session: ${key}: (session) => …`, key)
}

/** Opens a host from its arguments, such as `dbosSessions(DBOS, agents, options)`. `names` are its own options. */
export function openHost(
  [host, engine]: readonly [string, string],
  agents: Agents,
  options: HostFunctions & SessionRunnerOptions,
  names: readonly string[],
): { runner: SessionRunner; store: SessionStore } {
  expectArgument(`${host}(${engine}, agents)`, agents, agentsRule)
  expectArgument(`${host}(${engine}, agents, options)`, options, optionsRule)
  expectKnownOptions(host, options, [...names, 'drainMs', ...hostFunctionNames])
  checkHostFunctions(host, options)
  const { drainMs } = options
  const runner = createSessionRunner(agents, drainMs === undefined ? {} : { drainMs })
  return { runner, store: getCommonStore(agents) }
}

/** `begins`: the request may start a run. @throws {StatewrightError} `host_function_failed`, which is `retryable` */
export async function addHostValues(
  { context, loadInput }: HostFunctions,
  options: RunSessionOptions,
  begins: boolean,
): Promise<RunSessionOptions> {
  const { session } = options
  return {
    ...options,
    ...(context && { context: await callHost('context', () => context(session)) }),
    ...(loadInput &&
      begins &&
      options.input === undefined && { input: () => callHost('loadInput', () => loadInput(session)) }),
  }
}

async function callHost<Value>(name: string, ask: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await ask()
  } catch (cause) {
    const message = `${name} threw: ${describeError(cause).replace(/\.?$/, '.')} The session will be retried later.`
    throw new StatewrightError('host_function_failed', message, name, { cause })
  }
}

/** Sends a message to a session, like `agent.send`. Works even if this process does not have the session's agent. */
export async function sendToSession(
  agents: Agents,
  store: SessionStore,
  session: string,
  message: SessionMessage,
  options: SendOptions,
): Promise<Receipt> {
  const listed = await store.get(session)
  const acceptor = agents.findAgentFor(getListedDefinition(listed?.summary ?? null))
  const internals = acceptor && internalsByAgent.get(acceptor.agent)
  const parts = {
    store,
    clock: internals?.parts.clock ?? systemClock,
    ...(internals && { tools: internals.parts.tools }),
  }
  return sendToStoredSession(parts, session, message, options)
}
