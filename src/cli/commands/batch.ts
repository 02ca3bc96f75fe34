import type { RunResult } from '../../../machines/agent/run-result.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { type AgentInternals, internalsByAgent } from '../../core/agent/agent-internals.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { checkModels } from '../../core/agent/read-parts.js'
import { systemClock } from '../../core/base/clock.js'
import { ConfigError } from '../../core/base/errors.js'
import { overrideLimits } from '../../core/config/resolve-config.js'
import { checkPriceKnown } from '../../core/effects/check-run-start.js'
import { formatMoney } from '../../core/format/format-words.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import { type BatchItem, type BatchProgress, findBatchIdFault } from '../../fleet/batch.js'
import { isUnpaid, runAll } from '../../fleet/run-all.js'
import {
  type BatchInput,
  createResultStream,
  type InputSummary,
  openBatchInput,
  openResultsFile,
  type Results,
  toBatchId,
  toResultLine,
} from '../batch/batch-files.js'
import {
  badUsageError,
  CliError,
  type CliIO,
  defineCommand,
  parseDecimal,
  type ParsedOptions,
  writeNotice,
} from '../command.js'
import { exitCodes, type ExitCode, toExitCode, toWorstExitCode } from '../exit-codes.js'
import { loadAgent } from '../load.js'
import {
  agentModuleOption,
  drainSeconds,
  expectAgentModule,
  formatCarriedOptions,
  runOptions,
  storeOption,
} from '../options.js'
import { createProgressLine } from '../output.js'
import { closeAfter, openStoreForRun } from '../session-store.js'

const optionSpecs = {
  ...agentModuleOption,
  id: {
    value: 'NAME',
    about: "the batch's id; its sessions are named NAME.LINE-ID (default: the input's name)",
  },
  out: { short: 'o', value: 'FILE', about: 'write the results to this file, one per line (default: stdout)' },
  concurrency: { value: 'N', min: 1, about: 'the number of lines to run concurrently (default: 8)' },
  'cost-limit': { value: 'USD', about: 'start no new lines once the batch has cost this amount' },
  'retry-failed': { about: 'rerun failed lines, each as a new run in its session' },
  ...storeOption,
  drain: runOptions.drain,
} as const

type BatchOptions = ReturnType<typeof readBatchOptions>

function readBatchOptions({ positionals: [input = ''], values }: ParsedOptions<typeof optionSpecs>) {
  const agent = expectAgentModule(values.agent)
  const { id = toBatchId(input), out, concurrency = 8, store, drain = drainSeconds } = values
  const fault = findBatchIdFault(id)
  if (fault !== null) throw badUsageError(`--id ${fault}.`, '--id')
  const positive = { is: (value: number) => value > 0, phrase: 'a positive amount in USD' }
  const costLimit = parseDecimal('--cost-limit', values['cost-limit'], positive)
  const retryFailed = values['retry-failed'] ?? false
  return { input, agent, id, out, concurrency, costLimit, retryFailed, store, drainMs: 1000 * drain }
}

export const batchCommand = defineCommand({
  name: 'batch',
  about: 'Runs an agent on each line of a file, and resumes where it stopped.',
  positional: 'INPUT.jsonl',
  missing: 'Pass a file with one { "id", "input" } per line.',
  options: optionSpecs,
  notes: [
    'Each line of INPUT is { "id", "input", "tags"? }, and becomes the session BATCH.LINE-ID. Each line of the results is ' +
      '{ id, session, state, reason, output, usage, cost }, in the order of the input.',
    'If the batch is killed, run the same command again. Finished lines are read from the store, and nothing runs twice. If a line ' +
      'is waiting for an answer, answer it with statewright resume, and then run the batch again.',
    'Ctrl-C parks the batch, and the same command continues it. A second Ctrl-C ends the command immediately. ' +
      'After SIGTERM no line starts, and running lines are parked after --drain SECONDS.',
    'Exit codes: 0 all completed, 1 an error or a damaged line, 2 bad usage or configuration, 3 stopped by a limit or ' +
      'guardrail, 4 a line is waiting for input, 130 parked by Ctrl-C, 143 parked at SIGTERM.',
    'Examples:\n' +
      '  statewright batch in.jsonl --agent ./agent.mjs --out out.jsonl\n' +
      '  statewright batch in.jsonl --agent ./agent.mjs --cost-limit 5 --out out.jsonl',
  ],
  execute: async (parsed, io) => {
    const options = readBatchOptions(parsed)
    const input = openBatchInput(options.input, io.cwd, options.id)
    const summary = await input.check()
    for (const { number, fault } of summary.damaged)
      writeNotice(io, `line ${number} of '${options.input}' ${fault}`)
    const more = summary.damagedCount - summary.damaged.length
    if (more > 0) writeNotice(io, `${more} more ${more === 1 ? 'line is' : 'lines are'} damaged.`)
    const { store } = await openStoreForRun(options.store, io)
    return closeAfter(store, async () => {
      const agent = (await loadAgent(options.agent, io.cwd, store)) as unknown as Agent
      await checkAgent(agent, options)
      const results =
        options.out === undefined
          ? createResultStream(io.stdout)
          : await openResultsFile(options.out, io.cwd, options.id)
      return runBatch({ options, input, summary, agent, results }, io)
    })
  },
})

/** Finds problems that would make every line fail, before the first line starts. */
async function checkAgent(agent: Agent, { agent: module, costLimit }: BatchOptions): Promise<void> {
  const { store, parts } = internalsByAgent.get(agent) as AgentInternals
  if (store === undefined)
    throw new CliError(
      'bad_agent',
      `--agent: the agent in '${module}' has no store, so the batch could not continue after a stop. ` +
        'Use the store that the command passes in: export default ({ store }) => createAgent({ store, … }).',
      '--agent',
    )
  checkModels(parts)
  if (costLimit === undefined) return
  try {
    await checkPriceKnown(parts, overrideLimits(agent.config, { costLimit }), noUsage)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new CliError(error.code, `--cost-limit: ${error.message}`, '--cost-limit', { cause: error })
  }
}

interface BatchParts {
  options: BatchOptions
  input: BatchInput
  summary: InputSummary
  agent: Agent
  results: Results
}

async function runBatch(
  { options, input, summary, agent, results }: BatchParts,
  io: CliIO,
): Promise<ExitCode> {
  const { id, concurrency, retryFailed, costLimit, drainMs } = options
  const line = createProgressLine(io, systemClock, { hasData: options.out === undefined })
  const codes = new Set<ExitCode>(summary.damagedCount > 0 ? [exitCodes.error] : [])
  const parking = new AbortController()
  const park = (): void => parking.abort()
  const none = { done: 0, running: 0, waiting: 0, failed: 0, cost: 0, timeLeftMs: null }
  let progress: BatchProgress = { total: summary.count, ...none }
  let isDraining = false as boolean
  let remaining = summary.count
  let unpaid = 0
  const isCostLimitReached = (): boolean => costLimit !== undefined && (progress.cost ?? 0) >= costLimit
  async function* readUntilStopped(): AsyncGenerator<BatchItem> {
    for await (const { item } of input.readItems()) {
      if (isDraining || isCostLimitReached()) return
      yield item
    }
  }

  // A reader may close stdout (`| head`).
  if (options.out === undefined) io.stdout.on('error', park)
  let timer: ReturnType<typeof setTimeout> | undefined
  const removeListener = io.sigterm.setListener(() => {
    isDraining = true
    line.note(
      `statewright: the process is shutting down: running lines continue for at most ${drainMs / 1000} s.`,
    )
    timer = setTimeout(park, drainMs)
  })
  try {
    const batch = runAll(agent, readUntilStopped(), {
      id,
      concurrency,
      retryFailed,
      total: summary.count,
      signal: AbortSignal.any([parking.signal, io.signal]),
      onProgress: (now) => {
        progress = now
        line.update(formatProgress(now), formatBar(now))
      },
    })
    for await (const result of batch) {
      remaining -= 1
      if (result.result && isUnpaid(result.result)) unpaid += 1
      codes.add(result.result === null ? exitCodes.error : toExitCode(result.result as RunResult))
      await results.write(toResultLine(result))
    }
  } finally {
    io.stdout.off('error', park)
    clearTimeout(timer)
    removeListener()
    line.close()
    await results.close(remaining === 0)
  }

  const write = (text: string): void => writeNotice(io, text)
  write(`batch '${id}': ${formatProgress({ ...progress, running: 0, timeLeftMs: null })}.`)
  if (unpaid > 0)
    write(`a shared budget cannot pay for ${unpaid} lines. Start the batch again after it resets.`)
  if (progress.failed > 0 && !retryFailed)
    write('to run failed lines again, add --retry-failed to the command.')
  if (progress.waiting > unpaid) {
    const session = quoteShellWord(`${id}.LINE-ID`)
    const carried = formatCarriedOptions({ store: options.store })
    write(`to answer a waiting line, run statewright resume ${session}${carried}, then rerun the batch.`)
  }
  if (remaining > 0) {
    const isLimit = isCostLimitReached() && !io.signal.aborted && !isDraining
    const next =
      isLimit && costLimit !== undefined
        ? `the batch has cost ${formatMoney(progress.cost ?? 0)} of ${formatMoney(costLimit)}. Raise --cost-limit to continue.`
        : 'run the same command to continue.'
    write(`the results of ${remaining} lines are not written yet: ${next}`)
    if (io.signal.aborted) return exitCodes.cancelled
    if (isDraining) return exitCodes.released
    if (isLimit) codes.add(exitCodes.stopped)
  }
  return toWorstExitCode(codes)
}

/** Formats `[====== ] `. */
export function formatBar({ total, done, failed, waiting }: BatchProgress): string {
  if (total === null || total === 0) return ''
  const width = 20
  const filled = Math.min(width, Math.floor((width * (done + failed + waiting)) / total))
  return `[${'='.repeat(filled)}${' '.repeat(width - filled)}] `
}

/** Formats `120/10000 done, 8 running, 2 waiting, 1 failed, $0.12, about 3 min left`. */
export function formatProgress(progress: BatchProgress): string {
  const { total, done, running, waiting, failed, cost, timeLeftMs } = progress
  return [
    `${done}${total === null ? '' : `/${total}`} done`,
    `${running} running`,
    `${waiting} waiting`,
    `${failed} failed`,
    formatMoney(cost, 'cost unknown'),
    ...(timeLeftMs === null ? [] : [`about ${formatTimeLeft(timeLeftMs)} left`]),
  ].join(', ')
}

function formatTimeLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 100) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
