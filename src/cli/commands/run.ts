import { defineCommand, type CliIO, type ParsedOptions } from '../command.js'
import { exitCodes, type ExitCode } from '../exit-codes.js'
import { followRun } from '../follow-run.js'
import { loadConfig } from '../load.js'
import { expectModelOptions, withAgent } from '../model-setup.js'
import { announceStudio, loadStudio, waitForInterrupt } from '../open-studio.js'
import { formatCarriedOptions, readCommonOptions, runOptions } from '../options.js'
import { canAsk, choosePrompt } from '../prompt.js'
import { closeAfter, type OpenedStore, openStoreForRun } from '../session-store.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import { omitUndefined } from '../../../guards/lib/json.js'

export const runOptionSpecs = {
  ...runOptions,
  session: { value: 'ID', about: 'continue or create this session (default: a new one)' },
  'max-steps': { value: 'N', min: 1, about: 'stop after this many model responses (limits.maxSteps)' },
  timeout: {
    value: 'MS',
    min: 0,
    about: 'stop after this many milliseconds; 0 disables the limit (limits.timeoutMs)',
  },
  'no-stream': { about: 'request complete responses instead of streams' },
  studio: { about: 'watch the run in the studio, a page on this machine, until Ctrl-C' },
} as const

export function readRunOptions(parsed: ParsedOptions<typeof runOptionSpecs>) {
  const { positionals, values } = parsed
  const { session, 'max-steps': maxSteps, timeout: timeoutMs, studio = false } = values
  return {
    ...readCommonOptions(parsed),
    /** `-` means stdin. */
    prompt: positionals.length === 0 ? undefined : positionals.join(' '),
    session,
    limits: omitUndefined({ maxSteps, timeoutMs }),
    stream: !values['no-stream'],
    studio,
  }
}

export const exitCodesNote =
  'Exit codes: 0 completed, 1 error, 2 bad usage or configuration, 3 stopped by a limit or guardrail, 4 waiting for input, ' +
  '130 cancelled, 143 released at SIGTERM and can be resumed.'

export const runCommand = defineCommand({
  name: 'run',
  about: 'Runs an agent on a prompt and shows its progress.',
  positional: '[PROMPT…]',
  options: runOptionSpecs,
  notes: [
    'PROMPT is read from stdin when stdin is piped or PROMPT is -. The API key is read from OPENAI_API_KEY. Options override the ' +
      'configuration file, which overrides the environment.',
    'The session is stored, so that it can be resumed or continued: see statewright sessions --help. A rehearsal is stored ' +
      'only with --session or --store.',
    exitCodesNote,
    'Examples:\n' +
      '  statewright run --rehearsal\n' +
      '  statewright run --tools ./tools.mjs --max-steps 10 "What changed last week?"\n' +
      '  statewright run --session work --mcp "npx -y some-server ." "What is here?"\n' +
      '  git diff | statewright run -i "Review this diff." --json | jq -r .output',
  ],
  execute: async (parsed, io) => {
    const options = readRunOptions(parsed)
    const file = await loadConfig(options.config, io.cwd)
    const isRehearsal = options.rehearsal !== false
    if (!isRehearsal) expectModelOptions(options, file, io)
    const isStored = !isRehearsal || options.session !== undefined || options.store !== undefined
    const opened = isStored
      ? await openStoreForRun(options.store, io)
      : { store: memoryStore(), isKept: false }
    return closeAfter(opened.store, () => runAgent(options, file, opened, io))
  },
})

function runAgent(
  options: ReturnType<typeof readRunOptions>,
  file: Awaited<ReturnType<typeof loadConfig>>,
  { store, isKept }: OpenedStore,
  io: CliIO,
): Promise<ExitCode> {
  const { limits, stream, session, output } = options
  const overrides = { limits, ...(!stream && { stream }) }
  return withAgent({ options, file, store, overrides }, io, async (agent, setup) => {
    const prompt = await choosePrompt(options.prompt, setup.prompt, io)
    const isUnattended = setup.answer !== undefined && !options.studio && !canAsk(options, io)
    const studio = options.studio ? await loadStudio({ store, agent }) : undefined
    let sessionId: string | undefined
    try {
      const code = await followRun({
        start: (runOptions) => {
          const run = agent.run(prompt, {
            ...runOptions,
            ...omitUndefined({ by: options.by, session }),
          })
          sessionId = run.sessionId
          studio?.attach(run)
          if (studio) announceStudio(studio, io, sessionId)
          return run
        },
        limits: agent.config.limits,
        view: options,
        opening: isUnattended
          ? `${setup.opening}\nWithout a terminal, the demo approves its own call.`
          : setup.opening,
        answers: isUnattended && setup.answer ? [setup.answer] : [],
        carried: isKept ? formatCarriedOptions(options) : null,
        isWatched: studio !== undefined,
        drainMs: options.drainMs,
        io,
      })
      if (setup.closing && output === 'human' && code === exitCodes.completed)
        io.stdout.write(`\n${setup.closing}\n`)
      if (studio && !io.signal.aborted && !io.sigterm.hasArrived) {
        io.stderr.write('\nThe studio stays open until you press Ctrl-C.\n')
        await waitForInterrupt(io, studio, sessionId)
      }
      return code
    } finally {
      await studio?.close()
    }
  })
}
