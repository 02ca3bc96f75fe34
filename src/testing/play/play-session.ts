import { quoteShellWord } from '../../core/format/shell-words.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { AgentState, Reason } from '../../../machines/agent/run-result.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { internalsByAgent, getFeatures } from '../../core/agent/agent-internals.js'
import { ConfigError, describeError, StatewrightError } from '../../core/base/errors.js'
import { checkOptions, choiceRule, type OptionRules } from '../../core/config/check-options.js'
import { functionRule } from '../../core/base/values.js'
import { overrideLimits } from '../../core/config/resolve-config.js'
import { getPoliciesBelow, toPrepareOptions } from '../../core/effects/prepare-options.js'
import { getSpeakerTools, type AgentParts, isLostSpeaker, toSpeaker } from '../../core/live/agent-parts.js'
import { subAgentByDelegate } from '../../core/sub-agents/as-tool.js'
import {
  type FoundDifference,
  compareAgents,
  describeEntry,
  formatTextDifference,
  formatValue,
  formatCall,
  needsWords,
} from './compare-agents.js'
import {
  ReplayError,
  type SessionDifference,
  type ReadableRecording,
  readRecording,
  toRecord,
  toRecordedAgent,
  digestMessage,
  getPlace,
  listLeafChanges,
  mergeConfig,
  maskVolatile,
} from './recording.js'
import { standInByAgent, type StandIn } from './recorded-agent.js'
import type { AgentContext, Features, AgentMachineEvent } from '../../../machines/agent/context.js'
import type { RecordContent } from '../../core/sessions/log/log-record.js'
import {
  applyOpenedRecord,
  createFoldedSession,
  findSessionFault,
  type FoldedSession,
} from '../../core/sessions/fold-session.js'
import { type ModelOutput, classifyResponse } from '../../../machines/agent/model-response.js'
import type { BatchCall, ToolResult, ToolTraits } from '../../../machines/agent/batch-calls.js'
import { isDenied } from '../../../machines/agent/approvals.js'
import { systemClock } from '../../core/base/clock.js'
import { CallAbort } from '../../core/base/abort.js'
import type { PoliciesAbove } from '../../core/live/runtime.js'
import { completeInput } from '../../core/sessions/log/stored-state.js'
import { readOutput } from '../../core/structured/read-output.js'
import { parseArguments } from '../../core/tools/parse-arguments.js'
import type { SessionTags } from '../../core/sessions/store/session-tags.js'
import { prepareCalls } from '../../core/tools/prepare-calls.js'
import { RunningCall } from '../../core/tools/running-call.js'

/** Options for `replaySession`. */
export interface ReplaySessionOptions {
  /**
   * Where tool results come from: the recording (`log`, the default), or executing the tools (`live`) and comparing
   * their results. Sub-agent and client calls always come from the recording.
   */
  tools?: 'log' | 'live'
  /** The app context passed to tools and `needsApproval`. */
  context?: unknown
  /** Limits that were passed to the run itself, if the recording does not contain them. */
  limits?: Partial<AgentConfig['limits']>
  /**
   * Whether a live tool result matches the recorded one. By default they must be equal, ignoring ids (UUIDs) and times
   * (ISO 8601 and epoch milliseconds).
   */
  isSame?: (recorded: string, now: string, call: { name: string; arguments: string }) => boolean
}

/** The result of a successful replay. */
export interface SessionReplay {
  /** Session id. */
  session: string
  records: number
  runs: number
  /** The number of calls with a result, excluding the calls of sub-agents. */
  calls: number
  /** State of the last run. Null if no run has started. */
  state: AgentState | null
  reason: Reason | null
  /** The parts that could not be compared because they were withheld or not recorded, one sentence each. */
  notCompared: string[]
  /** Replays of sub-agent sessions, in call order. */
  subAgents: SessionReplay[]
}

/**
 * Replays a stored session on an agent without calling a model. Answers come from the recording. Tools are replayed or
 * executed live. States, calls and messages are compared, and so are the prompt, tools and settings of each request.
 * Ids and times may differ.
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
  const internals = internalsByAgent.get(agent)
  if (!internals) {
    const text =
      'A session can only be replayed on an agent created by createAgent() from the same copy of Statewright.'
    throw new ReplayError('not_an_agent', text, 'agent')
  }
  const {
    tools = 'log',
    context,
    limits = {},
    isSame,
  } = checkOptions(
    'replaySession(agent, recording, options)',
    options,
    optionRules,
    (message, key) => new ReplayError('invalid_option', message, key),
  )
  const differences: SessionDifference[] = []
  const scene = {
    parts: internals.parts,
    config: agent.config,
    standIn: standInByAgent.get(agent) ?? { tools: false, output: false },
    isLive: tools === 'live',
    appContext: context,
    limits: readLimits(limits),
    isSame,
  }
  const read = readRecording(recording)
  const played = await playRecording({ ...scene, recording: read }, [], differences)
  if (differences.length > 0) throw sessionDiffersError(read.session, differences)
  return played
}

const optionRules: OptionRules<ReplaySessionOptions> = {
  tools: choiceRule('log', 'live'),
  context: null,
  limits: null,
  isSame: functionRule('a function of the recorded and the current result'),
}

function readLimits(limits: NonNullable<ReplaySessionOptions['limits']>): Partial<AgentConfig['limits']> {
  try {
    const whole = overrideLimits({} as AgentConfig, limits).limits
    const keys = Object.keys(limits) as (keyof AgentConfig['limits'])[]
    return Object.fromEntries(keys.map((key) => [key, whole[key]]))
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
  for (const one of compareAgents(recording.agent, present, called))
    differences.push({ ...one, run: null, step: null, record: null, path })
  const { folded, calls, notes, differences: found } = await playRecords(scene)
  differences.push(...found.map((one) => ({ ...one, path })))
  const subAgents: SessionReplay[] = []
  for (const { tool, speaker, recording: child } of recording.subAgents) {
    const delegate = getSpeakerTools(parts.tools, speaker).get(tool)?.delegate
    const host = delegate && subAgentByDelegate.get(delegate)
    // A missing tool has already been reported.
    if (!host) continue
    const deeper = {
      ...scene,
      recording: readRecording(child),
      parts: host.parts,
      config: host.config,
      policiesAbove: getPoliciesBelow(getSpeakerParts(parts, speaker), scene, tool),
      tagsAbove: scene.tagsAbove ?? folded.tags,
    }
    subAgents.push(await playRecording(deeper, [...path, tool], differences))
  }
  const last = recording.records.at(-1)?.seq ?? 0
  const isCut = recording.messages === null && recording.records[0]?.reached !== undefined
  const { tools: traits = {}, features } = folded.run?.context ?? {}
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
    runs: folded.runs,
    calls,
    state: folded.run?.context.state ?? null,
    reason: folded.run?.context.reason ?? null,
    notCompared: [...unknown, ...notes],
    subAgents,
  }
}

/** The steps that call each tool, without names that the model made up. */
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
  const lines = differences.slice(0, maxShownDifferences).map(({ path, run, step, message }) => {
    const where = [
      ...(path.length > 0 ? [`sub-agent ${path.join(' › ')}`] : []),
      ...(run !== null && run > 1 ? [`run ${run}`] : []),
      ...(step === null ? [] : [`step ${step}`]),
    ].join(', ')
    return where === '' ? message : `${where[0]?.toUpperCase()}${where.slice(1)}: ${message}`
  })
  const more = differences.length - lines.length
  if (more > 0) lines.push(`… and ${more} more.`)
  const advice =
    `If the change is intended, record it again: statewright sessions export ${quoteShellWord(session)} --as test --update, with the ` +
    'options of the first recording, or record a new session of the changed agent.'
  return new ReplayError(
    'session_differs',
    [`Session '${session}' replays differently from its recording.`, ...lines, advice].join('\n\n'),
    session,
    { differences },
  )
}

const featureWords: Record<keyof Features, string> = {
  inputShields: 'input shields',
  outputShields: 'output shields',
  callShields: 'call shields',
  resultShields: 'result shields',
  retrieval: 'a memory',
  fitting: 'context trimming',
  userGuards: 'custom guards',
  structuredOutput: 'an output schema',
  stopWhen: 'a stopWhen',
  prepareStep: 'a prepareStep or dynamic instructions',
}

function explainDifference({ run: one }: FoldedSession, { run: other }: FoldedSession): string[] {
  if (!one || !other) return []
  const [then, now] = [one.context, other.context]
  const settings = listLeafChanges(then.config, now.config).map(
    ({ path, before, after }) => `${path} was ${formatValue(before)} and is now ${formatValue(after)}`,
  )
  const features = listLeafChanges(then.features, now.features).map(({ path, after }) => {
    const words = featureWords[path as keyof Features] ?? path
    return after === true ? `it now has ${words}` : `it no longer has ${words}`
  })
  const tools = Object.keys(then.tools)
    .filter((name) => now.tools[name] !== undefined)
    .flatMap((name) =>
      listLeafChanges(then.tools[name], now.tools[name]).map(
        ({ path, after }) => `tool '${name}' ${after === true ? 'is now' : 'is no longer'} ${path}`,
      ),
    )
  return [...settings, ...features, ...tools]
}

type RecordingRow = ReadableRecording['records'][number]

/** Plays both agents side by side, with the same events unless the current one would act differently. */
async function playRecords(scene: PlayScene) {
  const { session, records, messages: digests } = scene.recording
  const differences: Omit<SessionDifference, 'path'>[] = []
  const first = records.slice(0, 1).map(toRecord)
  const [then, now] = [createFoldedSession(first), createFoldedSession(first)]
  const live = scene.isLive ? createLiveTools(scene.parts, scene.appContext) : null
  const { reported, notes, adaptEntry } = createCurrentAgent(scene, live, () => scene.tagsAbove ?? now.tags)
  let calls = 0

  await playAll().finally(() => live?.stopAll())
  return { folded: now, calls, notes, differences }

  async function playAll(): Promise<void> {
    for (const row of records) if (!(await playRow(row))) return
    compareEnd()
  }

  /** Returns false if the agents are in different places, so that later records cannot be compared. */
  async function playRow(row: RecordingRow): Promise<boolean> {
    const { seq: _seq, at: _at, hidden = false, reached, ...content } = row
    const entry = content as RecordContent
    // The snapshot contains nothing new.
    if (entry.type === 'snapshot' && now.run) return true
    if (hidden) notes.add(`record ${row.seq}, where shields withheld or changed content`)
    const found: FoundDifference[] = []
    const adapted = await adaptEntry(entry, hidden, now.run?.context, found).catch((error: unknown) => {
      throw error instanceof StatewrightError ? error : damagedError(row, error)
    })
    applyEntry(then, row, entry)
    applyEntry(now, row, adapted)
    for (const one of found) addDifference(row, one)
    if (!comparePlaces(row, entry, reached, found)) return false
    if (entry.type === 'event' && /^TOOL_(RESULT|OUTPUT)$/.test(entry.event.type)) calls += 1
    if (now.run) live?.startCalls(now.run.context)
    compareMessages(row)
    return true
  }

  function applyEntry(folded: FoldedSession, row: RecordingRow, entry: RecordContent): void {
    try {
      applyOpenedRecord(folded, toRecord(row), entry, session)
    } catch (error) {
      throw damagedError(row, error)
    }
  }

  function damagedError({ seq }: RecordingRow, cause: unknown): ReplayError {
    const text = `The recording of session '${session}' cannot be read past record ${seq}: ${describeError(cause)}`
    return new ReplayError('damaged_recording', text, session, { cause })
  }

  function comparePlaces(
    row: RecordingRow,
    entry: RecordContent,
    reached: string | null | undefined,
    found: readonly FoundDifference[],
  ): boolean {
    const [thenAt, nowAt] = [getPlace(then), getPlace(now)]
    const nameCall = (id: string) => then.run?.context.calls.find((call) => call.id === id)?.name
    const after = `After ${describeEntry(entry, nameCall)} (record ${row.seq}) the run was in`
    const differ = (by: 'chart' | 'state', was: string | null, is: string | null, verb: string, why = '') => {
      const [recorded, present] = [was ?? 'nowhere', is ?? 'nowhere']
      const message = `${after} ${recorded}${verb} ${present}.${why}`
      addDifference(row, { by, subject: null, recorded, now: present, message })
      return false
    }
    if (reached !== undefined && reached !== thenAt)
      return differ('chart', reached, thenAt, '; this version of Statewright leads to')
    if (thenAt === nowAt) return true
    const reasons = explainDifference(then, now)
    const why =
      reasons.length > 0
        ? `\nChanges of the agent:\n${reasons.map((line) => `  ${line}`).join('\n')}`
        : found.length > 0
          ? ' This follows from the difference above.'
          : ''
    return differ('state', thenAt, nowAt, ' and is now in', why)
  }

  function compareMessages(row: RecordingRow): void {
    const [before, after] = [then.run?.context, now.run?.context]
    if (!before || !after || !comparableStates.test(getPlace(now) ?? '')) return
    for (const [i, message] of after.messages.entries()) {
      const other = before.messages[i]
      if (other === message || (other && digestMessage(other) === digestMessage(message))) continue
      const key = message.role === 'tool' ? message.tool_call_id : message.id
      if (reported.has(key)) continue
      reported.add(key)
      const [recorded, present] = [formatContent(other), formatContent(message)]
      const text = `Message ${message.id} (${message.role}) is different:\n${formatTextDifference(recorded, present)}`
      addDifference(row, { by: 'message', subject: message.id, recorded, now: present, message: text })
    }
    const [recorded, present] = [before.nudges.join('\n\n'), after.nudges.join('\n\n')]
    if (recorded === present) return
    const text = `The guards' message to the model with this request is different:\n${formatTextDifference(recorded, present)}`
    addDifference(row, { by: 'guidance', subject: null, recorded, now: present, message: text })
  }

  function compareEnd(): void {
    const fault = findSessionFault(then)
    if (fault !== null) {
      const text = `The recording of session '${session}' is inconsistent (${fault}). Record it again.`
      throw new ReplayError('damaged_recording', text, session)
    }
    const last = records.at(-1)
    if (digests === null || !last) return
    const messages = then.run?.context.messages ?? then.state.messages
    const length = Math.max(digests.length, messages.length)
    const isOther = (i: number): boolean => !messages[i] || digestMessage(messages[i]) !== digests[i]
    const at = Array.from({ length }, (_, i) => i).find(isOther)
    if (at === undefined) return
    const message = messages[at]
    const present = formatContent(message)
    const text = `Message m${at + 1} is different with this version of Statewright. It is now:\n  ${present}`
    const subject = message?.id ?? null
    addDifference(last, { by: 'chart', subject, recorded: '(a fingerprint)', now: present, message: text })
  }

  function addDifference({ seq }: RecordingRow, found: FoundDifference): void {
    const { run, runs } = now
    differences.push({ ...found, run: runs || null, step: run?.context.steps || null, record: seq })
  }
}

/** States before a request or at rest. */
const comparableStates = /asking\.(requesting|concluding)$|^WAITING_FOR_INPUT|^[A-Z_]+( \(done\))?$/

function formatContent(message: AgentContext['messages'][number] | undefined): string {
  if (!message) return '(none)'
  const { id: _id, createdAt: _createdAt, ...content } = message
  return JSON.stringify(content)
}

interface PlayScene {
  recording: ReadableRecording
  parts: AgentParts
  config: AgentConfig
  standIn: StandIn
  isLive: boolean
  /** The policies of the parent run, for the session of a sub-agent. */
  policiesAbove?: PoliciesAbove | undefined
  /** The tags of the parent's session, for the session of a sub-agent. */
  tagsAbove?: SessionTags
  appContext: unknown
  limits: Partial<AgentConfig['limits']>
  isSame: ((recorded: string, now: string, call: { name: string; arguments: string }) => boolean) | undefined
}

type Traits = Record<string, ToolTraits>

/** Adapts recorded entries to what the current agent would do, and adds the differences to `found`. */
function createCurrentAgent(scene: PlayScene, live: LiveTools | null, tags: () => SessionTags) {
  const { recording, parts, standIn, appContext, policiesAbove, isSame } = scene
  const reported = new Set<string>()
  const notes = new Set<string>()
  const uncleared = new Set<string>()

  /** Preserves whether sub-agents had a store for their logs. */
  function createTraits(then: Traits, speaker: string | null | undefined): Traits {
    const wasKept = Object.values(then).some(({ delegate }) => delegate)
    const { traits } = getSpeakerTools(parts.tools, speaker)
    const adapted = Object.entries(traits).map(
      ([name, { delegate, ...others }]) =>
        [name, { ...others, ...(delegate && wasKept && { delegate }) }] as const,
    )
    return Object.fromEntries(adapted)
  }

  function createRunParts(then: Pick<AgentContext, 'config' | 'tools'> & { speaker?: string | null }) {
    const config = mergeConfig(then.config, recording.agent.config, scene.config, scene.limits)
    const tools = createTraits(then.tools, then.speaker)
    return { config, tools, features: getFeatures(parts, config) }
  }

  async function adaptEntry(
    entry: RecordContent,
    isHidden: boolean,
    context: AgentContext | undefined,
    found: FoundDifference[],
  ): Promise<RecordContent> {
    if (entry.type === 'start') {
      const input = completeInput(entry.input)
      return { ...entry, input: { ...input, ...createRunParts(input) } }
    }
    if (entry.type === 'snapshot') {
      const then = entry.state.context as AgentContext
      const input = completeInput({ ...then, speaker: '', now: 0, input: [] })
      const runParts = createRunParts({ ...input, speaker: then.speaker })
      return { ...entry, state: { ...entry.state, context: { ...then, ...runParts } } }
    }
    if (entry.type !== 'event' || !context) return entry
    return { ...entry, event: await adaptEvent(entry.event, isHidden, context, found) }
  }

  async function adaptEvent(
    event: AgentMachineEvent,
    isHidden: boolean,
    context: AgentContext,
    found: FoundDifference[],
  ): Promise<AgentMachineEvent> {
    switch (event.type) {
      case 'xstate.done.actor.model':
      case 'xstate.done.actor.conclusion': {
        const { output } = event
        if (!isHidden) return { ...event, output: await adaptAnswer(output) } as AgentMachineEvent
        for (const { id } of output.response.toolCalls) uncleared.add(id)
        return event
      }
      case 'TOOL_RESULT': {
        const call = context.calls.find(({ id }) => id === event.callId)
        const result = call && (await adaptResult(event.result, call))
        return result ? { ...event, result } : event
      }
      case 'RESUMED':
        return event.tools ? { ...event, tools: createTraits(event.tools, context.speaker) } : event
      case 'HANDED_OFF':
        return { ...event, tools: createTraits(event.tools, event.to) }
      default:
        return event
    }

    async function adaptAnswer(output: ModelOutput): Promise<ModelOutput> {
      const { toolCalls } = output.response
      const fit = standIn.output ? {} : await checkOutput(output)
      if (standIn.tools) return { ...output, ...fit }
      const tools = getSpeakerTools(parts.tools, context.speaker)
      const speaker = getSpeakerParts(parts, context.speaker)
      const needs = await prepareCalls(toolCalls, tools, {
        ...toPrepareOptions(speaker, context, { context: appContext, policiesAbove, tags }, new CallAbort()),
        clock: systemClock,
      })
      const compareCall = async (then: ModelOutput['calls'][number], i: number) => {
        const now = needs[i]
        const called = toolCalls[i]?.function
        if (!now || !called || then.approvalTimedOut || getFate(then) === getFate(now)) return then
        const tool = tools.get(called.name)
        const isBlind = typeof tool?.needsApproval === 'function' && appContext === undefined
        const hint = isBlind
          ? ' (Its needsApproval was called without an app context. Pass it as { context }.)'
          : ''
        const isValid = tool === undefined || (await parseArguments(tool, called.arguments)).ok
        const [recorded] = needsWords[getFate(then)]
        const isRefused = getFate(now) === 'nobody' && !isValid
        const present = isRefused ? 'is refused for invalid arguments' : needsWords[getFate(now)][1]
        const message = `${formatCall(called)} ${recorded}, and ${present} now.${hint}`
        found.push({ by: 'approval', subject: called.name, recorded, now: present, message })
        return now
      }
      return { ...output, calls: await Promise.all(output.calls.map(compareCall)), ...fit }
    }

    async function checkOutput(output: ModelOutput): Promise<Pick<ModelOutput, 'outputProblem'>> {
      const kind = classifyResponse(output.response)
      if (!parts.output || (kind !== 'answer' && kind !== 'empty')) return {}
      await parts.output.ready?.()
      const reading = await readOutput(output.response.text, parts.output)
      const now = reading.ok ? null : reading.problem
      const then = output.outputProblem ?? null
      if ((now === null) !== (then === null)) {
        const message =
          now === null
            ? `The answer now matches the output schema; it did not when recorded: ${then ?? ''}`
            : `The answer no longer matches the output schema: ${now}`
        found.push({ by: 'output', subject: 'output', recorded: then ?? 'fits', now: now ?? 'fits', message })
      }
      return { outputProblem: now }
    }

    async function adaptResult(result: ToolResult, call: BatchCall): Promise<ToolResult | undefined> {
      const tool = getSpeakerTools(parts.tools, context.speaker).get(call.name)
      if (call.hosted || tool?.delegate || tool?.client || uncleared.has(call.id)) return undefined
      const liveResult = live?.getResult(context, call.id)
      if (liveResult) return compareLiveResult(result, await liveResult, call)
      const { status, durationMs } = result
      const hasRun = status === 'ok' || status === 'error' || status === 'denied' || status === 'timeout'
      if (standIn.tools || (!hasRun && status !== 'invalid_arguments')) return undefined
      if (!tool) {
        reported.add(call.id)
        return { status: 'unknown_tool', content: `There is no tool '${call.name}'.`, durationMs }
      }
      const parsed = await parseArguments(tool, call.arguments)
      if (parsed.ok === hasRun) return undefined
      const [recorded, now] = parsed.ok ? ['did not match', 'match'] : ['matched', 'do not match']
      const words = parsed.ok ? "now match the tool's schema" : "no longer match the tool's schema"
      const why = parsed.ok ? result.content : parsed.message
      const message = `The arguments of ${formatCall(call)} ${words}: ${why}`
      reported.add(call.id)
      found.push({ by: 'arguments', subject: call.name, recorded, now, message })
      return parsed.ok ? undefined : { status: 'invalid_arguments', content: parsed.message, durationMs }
    }

    function compareLiveResult(then: ToolResult, now: ToolResult | null, call: BatchCall) {
      if (now === null) return undefined
      const isScreened = context.features.resultShields || isHidden
      if (isScreened)
        notes.add(`the results of ${call.name}, because shields review them before they are stored`)
      const isOther =
        then.status !== now.status ||
        (!isScreened &&
          (!isSameResult(then.content, now.content, call) ||
            JSON.stringify(then.media ?? []) !== JSON.stringify(now.media ?? [])))
      if (!isOther) return undefined
      reported.add(call.id)
      const statuses = then.status === now.status ? '' : ` (${then.status} then, ${now.status} now)`
      const message = `${formatCall(call)} returns a different result${statuses}:\n${formatTextDifference(then.content, now.content)}`
      found.push({ by: 'result', subject: call.name, recorded: then.content, now: now.content, message })
      return { ...now, durationMs: then.durationMs }
    }
  }

  function isSameResult(then: string, now: string, { name, arguments: text }: BatchCall): boolean {
    if (!isSame) return maskVolatile(then) === maskVolatile(now)
    try {
      return isSame(then, now, { name, arguments: text })
    } catch (cause) {
      throw new ReplayError('invalid_option', `isSame threw: ${describeError(cause)}`, 'isSame', { cause })
    }
  }

  return { reported, notes, adaptEntry }
}

type LiveTools = ReturnType<typeof createLiveTools>

function createLiveTools(parts: AgentParts, appContext: unknown) {
  const running = new Map<string, { call: RunningCall; result: Promise<ToolResult | null> }>()

  const toKey = ({ runId, batchNumber }: AgentContext, callId: string): string =>
    `${runId}.${batchNumber}:${callId}`

  /** Stops the calls that the run does not wait for. */
  function stopOthers(keys: ReadonlySet<string>): void {
    for (const [key, { call }] of running) {
      if (keys.has(key)) continue
      running.delete(key)
      call.stop(new Error('The replayed run continued without this call.'))
    }
  }

  return {
    /** Starts the run's open calls, and stops calls that the run no longer waits for. */
    startCalls(context: AgentContext): void {
      const open = context.calls.filter(({ started, result }) => started === true && result === undefined)
      stopOthers(new Set(open.map(({ id }) => toKey(context, id))))
      for (const call of open) {
        const key = toKey(context, call.id)
        const tools = getSpeakerTools(parts.tools, context.speaker)
        const tool = tools.get(call.name)
        // Calls executed by the provider are part of the answer. Sub-agents are replayed from their own recordings.
        if (running.has(key) || call.hosted || tool?.delegate || tool?.client) continue
        let end: (result: ToolResult | null) => void = () => undefined
        const result = new Promise<ToolResult | null>((resolve) => (end = resolve))
        const { runId, sessionId, batchNumber, config } = context
        const options = {
          tools,
          defaultTimeoutMs: config.toolCalls.timeoutMs,
          maxResultChars: config.toolCalls.maxResultChars,
          clock: systemClock,
          context: appContext,
          runId,
          sessionId,
          batchId: `${runId}.${batchNumber}`,
          onProgress: () => undefined,
          onCallEnd: (_call: RunningCall, ended: ToolResult | null) => end(ended),
        }
        const started = new RunningCall(call, options)
        running.set(key, { call: started, result })
      }
    },
    getResult: (context: AgentContext, callId: string) => running.get(toKey(context, callId))?.result,
    stopAll: () => stopOthers(new Set()),
  }
}

/** The parts of the current agent, or of the first agent if the current agent is unknown. */
function getSpeakerParts(parts: AgentParts, speaker: string | null | undefined): AgentParts {
  return isLostSpeaker(parts.tools, speaker) ? parts : toSpeaker(parts, speaker)
}

const getFate = (call: ModelOutput['calls'][number]) => (isDenied(call) ? 'denied' : call.needs)
