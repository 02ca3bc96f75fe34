import type { CliIO, Command } from '../command.js'
import { choosePrompt } from '../prompt.js'
import { exitCodes, type ExitCode } from '../exit-codes.js'
import { followRun } from '../follow-run.js'
import { loadConfig } from '../load-config.js'
import { announceStudio, loadStudio, waitForInterrupt } from '../open-studio.js'
import { type OpenedStore, openStoreForRun } from '../open-session-store.js'
import { isRehearsal, rejectImplicitRehearsal } from '../model-setup.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { withAgent } from '../with-agent.js'
import {
  formatCarriedOptions,
  agentOptionSpecs,
  type CommonOptions,
  drainOptionSpec,
  outputOptionSpecs,
  readCommonOptions,
  inlineScenario,
  storeOptionSpec,
} from './common-options.js'
import { type OptionSpecs, parseOptions, parseWholeNumber } from '../parse-options.js'

export const runOptionSpecs = {
  ...agentOptionSpecs,
  session: { value: 'ID', about: 'continue or begin this session (default: a new one)' },
  ...storeOptionSpec,
  'max-steps': { value: 'N', about: 'stop after this number of model responses (limits.maxSteps)' },
  timeout: { value: 'MS', about: 'stop after this number of milliseconds; 0 is off (limits.timeoutMs)' },
  'no-stream': { about: 'ask for whole responses instead of streamed ones' },
  studio: { about: 'watch the run in the studio, a page on this machine, until Ctrl-C' },
  ...drainOptionSpec,
  ...outputOptionSpecs,
} satisfies OptionSpecs

export interface RunCommandOptions extends CommonOptions {
  /** Undefined: not given. `-`: stdin. */
  prompt: string | undefined
  session: string | undefined
  limits: { maxSteps?: number; timeoutMs?: number }
  stream: boolean
  studio: boolean
}

/** Reads the arguments of `statewright run`. Throws a CliError for invalid or contradictory ones. */
export function readRunOptions(args: readonly string[]): RunCommandOptions {
  const given = parseOptions(inlineScenario(args), runOptionSpecs)
  const { positionals, text, has } = given
  const maxSteps = parseWholeNumber('--max-steps', text('max-steps'), 1)
  const timeoutMs = parseWholeNumber('--timeout', text('timeout'), 0)
  return {
    ...readCommonOptions(given),
    prompt: positionals.length === 0 ? undefined : positionals.join(' '),
    session: text('session'),
    limits: { ...(maxSteps !== undefined && { maxSteps }), ...(timeoutMs !== undefined && { timeoutMs }) },
    stream: !has('no-stream'),
    studio: has('studio'),
  }
}

export const runCommand: Command = {
  name: 'run',
  about: 'Runs an agent on a prompt and shows what it does.',
  positional: '[PROMPT]',
  options: runOptionSpecs,
  notes: [
    'PROMPT is read from stdin when stdin is piped or PROMPT is -. OPENAI_API_KEY holds the key. Options override the\n' +
      'configuration file, which overrides the environment. Without a key or base URL, the built-in rehearsal is played.',
    'The session is stored, so that it can be resumed or continued: see statewright sessions --help.\n' +
      'A rehearsal is not stored, unless --session or --store is given.',
    'Exit codes: 0 completed, 1 error, 2 bad usage or configuration, 3 stopped by a limit or guardrail,\n' +
      '4 waits for input, 130 cancelled, 143 released at SIGTERM, to be resumed.',
    'Examples:\n' +
      '  statewright run --rehearsal\n' +
      '  statewright run --tools ./tools.mjs --max-steps 10 "What changed last week?"\n' +
      '  statewright run --session work --mcp "npx -y @modelcontextprotocol/server-filesystem ." "What is here?"\n' +
      '  git diff | statewright run --instructions "Review this diff." --json | jq -r .output',
  ],
  execute: async (args, io) => {
    const options = readRunOptions(args)
    const file = await loadConfig(options.config, io.cwd)
    const wantsSession = options.session !== undefined || options.store !== undefined
    if (wantsSession) rejectImplicitRehearsal(options, file, io)
    const opened: OpenedStore =
      isRehearsal(options, file, io) && !wantsSession
        ? { store: memoryStore(), isKept: false }
        : await openStoreForRun(options.store, io)
    try {
      return await runAgent(options, file, opened, io)
    } finally {
      await opened.store.close()
    }
  },
}

function runAgent(
  options: RunCommandOptions,
  file: Awaited<ReturnType<typeof loadConfig>>,
  { store, isKept }: OpenedStore,
  io: CliIO,
): Promise<ExitCode> {
  const { limits, stream, session, output } = options
  const overrides = { limits, ...(!stream && { stream }) }
  return withAgent({ options, file, store, overrides }, io, async (agent, setup) => {
    const prompt = await choosePrompt(options.prompt, setup.prompt, io)
    const studio = options.studio ? await loadStudio({ store, agent }) : undefined
    let shown: string | undefined
    try {
      const code = await followRun({
        start: (given) => {
          const run = agent.run(prompt, { ...given, ...(session !== undefined && { session }) })
          shown = run.sessionId
          studio?.attach(run)
          if (studio) announceStudio(studio, io, shown)
          return run
        },
        limits: agent.config.limits,
        view: options,
        opening: setup.opening,
        carried: isKept ? formatCarriedOptions(options) : null,
        isWatched: studio !== undefined,
        drainMs: options.drainMs,
        io,
      })
      if (setup.closing && output === 'human' && code === exitCodes.completed) {
        io.stdout.write(`\n${setup.closing}\n`)
      }
      if (studio && !io.signal.aborted && !io.sigterm.hasArrived) {
        io.stderr.write('\nThe studio stays open: Ctrl-C ends it.\n')
        await waitForInterrupt(io, studio, shown)
      }
      return code
    } finally {
      await studio?.close()
    }
  })
}
