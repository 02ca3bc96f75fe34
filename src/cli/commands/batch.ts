import { quoteShellWord } from '../../core/format/shell-words.js'
import { systemClock } from '../../core/base/clock.js'
import { ConfigError } from '../../core/base/errors.js'
import { stripControls, formatMoney } from '../../core/format/format-words.js'
import { type AgentInternals, internalsByAgent } from '../../core/agent/agent-internals.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { checkModels } from '../../core/agent/read-parts.js'
import { overrideLimits } from '../../core/config/resolve-config.js'
import { checkPriceKnown } from '../../core/effects/check-run-start.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { noUsage } from '../../../machines/agent/usage.js'
import { type BatchItem, type BatchProgress, findBatchIdFault } from '../../fleet/batch.js'
import { isUnpaid } from '../../fleet/batch-run.js'
import { runAll } from '../../fleet/run-all.js'
import { BatchDisplay, formatProgress } from '../batch/batch-display.js'
import { BatchInput, type InputSummary, toBatchId } from '../batch/batch-input.js'
import { createResultStream, openResultsFile, type Results } from '../batch/results-file.js'
import { toResultLine } from '../batch/result-line.js'
import { badUsageError, CliError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { drainSeconds } from '../drain.js'
import { exitCodes, type ExitCode, toExitCode, toWorstExitCode } from '../exit-codes.js'
import { loadAgent } from '../load-agent.js'
import { openStoreForRun } from '../open-session-store.js'
import { type OptionSpecs, parseOptions, parseWholeNumber } from '../parse-options.js'
import { drainOptionSpec, formatCarriedOptions, storeOptionSpec } from './common-options.js'

const optionSpecs = {
  agent: {
    value: 'MODULE',
    about: 'a module whose default export is an agent, or a function of { store } that returns one',
  },
  id: { value: 'NAME', about: "the batch: its sessions are NAME.LINE-ID (default: the input's name)" },
  out: { short: 'o', value: 'FILE', about: 'where the results go, a line each (default: stdout)' },
  concurrency: { value: 'N', about: 'how many lines are at work at once (default: 8)' },
  'cost-limit': { value: 'USD', about: 'begin no line any more when the batch has cost so much' },
  'retry-failed': { about: 'run lines again that have failed: one more run of their session' },
  ...storeOptionSpec,
  ...drainOptionSpec,
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

interface BatchOptions {
  input: string
  agent: string
  id: string
  out: string | undefined
  concurrency: number
  costLimit: number | undefined
  retryFailed: boolean
  store: string | undefined
  drainMs: number
}

/** Reads the arguments of `statewright batch`. Throws a CliError for invalid ones. */
export function readBatchOptions(args: readonly string[]): BatchOptions {
  const { positionals, text, has } = parseOptions(args, optionSpecs)
  const [input, ...more] = positionals
  if (input === undefined)
    throw badUsageError('Name a file of lines { "id", "input" }: INPUT.jsonl.', 'INPUT')
  if (more.length > 0)
    throw badUsageError(`One INPUT at a time: '${more.join("', '")}' is too much.`, 'INPUT')
  const agent = text('agent')
  if (agent === undefined)
    throw badUsageError('Name the module of the agent: --agent ./agent.mjs.', '--agent')
  const id = text('id') ?? toBatchId(input)
  const fault = findBatchIdFault(id)
  if (fault !== null) throw badUsageError(`--id ${fault}.`, '--id')
  return {
    input,
    agent,
    id,
    out: text('out'),
    concurrency: parseWholeNumber('--concurrency', text('concurrency'), 1) ?? 8,
    costLimit: parseCost(text('cost-limit')),
    retryFailed: has('retry-failed'),
    store: text('store'),
    drainMs: 1000 * (parseWholeNumber('--drain', text('drain'), 0) ?? drainSeconds),
  }
}

function parseCost(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const value = /^\d*\.?\d+$/.test(given) ? Number(given) : Number.NaN
  if (Number.isFinite(value) && value > 0) return value
  throw badUsageError(`--cost-limit must be a number of USD above 0 (is '${given}').`, '--cost-limit')
}

export const batchCommand: Command = {
  name: 'batch',
  about: 'Runs an agent on each line of a file, and goes on where it was after a stop.',
  positional: 'INPUT.jsonl',
  options: optionSpecs,
  notes: [
    'A line of INPUT is { "id", "input", "tags"? }: the session BATCH.LINE-ID. A line of the results is\n' +
      '{ id, session, state, reason, output, usage, cost }, in the order of the input. The same command goes on after a kill:\n' +
      'what has ended is read from the store, and nothing runs twice. A line that waits for an answer is given as it waits:\n' +
      'answer it with statewright resume, and start the batch again.',
    'Ctrl-C parks the batch: runs stop where the same command continues them. A second one ends the command at once.\n' +
      'SIGTERM begins no line any more, and parks what is still at work after --drain SECONDS.',
    'Exit codes: 0 all completed, 1 an error or a damaged line, 2 bad usage or configuration, 3 a line or the batch was\n' +
      'stopped by a limit or guardrail, 4 a line waits for input, 130 parked by Ctrl-C, 143 parked at SIGTERM.',
    'Examples:\n' +
      '  statewright batch questions.jsonl --agent ./agent.mjs --out answers.jsonl\n' +
      '  statewright batch questions.jsonl --agent ./agent.mjs --concurrency 20 --cost-limit 5 --out answers.jsonl',
  ],
  execute: async (args, io) => {
    const options = readBatchOptions(args)
    const input = new BatchInput(options.input, io.cwd, options.id)
    const summary = await input.check()
    reportDamaged(summary, options.input, io)
    const { store } = await openStoreForRun(options.store, io)
    try {
      const agent = (await loadAgent(options.agent, io.cwd, store)) as unknown as Agent
      await checkAgent(agent, options)
      const results =
        options.out === undefined
          ? createResultStream(io.stdout)
          : await openResultsFile(options.out, { cwd: io.cwd, batch: options.id })
      return await new BatchCommand({ options, input, summary, agent, results, io }).run()
    } finally {
      await store.close()
    }
  },
}

function reportDamaged({ damaged, damagedCount }: InputSummary, input: string, { stderr }: CliIO): void {
  for (const { number, fault } of damaged)
    stderr.write(`statewright: ${stripControls(`line ${number} of '${input}' ${fault}`)}\n`)
  if (damagedCount > damaged.length)
    stderr.write(`statewright: ${damagedCount - damaged.length} more lines are damaged.\n`)
}

/** What would end every line alike is found before the first. */
async function checkAgent(agent: Agent, { agent: module, costLimit }: BatchOptions): Promise<void> {
  const { store, parts } = internalsByAgent.get(agent) as AgentInternals
  if (store === undefined)
    throw new CliError(
      'bad_agent',
      `--agent: the agent of '${module}' has no store, so that the batch could not go on after a stop. ` +
        'Take the one that the command opens: export default ({ store }) => createAgent({ store, … }).',
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

interface BatchCommandParts {
  options: BatchOptions
  input: BatchInput
  summary: InputSummary
  agent: Agent
  results: Results
  io: CliIO
}

/** One call of the command, from its first line to its summary. */
class BatchCommand {
  readonly #parts: BatchCommandParts
  readonly #display: BatchDisplay
  readonly #park = new AbortController()
  #progress: BatchProgress
  #codes = new Set<ExitCode>()
  #isDraining = false
  #given = 0
  /** Lines that a shared budget could not pay for. */
  #unpaid = 0

  constructor(parts: BatchCommandParts) {
    const { io, summary } = parts
    this.#parts = parts
    this.#display = new BatchDisplay(
      {
        write: (text) => io.stderr.write(text),
        isTerminal: io.stderr.isTTY === true && io.env['TERM'] !== 'dumb',
        columns: io.stderr.columns ?? 80,
      },
      systemClock,
    )
    const none = { done: 0, running: 0, waiting: 0, failed: 0, cost: 0, timeLeftMs: null }
    this.#progress = { total: summary.count, ...none }
    if (summary.damagedCount > 0) this.#codes.add(exitCodes.error)
  }

  async run(): Promise<ExitCode> {
    const { options, summary, agent, results, io, input } = this.#parts
    const stopListening = this.#listen()
    try {
      const given = runAll(agent, this.#untilStopped(input.readItems()), {
        id: options.id,
        concurrency: options.concurrency,
        retryFailed: options.retryFailed,
        total: summary.count,
        signal: AbortSignal.any([this.#park.signal, io.signal]),
        onProgress: (progress) => {
          this.#progress = progress
          this.#display.update(progress)
        },
      })
      for await (const result of given) {
        this.#given += 1
        if (result.result && isUnpaid(result.result)) this.#unpaid += 1
        this.#codes.add(result.result === null ? exitCodes.error : toExitCode(result.result as RunResult))
        await results.write(toResultLine(result))
      }
    } finally {
      stopListening()
      this.#display.close()
      await results.close(this.#left === 0)
    }
    return this.#finish()
  }

  /** The reader of stdout may go (`| head`), and SIGTERM may come. */
  #listen(): () => void {
    const { options, io } = this.#parts
    const park = (): void => this.#park.abort()
    if (options.out === undefined) io.stdout.on('error', park)
    let timer: ReturnType<typeof setTimeout> | undefined
    const removeListener = io.sigterm.setListener(() => {
      this.#isDraining = true
      const seconds = options.drainMs / 1000
      this.#display.note(
        `statewright: the process is shutting down: lines at work go on for at most ${seconds} s.`,
      )
      timer = setTimeout(park, options.drainMs)
    })
    return () => {
      io.stdout.off('error', park)
      clearTimeout(timer)
      removeListener()
    }
  }

  /** The items, for as long as new ones may begin. */
  async *#untilStopped(items: AsyncIterable<BatchItem>): AsyncGenerator<BatchItem> {
    for await (const item of items) {
      if (this.#isDraining || this.#isCostLimitReached) return
      yield item
    }
  }

  get #left(): number {
    return this.#parts.summary.count - this.#given
  }

  get #isCostLimitReached(): boolean {
    const { costLimit } = this.#parts.options
    return costLimit !== undefined && (this.#progress.cost ?? 0) >= costLimit
  }

  #finish(): ExitCode {
    const { options, io } = this.#parts
    const left = this.#left
    const say = (text: string): void => void io.stderr.write(`statewright: ${text}\n`)
    const { timeLeftMs: _timeLeftMs, ...counts } = this.#progress
    say(`batch '${options.id}': ${formatProgress({ ...counts, running: 0, timeLeftMs: null })}.`)
    if (this.#unpaid > 0)
      say(
        `lines that a shared budget cannot pay for: ${this.#unpaid}. Start the batch again when it is whole.`,
      )
    if (counts.failed > 0 && !options.retryFailed)
      say('lines that failed: the same command with --retry-failed runs them again.')
    if (counts.waiting > this.#unpaid)
      say(
        `lines that wait: statewright resume ${quoteShellWord(`${options.id}.LINE-ID`)}${formatCarriedOptions({ store: options.store })}, ` +
          'then start the batch again.',
      )
    if (left > 0) say(`${left} lines have no result yet: ${this.#describeStop()}`)
    if (left > 0 && io.signal.aborted) return exitCodes.cancelled
    if (left > 0 && this.#isDraining) return exitCodes.left
    if (left > 0 && this.#isCostLimitReached) this.#codes.add(exitCodes.stopped)
    return toWorstExitCode(this.#codes)
  }

  #describeStop(): string {
    const { costLimit } = this.#parts.options
    const isLimit = this.#isCostLimitReached && !this.#parts.io.signal.aborted && !this.#isDraining
    if (isLimit && costLimit !== undefined)
      return `the batch has cost ${formatMoney(this.#progress.cost ?? 0)} of ${formatMoney(costLimit)}. Raise --cost-limit to go on.`
    return 'the same command goes on.'
  }
}
