import { stat } from 'node:fs/promises'
import { dirname, relative, resolve } from 'node:path'
import {
  type AgentInternals,
  createDefinitionFactory,
  internalsByAgent,
} from '../../../core/agent/agent-internals.js'
import type { Agent, AgentOptions } from '../../../core/agent/agent-options.js'
import { createAgent } from '../../../core/agent/agent.js'
import { quoteShellWord } from '../../../core/format/shell-words.js'
import type { ModelProvider } from '../../../core/models/provider.js'
import { openRecord } from '../../../core/sessions/log/log-record.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import { formatRunnerImport, quoteText, type TestRunner } from '../../../testing/generate-tests.js'
import {
  createRecordedAgent,
  type Recording,
  recordSession,
  ReplayError,
  replaySession,
} from '../../../testing/index.js'
import { takeRecording, toRecordedAgent, type RecordedAgent } from '../../../testing/play/recording.js'
import { badUsageError, CliError, type CliIO, writeNotice } from '../../command.js'
import { createRefusal, loadAgent, loadConfig, loadModule, loadTools } from '../../load.js'
import { toImportPath } from '../machines.js'
import { writeOutput } from '../../output.js'

type OriginalRunOptions = Record<'config' | 'tools' | 'instructions', string | undefined>

/** The known parts of the agent that `statewright run` created for a session, or null. */
async function findRunAgent(
  { config, tools, instructions }: OriginalRunOptions,
  store: SessionStore,
  session: string,
  io: CliIO,
): Promise<RecordedAgent | null> {
  if (config === undefined && tools === undefined && instructions === undefined) {
    const { createDemoTools, demoSettings } = await import('../../demo.js')
    const demo = createRehearsalAgent({ ...demoSettings, tools: createDemoTools() })
    return (await hasStartedSession(demo, store, session)) ? describeAgent(demo) : null
  }
  const { $schema: _schema, model: _model, ...settings } = await loadConfig(config, io.cwd)
  const agent = createRehearsalAgent({
    ...(settings as Partial<AgentOptions>),
    ...(instructions !== undefined && { instructions }),
    tools: tools === undefined ? [] : await loadTools(tools, io.cwd),
  })
  const { tools: specs, ...rest } = describeAgent(agent)
  // Without their module, the tools are unknown.
  return tools === undefined ? rest : { ...rest, tools: specs ?? [] }
}

function createRehearsalAgent(options: Partial<AgentOptions>): Agent {
  return createAgent({ ...options, prices: null, model: rehearsalModel } as AgentOptions)
}

function describeAgent(agent: Agent): RecordedAgent {
  const { parts } = internalsByAgent.get(agent) as AgentInternals
  return toRecordedAgent(parts, agent.config)
}

/** Whether all runs in the log have this agent's definition. */
async function hasStartedSession(agent: Agent, store: SessionStore, session: string): Promise<boolean> {
  const { parts } = internalsByAgent.get(agent) as AgentInternals
  const { hash } = createDefinitionFactory(parts)(undefined)
  const records = await store.read(session)
  const starts = records.flatMap((record) => {
    if (record.type !== 'start') return []
    const entry = openRecord(record, record.seq - 1, session)
    return entry.type === 'start' ? [entry.definition?.hash] : []
  })
  return starts.length > 0 && starts.every((started) => started === hash)
}

/** The model that `statewright run --rehearsal` uses. */
const rehearsalModel: ModelProvider = {
  provider: 'rehearsal',
  model: 'rehearsal',
  request: () => Promise.reject(new Error('No model is called here.')),
}

/** All paths are relative to the test. */
interface TestFile {
  session: string
  runner: TestRunner
  fixture: string
  /** The module of the agent, and whether it exports a function. Null if the agent is created from the recording. */
  agent: { module: string; isFunction: boolean } | null
  /** The prompt, if known, and the module of the tools. Both are for an agent that is created from the recording. */
  instructions: string | null | undefined
  tools: string | null
  isLive: boolean
}

function formatTestFile(file: TestFile): string {
  const { session, runner, fixture, agent, tools, isLive } = file
  const load = `readFileSync(new URL(${quoteText(fixture)}, import.meta.url), 'utf8')`
  const imports = [
    "import { readFileSync } from 'node:fs'",
    formatRunnerImport(runner, 'test'),
    ...(agent?.isFunction ? ["import { memoryStore } from 'statewright'"] : []),
    `import { replaySession${agent ? '' : ', createRecordedAgent'} } from 'statewright/testing'`,
    ...(agent
      ? [`import ${agent.isFunction ? 'createAgent' : 'agent'} from ${quoteText(agent.module)}`]
      : []),
    ...(tools === null ? [] : [`import tools from ${quoteText(tools)}`]),
  ]
  return [
    '// Replays a recorded session without a model or a key.',
    `// Written by 'statewright sessions export ${session} --as test'. You may change it.`,
    ...imports,
    '',
    `const recording = JSON.parse(${load})`,
    ...(agent?.isFunction ? ['const agent = await createAgent({ store: memoryStore() })'] : []),
    ...(agent ? [] : formatRecordedAgent(file)),
    '',
    `test(${quoteText(`session ${session} replays as recorded`)}, async () => {`,
    `  await replaySession(agent, recording${isLive ? ", { tools: 'live' }" : ''})`,
    '})',
    '',
  ].join('\n')
}

function formatRecordedAgent({ instructions, tools }: TestFile): string[] {
  const changes = [
    ...(instructions === undefined ? [] : [`  instructions: ${quoteText(instructions ?? '')},`]),
    ...(tools === null ? [] : ['  tools,']),
  ]
  return [
    '',
    "// The recorded agent. Replace it with your own: import { agent } from './agent.mjs'",
    ...(changes.length === 0
      ? ['const agent = createRecordedAgent(recording)']
      : ['const agent = createRecordedAgent(recording, {', ...changes, '})']),
  ]
}

export interface TestExport extends OriginalRunOptions {
  agent: string | undefined
  isLive: boolean
  runner: TestRunner
  out: string | undefined
  force: boolean
  update: boolean
}

/** Writes a session as a test with its recording. Replays the session first, so that the new test passes. */
export async function exportTest(
  store: SessionStore,
  session: string,
  request: TestExport,
  io: CliIO,
): Promise<void> {
  const { agent: module, isLive, runner, tools, out, force, update } = request
  if (isLive && module === undefined && tools === undefined)
    throw badUsageError('--tools live needs tools: add --tools MODULE or --agent MODULE.', '--tools')
  const name = session.replaceAll(/[^\w.-]/g, '_')
  const path = resolve(io.cwd, out ?? `${name}.test.mjs`)
  const fixture = path.replace(/(\.test|\.spec)?\.[cm]?[jt]sx?$/, '') + '.session.json'
  const exists = await fileExists(path)
  const shown = (file: string) => relative(io.cwd, file) || file
  for (const file of force || update ? [] : [path, fixture]) {
    if (!(await fileExists(file))) continue
    const text = `'${shown(file)}' already exists. To store a new recording for this test, pass --update. To replace the test and its recording, pass --force. Or choose another file.`
    throw new CliError('unwritable_file', `--out: ${text}`, '--out')
  }

  const { recording, agent } = await takeSessionRecording(store, session, request, io)
  const { notCompared } = await checkPlayable(agent, recording)
  const at = (file: string): string => {
    const source = toImportPath(dirname(path), resolve(io.cwd, file))
    // TypeScript rejects imports of `.ts` without a compiler option.
    return /\.[cm]?tsx?$/.test(path) ? source.replace(/\.([cm]?)tsx?$/, '.$1js') : source
  }
  await writeOutput(`${JSON.stringify(recording, null, 1)}\n`, shown(fixture), io, { makeFolder: true })
  // The user may have changed the test.
  const isKept = update && exists && !force
  if (!isKept) {
    const refuse = createRefusal('bad_agent', '--agent')
    const exported = module === undefined ? null : (await loadModule(module, io.cwd, refuse)).default
    const text = formatTestFile({
      session,
      runner,
      fixture: toImportPath(dirname(path), fixture),
      agent: module === undefined ? null : { module: at(module), isFunction: typeof exported === 'function' },
      instructions: recording.agent.instructions,
      tools: module !== undefined || tools === undefined ? null : at(tools),
      isLive,
    })
    await writeOutput(text, shown(path), io, { makeFolder: true })
  }
  io.stdout.write(
    isKept
      ? `Stored a new recording: ${shown(fixture)}. The test ${shown(path)} is unchanged.\n`
      : `Wrote ${shown(path)} and ${shown(fixture)}. Run it: ${testCommands[runner]} ${quoteShellWord(shown(path))}\n`,
  )
  for (const what of notCompared) writeNotice(io, `not compared: ${what}`)
  if (recording.agent.instructions === undefined)
    writeNotice(
      io,
      "This session's agent is unknown. Pass it with --agent MODULE, or pass its run's options: --config, --tools, " +
        '--instructions.',
    )
}

async function takeSessionRecording(
  store: SessionStore,
  session: string,
  { agent: module, ...before }: TestExport,
  io: CliIO,
): Promise<{ recording: Recording; agent: Pick<Agent, 'config'> }> {
  if (module !== undefined) {
    const agent = await loadAgent(module, io.cwd, store)
    if (!internalsByAgent.has(agent)) {
      const text = `'${module}' exports an agent from another copy of Statewright. Use that copy's command.`
      throw new CliError('bad_agent', `--agent: ${text}`, '--agent')
    }
    return { recording: await recordSession(agent, session, { store }), agent }
  }
  const described = await findRunAgent(before, store, session, io)
  const recording = await takeRecording(store, session, described ?? {})
  const tools = before.tools === undefined ? undefined : await loadTools(before.tools, io.cwd)
  return { recording, agent: createRecordedAgent(recording, { ...(tools && { tools }) }) }
}

async function checkPlayable(agent: Pick<Agent, 'config'>, recording: Recording) {
  try {
    // Settings of the run cannot be distinguished from later changes to the agent, so only limits are compared.
    const { check: _check, ...whole } = recording
    const { config: _config, ...then } = recording.agent
    await replaySession(agent, { ...whole, agent: then })
    return await replaySession(agent, recording)
  } catch (error) {
    if (!(error instanceof ReplayError) || error.code !== 'session_differs') throw error
    // The advice at the end applies only to a test that fails later.
    const message = error.message.replace(/\n\n[^\n]*$/, '')
    throw new CliError(
      'session_differs',
      `${message}\n\nNothing was written, because this is not the agent that ran the recorded session. Run the session again, and export the new one.`,
      recording.session,
      { cause: error },
    )
  }
}

const testCommands: Record<TestRunner, string> = {
  jest: 'NODE_OPTIONS=--experimental-vm-modules npx jest',
  vitest: 'npx vitest run',
  node: 'node --test --test-force-exit',
}

const fileExists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
