import { quoteShellWord } from '../../core/format/shell-words.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentState, Reason } from '../../../machines/agent/run-result.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { internalsByAgent } from '../../core/agent/agent-internals.js'
import { ConfigError } from '../../core/base/errors.js'
import { overrideLimits } from '../../core/config/resolve-config.js'
import { getSpeakerTools } from '../../core/live/agent-parts.js'
import { subAgentByDelegate } from '../../core/sub-agents/as-tool.js'
import { compareAgents } from './compare-agents.js'
import type { PlayScene } from './current-agent.js'
import { SessionPlayer } from './session-player.js'
import { ReplayError, type SessionDifference, type ReadableRecording, readRecording } from './recording.js'
import { toRecordedAgent } from './record-session.js'
import { standInByAgent } from './recorded-agent.js'

/** Options of `replaySession`. */
export interface ReplaySessionOptions {
  /**
   * `log` (default): tool results come from the recording · `live`: tools are executed and their results
   * compared. Sub-agent and client calls always come from the recording.
   */
  tools?: 'log' | 'live'
  /** The app context passed to tools and `needsApproval`. */
  context?: unknown
  /** Limits passed to the run itself, if the recording does not contain them. */
  limits?: Partial<AgentConfig['limits']>
  /**
   * Whether a live tool result matches the recorded one. Default: equality, ignoring ids (UUIDs) and times (ISO
   * 8601 and epoch milliseconds).
   */
  isSame?: (recorded: string, now: string, call: { name: string; arguments: string }) => boolean
}

/** The result of a successful replay. */
export interface SessionReplay {
  /** Session id. */
  session: string
  records: number
  runs: number
  /** Calls with a result, excluding those of sub-agents. */
  calls: number
  /** State of the last run; null if none has started. */
  state: AgentState | null
  reason: Reason | null
  /** What could not be compared because it was withheld or not recorded, one sentence each. */
  notCompared: string[]
  /** Replays of sub-agent sessions, in call order. */
  subAgents: SessionReplay[]
}

/**
 * Replays a stored session on an agent without calling a model. Answers come from the recording; tools are
 * replayed or executed live. States, calls and messages are compared, and so are the prompt, tools and settings
 * of each request. Ids and times may differ.
 *
 * `recording` is the output of `statewright sessions export ID --as test` or `recordSession`, or the records of
 * `store.read(id)`, which contain no prompt.
 *
 * @example
 * // in a test: JSON.parse(readFileSync('ann.session.json', 'utf8'))
 * const { state, notCompared } = await replaySession(agent, recording)
 *
 * @throws {ReplayError} `session_differs`, with the differences in its message and in `differences`;
 * `invalid_recording`, `newer_recording`, `damaged_recording`, `not_an_agent`, `invalid_option`
 * @throws {StoreError} `corrupt_log`, `newer_log` for the records of a store
 */
export async function replaySession(
  agent: Pick<Agent, 'config'>,
  recording: object,
  options: ReplaySessionOptions = {},
): Promise<SessionReplay> {
  const made = internalsByAgent.get(agent)
  if (!made) {
    const text =
      'A session can only be replayed on an agent created by createAgent() from the same copy of Statewright.'
    throw new ReplayError('not_an_agent', text, 'agent')
  }
  const { tools = 'log', context, limits = {}, isSame } = checkOptions(options)
  const differences: SessionDifference[] = []
  const scene = {
    parts: made.parts,
    config: agent.config,
    standIn: standInByAgent.get(agent) ?? { tools: false, output: false },
    isLive: tools === 'live',
    appContext: context,
    limits: limits as Partial<AgentConfig['limits']>,
    isSame,
  }
  const read = readRecording(recording)
  const played = await playRecording({ ...scene, recording: read }, [], differences)
  if (differences.length > 0) throw sessionDiffersError(read.session, differences)
  return played
}

const optionNames = ['tools', 'context', 'limits', 'isSame']

function checkOptions(options: ReplaySessionOptions): ReplaySessionOptions {
  const refuse = (key: string, problem: string) =>
    new ReplayError('invalid_option', `${key}: ${problem}`, key)
  for (const key of Object.keys(options))
    if (!optionNames.includes(key)) throw refuse(key, `unknown option. Available: ${optionNames.join(', ')}.`)
  const { tools, limits, isSame } = options
  if (tools !== undefined && tools !== 'log' && tools !== 'live')
    throw refuse('tools', `must be 'log' or 'live' (is ${JSON.stringify(tools)}).`)
  if (isSame !== undefined && typeof isSame !== 'function')
    throw refuse('isSame', 'must be a function of the recorded and the current result.')
  try {
    if (limits === undefined) return options
    const whole = overrideLimits({} as AgentConfig, limits).limits
    const given = Object.keys(limits) as (keyof AgentConfig['limits'])[]
    return { ...options, limits: Object.fromEntries(given.map((key) => [key, whole[key]])) }
  } catch (error) {
    if (error instanceof ConfigError) throw new ReplayError('invalid_option', error.message, error.subject)
    throw error
  }
}

async function playRecording(
  scene: PlayScene,
  path: readonly string[],
  differences: SessionDifference[],
): Promise<SessionReplay> {
  const { recording, parts, config } = scene
  const present = toRecordedAgent(parts, config)
  const called = collectCallSteps(recording)
  for (const found of compareAgents(recording.agent, present, called))
    differences.push({ ...found, run: null, step: null, record: null, path })
  const player = new SessionPlayer(scene)
  await player.playAll()
  differences.push(...player.differences.map((found) => ({ ...found, path })))
  const subAgents: SessionReplay[] = []
  for (const { tool, speaker, recording: child } of recording.subAgents) {
    const delegate = getSpeakerTools(parts.tools, speaker).get(tool)?.delegate
    const host = delegate && subAgentByDelegate.get(delegate)
    // A missing tool has been reported already.
    if (!host) continue
    const deeper = { ...scene, recording: readRecording(child), parts: host.parts, config: host.config }
    // oxlint-disable-next-line no-await-in-loop -- in call order
    subAgents.push(await playRecording(deeper, [...path, tool], differences))
  }
  const { standing, calls, notes } = player
  const last = recording.records.at(-1)?.seq ?? 0
  const isCut = recording.messages === null && recording.records[0]?.reached !== undefined
  const { tools: traits = {}, features } = standing.run?.context ?? {}
  const unseen = [...called.keys()].filter((name) => features?.resultShields && traits[name]?.delegate)
  const unknown = [
    ...unseen.map((name) => `the runs of the sub-agent '${name}', because shields review only its result`),
    ...(isCut ? [`everything after record ${last}, which depends on content withheld by shields`] : []),
    ...(recording.agent.instructions === undefined
      ? ['the prompt, which the recording does not contain']
      : []),
    ...(recording.agent.tools === undefined
      ? ['the tool specifications, which the recording does not contain']
      : []),
  ]
  return {
    session: recording.session,
    records: recording.records.length,
    runs: standing.runs,
    calls,
    state: standing.run?.context.state ?? null,
    reason: standing.run?.context.reason ?? null,
    notCompared: [...unknown, ...notes],
    subAgents,
  }
}

/** The steps that call each tool, excluding names the model made up. */
function collectCallSteps({ records }: ReadableRecording): Map<string, string[]> {
  const called = new Map<string, string[]>()
  let [run, step] = [0, 0]
  let tools: object = {}
  for (const record of records) {
    // After a handoff, the tools belong to the other agent.
    if (record.type === 'start')
      [run, step, tools] = [run + 1, 0, record.input.speaker ? {} : (record.input.tools ?? {})]
    if (record.type === 'snapshot') tools = (record.state.context as { tools?: object }).tools ?? {}
    if (record.type !== 'event' || record.event.type !== 'xstate.done.actor.model') continue
    step += 1
    for (const { function: call } of record.event.output.response.toolCalls) {
      if (!Object.hasOwn(tools, call.name)) continue
      const places = called.get(call.name) ?? []
      const place = run > 1 ? `step ${step} of run ${run}` : `step ${step}`
      if (!places.includes(place)) called.set(call.name, [...places, place])
    }
  }
  return called
}

const maxShownDifferences = 12

function sessionDiffersError(session: string, differences: readonly SessionDifference[]): ReplayError {
  const told = differences.slice(0, maxShownDifferences).map(({ path, run, step, message }) => {
    const where = [
      ...(path.length > 0 ? [`sub-agent ${path.join(' › ')}`] : []),
      ...(run !== null && run > 1 ? [`run ${run}`] : []),
      ...(step === null ? [] : [`step ${step}`]),
    ].join(', ')
    return where === '' ? message : `${where[0]?.toUpperCase()}${where.slice(1)}: ${message}`
  })
  const more = differences.length - told.length
  if (more > 0) told.push(`… and ${more} more.`)
  const advice =
    `If the change is intended, record it again: statewright sessions export ${quoteShellWord(session)} --as test --update, with the ` +
    'options of the first recording, or record a new session of the changed agent.'
  return new ReplayError(
    'session_differs',
    [`Session '${session}' replays differently from its recording.`, ...told, advice].join('\n\n'),
    session,
    { differences },
  )
}
