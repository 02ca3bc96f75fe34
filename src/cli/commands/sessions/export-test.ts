import { quoteShellWord } from '../../../core/format/shell-words.js'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import type { Agent, AgentOptions } from '../../../core/agent/agent-options.js'
import { internalsByAgent, createDefinitionFactory } from '../../../core/agent/agent-internals.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import {
  ReplayError,
  replaySession,
  createRecordedAgent,
  recordSession,
  type Recording,
} from '../../../testing/index.js'
import { formatRunnerImport, type TestRunner } from '../../../testing/generate-tests.js'
import { parseRunner } from '../common-options.js'
import { takeRecording, toRecordedAgent } from '../../../testing/play/record-session.js'
import { badUsageError, CliError } from '../../cli-error.js'
import type { CliIO } from '../../command.js'
import { loadAgent } from '../../load-agent.js'
import { loadModule } from '../../load-module.js'
import { loadTools } from '../../load-tools.js'
import { describeReadError } from '../../load-file.js'
import { createAgent } from '../../../core/agent/agent.js'
import { openRecord } from '../../../core/sessions/log/log-record.js'
import type { ModelProvider } from '../../../core/models/provider.js'
import type { ToolEntry } from '../../../core/tools/tool-set.js'
import type { RecordedAgent } from '../../../testing/play/recording.js'
import { loadConfig } from '../../load-config.js'

/** The options of the original run that describe its agent. */
interface OriginalRunOptions {
  config: string | undefined
  tools: string | undefined
  instructions: string | undefined
}

/** What is known about the agent that `statewright run` made for a session; null: nothing. */
async function findRunAgent(
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

/** The parts of a session test. Paths are relative to the test. */
interface TestFile {
  session: string
  runner: TestRunner
  fixture: string
  /** The module with the agent, and whether it exports a function that makes one; null: made from the recording. */
  agent: { module: string; isFunction: boolean } | null
  /** For an agent that is made from the recording: its prompt, if known, and the module of its tools. */
  instructions: string | null | undefined
  tools: string | null
  isLive: boolean
}

/** The source of a test that plays a recorded session. */
function formatTestFile(file: TestFile): string {
  const { session, runner, fixture, agent, isLive } = file
  const play = `replaySession(agent, recording${isLive ? ", { tools: 'live' }" : ''})`
  return [
    '// A session that plays as it was recorded: no model is asked, and no key is needed.',
    `// It was written by 'statewright sessions export ${session} --as test', and is yours to change.`,
    "import { readFileSync } from 'node:fs'",
    formatRunnerImport(runner, 'test'),
    ...(agent?.isFunction ? ["import { memoryStore } from 'statewright'"] : []),
    `import { replaySession${agent ? '' : ', createRecordedAgent'} } from 'statewright/testing'`,
    ...(agent
      ? [`import ${agent.isFunction ? 'makeAgent' : 'agent'} from ${quoteLiteral(agent.module)}`]
      : []),
    ...(file.tools === null ? [] : [`import tools from ${quoteLiteral(file.tools)}`]),
    '',
    `const recording = JSON.parse(readFileSync(new URL(${quoteLiteral(fixture)}, import.meta.url), 'utf8'))`,
    ...(agent?.isFunction ? ['const agent = await makeAgent({ store: memoryStore() })'] : []),
    ...(agent ? [] : formatRecordedAgent(file)),
    '',
    `test(${quoteLiteral(`session ${session} plays as it was recorded`)}, async () => {`,
    `  await ${play}`,
    '})',
    '',
  ].join('\n')
}

function formatRecordedAgent({ instructions, tools }: TestFile): string[] {
  const changes = [
    ...(instructions === undefined ? [] : [`  instructions: ${quoteLiteral(instructions ?? '')},`]),
    ...(tools === null ? [] : ['  tools,']),
  ]
  return [
    '',
    "// The agent as it was recorded. Put your own in its place: import { agent } from './agent.mjs'",
    ...(changes.length === 0
      ? ['const agent = createRecordedAgent(recording)']
      : ['const agent = createRecordedAgent(recording, {', ...changes, '})']),
  ]
}

/** A string literal on one line. */
function quoteLiteral(text: string): string {
  const inside = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${inside.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`
}

export interface TestExport extends OriginalRunOptions {
  agent: string | undefined
  isLive: boolean
  runner: string | undefined
  out: string | undefined
  force: boolean
  update: boolean
}

/** Writes a session as a test with its recording. Plays it first, so that the test passes when it is written. */
export async function exportTest(
  store: SessionStore,
  session: string,
  request: TestExport,
  io: CliIO,
): Promise<void> {
  const { agent: module, isLive, tools, out, force, update } = request
  if (isLive && module === undefined && tools === undefined)
    throw badUsageError(
      '--tools live needs tools: name their module with --tools MODULE, too, or an --agent MODULE.',
      '--tools',
    )
  const runner = parseRunner(request.runner)
  const name = session.replaceAll(/[^\w.-]/g, '_')
  const path = resolve(io.cwd, out ?? `${name}.test.mjs`)
  const fixture = path.replace(/(\.test|\.spec)?\.[cm]?[jt]sx?$/, '') + '.session.json'
  const isThere = await fileExists(path)
  if (!force && !update) for (const file of [path, fixture]) await refuseReplacing(file, io)

  const { recording, agent } = await takeSessionRecording(store, session, request, io)
  const { notCompared } = await checkPlayable(agent, recording)
  const at = (file: string) => toModulePath(importPath(dirname(path), resolve(io.cwd, file)), path)
  await writeTestFile(fixture, `${JSON.stringify(recording, null, 1)}\n`, io)
  // The user may have changed the test.
  const keeps = update && isThere && !force
  if (!keeps) {
    const text = formatTestFile({
      session,
      runner,
      fixture: importPath(dirname(path), fixture),
      agent:
        module === undefined ? null : { module: at(module), isFunction: await exportsFunction(module, io) },
      instructions: recording.agent.instructions,
      tools: module !== undefined || tools === undefined ? null : at(tools),
      isLive,
    })
    await writeTestFile(path, text, io)
  }
  const shown = (file: string) => relative(io.cwd, file) || file
  io.stdout.write(
    keeps
      ? `Took a new recording: ${shown(fixture)}. The test ${shown(path)} is unchanged.\n`
      : `Wrote ${shown(path)} and ${shown(fixture)}. Run it: ${formatTestCommand(runner, shown(path))}\n`,
  )
  for (const what of notCompared) io.stderr.write(`statewright: not compared: ${what}\n`)
  if (recording.agent.instructions === undefined)
    io.stderr.write(
      'statewright: The agent of this session is not known. Name it with --agent MODULE, or give the options of its run: ' +
        '--config, --tools, --instructions.\n',
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
      const text = `'${module}' has an agent of another copy of Statewright. Use the command of that copy.`
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
    // Settings of the run and later changes of the agent cannot be told apart; only limits belong to the run.
    const { check: _check, ...whole } = recording
    const { config: _config, ...then } = recording.agent
    await replaySession(agent, { ...whole, agent: then })
    return await replaySession(agent, recording)
  } catch (error) {
    if (!(error instanceof ReplayError) || error.code !== 'session_differs') throw error
    // The advice at the end is for a test that fails later.
    const message = error.message.replace(/\n\n[^\n]*$/, '')
    throw new CliError(
      'session_differs',
      `${message}\n\nNothing was written: this is not the agent that the session was recorded with. Run the session anew, and export that.`,
      recording.session,
      { cause: error },
    )
  }
}

function formatTestCommand(runner: TestRunner, path: string): string {
  const file = quoteShellWord(path)
  switch (runner) {
    case 'jest':
      return `NODE_OPTIONS=--experimental-vm-modules npx jest ${file}`
    case 'vitest':
      return `npx vitest run ${file}`
    default:
      return `node --test ${file}`
  }
}

async function exportsFunction(module: string, io: CliIO): Promise<boolean> {
  const { default: exported } = await loadModule(
    module,
    io.cwd,
    (why) => new CliError('bad_agent', `--agent: ${why}`),
  )
  return typeof exported === 'function'
}

/** The compiler takes no import of `.ts` from a TypeScript file without an option for it. */
function toModulePath(module: string, test: string): string {
  return /\.[cm]?tsx?$/.test(test) ? module.replace(/\.([cm]?)tsx?$/, '.$1js') : module
}

function importPath(from: string, to: string): string {
  const path = relative(from, to).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

async function fileExists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function refuseReplacing(path: string, { cwd }: CliIO): Promise<void> {
  if (!(await fileExists(path))) return
  const text = `'${relative(cwd, path)}' exists already. Take a new recording for it with --update, replace all with --force, or name another file.`
  throw new CliError('unwritable_file', `--out: ${text}`, '--out')
}

/** Unlike an export, a test gets the usual file mode. */
async function writeTestFile(path: string, text: string, { cwd }: CliIO): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  } catch (cause) {
    const file = relative(cwd, path) || join('.', path)
    const why = describeReadError(cause, file).replace('may not be read', 'may not be written')
    throw new CliError(
      'unwritable_file',
      `--out: ${why.replace('cannot be read', 'cannot be written')}`,
      '--out',
      { cause },
    )
  }
}
