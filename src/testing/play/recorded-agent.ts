import { noFeatures, type AgentContext, type Features } from '../../../machines/agent/context.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import { createAgent } from '../../core/agent/agent.js'
import { getOrCreate } from '../../core/base/values.js'
import { handoff } from '../../core/agent/handoff.js'
import type { Agent, AgentOptions } from '../../core/agent/agent-options.js'
import { ModelError, type ModelProvider } from '../../core/models/provider.js'
import { completeInput } from '../../core/sessions/log/stored-state.js'
import { defineShield } from '../../core/shields/define-shield.js'
import { defineTool } from '../../core/tools/define-tool.js'
import { toolSearch } from '../../core/tools/tool-search.js'
import type { InputSchema } from '../../core/tools/input-schema.js'
import type { Tool } from '../../core/tools/tool.js'
import type { ToolEntry } from '../../core/tools/tool-set.js'
import { defineGuard } from '../../core/user-guards/guard.js'
import { type ReadableRecording, readRecording, type RecordedAgent, type RecordedTool } from './recording.js'

export interface StandIn {
  tools: boolean
  output: boolean
}

export const standInByAgent = new WeakMap<object, StandIn>()

/**
 * Creates an agent from a recording, with the recorded prompt, tools, settings and limits. The agent's model is never
 * called, and its tools only replay recorded results. `changes` override recorded options. Use such an agent for
 * sessions whose agent you cannot import, or to see the effect of a change.
 *
 * @example
 * const { state } = await replaySession(createRecordedAgent(recording), recording)
 * const french = createRecordedAgent(recording, { instructions: 'Answer in French.' }) // replaySession rejects: another prompt
 *
 * @throws {ReplayError} as `replaySession` for an invalid recording
 * @throws {ConfigError} for invalid `changes`
 */
export function createRecordedAgent(recording: object, changes: Partial<AgentOptions> = {}): Agent {
  const read = readRecording(recording)
  const options = createOptions(read.agent, findFirstKnown(read), createTeam(read))
  const agent = createAgent({ ...options, ...changes } as AgentOptions)
  standInByAgent.set(agent, { tools: changes.tools === undefined, output: changes.output === undefined })
  return agent
}

type RecordedTeam = (name: string) => Agent

function createTeam({ agent, records }: ReadableRecording): RecordedTeam {
  const agents = new Map<string, Agent>()
  const getAgent: RecordedTeam = (name) =>
    getOrCreate(agents, name, () => {
      // Only the log contains the tools of an agent after a handoff.
      const handed = records.flatMap((record) =>
        record.type === 'event' && record.event.type === 'HANDED_OFF' && record.event.to === name
          ? [record.event.tools]
          : [],
      )[0]
      const known = handed && { tools: handed, features: noFeatures, config: {} as AgentContext['config'] }
      const { output: _output, ...own } = agent.team?.[name] ?? {}
      return createAgent(createOptions(own, known ?? null, getAgent))
    })
  return getAgent
}

type Known = Pick<AgentContext, 'config' | 'tools' | 'features'>

function findFirstKnown({ records }: ReadableRecording): Known | null {
  for (const record of records) {
    if (record.type === 'start') return completeInput(record.input)
    if (record.type === 'snapshot') {
      const { config, tools, features } = record.state.context as AgentContext
      return completeInput({ config, tools, features, now: 0, runId: '', sessionId: '', input: [] })
    }
  }
  return null
}

function createOptions(
  agent: RecordedAgent,
  known: Known | null,
  team: RecordedTeam,
): Partial<AgentOptions> & Pick<AgentOptions, 'model'> {
  const { instructions, settings = {}, output } = agent
  const features = known?.features ?? noFeatures
  const config = agent.config ?? known?.config
  return {
    ...(config as Partial<AgentOptions> | undefined),
    ...(settings as Partial<AgentOptions>),
    model: silentModel,
    ...(instructions !== undefined && instructions !== null && { instructions }),
    tools: createTools(agent, known, team),
    ...(output && { output: { name: output.name, schema: toSchema(output.schema) } }),
    ...(output === undefined && features.structuredOutput && { output: toSchema(anyObject) }),
    ...createStandInParts(features),
  }
}

const anyObject: JsonObject = { type: 'object', properties: {} }

const toSchema = (schema: JsonObject) => schema as unknown as InputSchema

/** Placeholders for shields, memory and guards, whose verdicts come from the recording. */
function createStandInParts(features: Features): Partial<AgentOptions> {
  const shield = [
    defineShield({ name: 'recorded', check: () => ({ action: 'block', message: standInMessage }) }),
  ]
  return {
    shields: {
      ...(features.inputShields && { input: shield }),
      ...(features.callShields && { toolInput: shield }),
      ...(features.resultShields && { toolOutput: shield }),
      ...(features.outputShields && { output: shield }),
    },
    ...(features.retrieval && { memory: { retrieve: async () => [] } }),
    ...(features.prepareStep && { prepareStep: () => ({}) }),
    ...(features.stopWhen && { stopWhen: () => false }),
    ...(features.userGuards && { guards: [defineGuard({ name: 'recorded', verdict: () => undefined })] }),
  }
}

function createTools({ tools }: RecordedAgent, run: Known | null, team: RecordedTeam): ToolEntry[] {
  const traits = run?.tools ?? {}
  const specs =
    tools ??
    Object.keys(traits).map((name) => ({ name, description: 'Not recorded.', parameters: anyObject }))
  const search = Object.entries(traits).find(([, { loads }]) => loads)
  const own = search === undefined ? specs : specs.filter(({ name }) => !isOfSearch(name, search))
  const entries = own.map((spec: RecordedTool): ToolEntry => {
    const { name, description, parameters, client, defer, agent: below, handoff: recipient } = spec
    const known: Partial<ToolTraits> = traits[name] ?? {}
    const { delegate, deferred, skill, handoff: handsOver, loads: _loads, ...traitsOf } = known
    const isDeferred = search !== undefined && (deferred === true || defer === true)
    const rest = { ...traitsOf, ...(isDeferred && { defer: true }) }
    const words = { name, description, input: toSchema(parameters) }
    if (handsOver || recipient !== undefined) {
      const to = recipient ?? name.replace(/^transfer_to_/, '')
      return { ...handoff(() => team(to), { name: to }), name, description } as ToolEntry
    }
    if (below === undefined && !delegate) {
      if (client) return defineTool({ ...words, ...rest, client: true }) as ToolEntry
      const execute = () => Promise.reject(new Error(standInMessage))
      const tool = defineTool({ ...words, ...rest, execute }) as Tool
      return skill ? { ...tool, skill } : tool
    }
    const child = createAgent(createOptions(below ?? {}, null, team))
    const { endsRun, maxCalls } = traitsOf
    const tool = child.asTool({ ...words, ...(endsRun && { endsRun }), ...(maxCalls && { maxCalls }) })
    return isDeferred ? { ...tool, defer: true } : tool
  })
  if (search === undefined) return entries
  // Search results come from the recording. The order of the tools is preserved, because it is part of a request.
  const place = own.findIndex((spec, i) => spec !== specs[i])
  const at = place === -1 ? entries.length : place
  const loading = search[1].loads ?? 'append'
  return [...entries.slice(0, at), toolSearch({ loading, search: () => [] }), ...entries.slice(at)]
}

/** Whether a tool is the search itself or its dispatcher. */
function isOfSearch(name: string, [search, { loads }]: [string, ToolTraits]): boolean {
  return name === search || (loads === 'dispatch' && name === 'call_tool')
}

const standInMessage = 'This agent was created from a recording and can only be replayed.'

const silentModel: ModelProvider = {
  provider: 'recording',
  model: 'recording',
  request: () => Promise.reject(new ModelError({ kind: 'fatal', code: 'no_model', message: standInMessage })),
}
