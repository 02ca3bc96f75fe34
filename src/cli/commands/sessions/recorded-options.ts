import { createAgent } from '../../../core/agent/agent.js'
import { createDefinitionFactory } from '../../../core/agent/definition-factory.js'
import type { Agent, AgentOptions } from '../../../core/agent/agent-options.js'
import { internalsByAgent } from '../../../core/agent/agent-internals.js'
import { openRecord } from '../../../core/sessions/log/log-record.js'
import type { ModelProvider } from '../../../core/models/provider.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import type { ToolEntry } from '../../../core/tools/tool-set.js'
import { toRecordedAgent } from '../../../testing/play/record-agent.js'
import type { RecordedAgent } from '../../../testing/play/recording.js'
import type { CliIO } from '../../command.js'
import { loadConfig } from '../../load-config.js'
import { loadTools } from '../../load-tools.js'

/** The options of the original run that describe its agent. */
export interface OriginalRunOptions {
  config: string | undefined
  tools: string | undefined
  instructions: string | undefined
}

/** What is known about the agent that `statewright run` made for a session; null: nothing. */
export async function findRunAgent(
  { config, tools, instructions }: OriginalRunOptions,
  store: SessionStore,
  session: string,
  io: CliIO,
): Promise<RecordedAgent | null> {
  if (config === undefined && tools === undefined && instructions === undefined) {
    const { createDemoTools } = await import('../../demo-tools.js')
    const demo = createRehearsalAgent({ tools: createDemoTools() as readonly ToolEntry[] })
    return (await hasStartedSession(demo, store, session)) ? describeAgent(demo) : null
  }
  const { $schema: _schema, model: _model, ...written } = await loadConfig(config, io.cwd)
  const all = tools === undefined ? [] : await loadTools(tools, io.cwd)
  const settings = written as Partial<AgentOptions>
  const agent = createRehearsalAgent({
    ...settings,
    ...(instructions !== undefined && { instructions }),
    tools: all,
  })
  const { tools: specs, ...rest } = describeAgent(agent)
  // Without their module, the tools are not known.
  return tools === undefined ? rest : { ...rest, tools: specs ?? [] }
}

function createRehearsalAgent(options: Partial<AgentOptions>): Agent {
  return createAgent({ ...options, prices: null, model: rehearsalModel } as AgentOptions)
}

function describeAgent(agent: Agent): RecordedAgent {
  const parts = internalsByAgent.get(agent)?.parts
  return parts ? toRecordedAgent(parts, agent.config) : {}
}

/** Whether this agent started the session's runs, by the log. */
async function hasStartedSession(agent: Agent, store: SessionStore, session: string): Promise<boolean> {
  const parts = internalsByAgent.get(agent)?.parts
  if (!parts) return false
  const { hash } = createDefinitionFactory(parts)(undefined)
  const records = await store.read(session)
  const starts = records.flatMap((record) => {
    if (record.type !== 'start') return []
    const entry = openRecord(record, record.seq - 1, session)
    return entry.type === 'start' ? [entry.definition?.hash] : []
  })
  return starts.length > 0 && starts.every((started) => started === hash)
}

/** The model of `statewright run --rehearsal`. */
const rehearsalModel: ModelProvider = {
  provider: 'rehearsal',
  model: 'rehearsal',
  request: () => Promise.reject(new Error('No model is asked here.')),
}
