import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import type { RunResult, AgentState, Reason } from '../../../machines/agent/run-result.js'
import { noUsage, type Usage } from '../../../machines/agent/usage.js'
import { type AgentInternals, internalsByAgent } from '../../core/agent/agent-internals.js'
import type { Agent } from '../../core/agent/agent-options.js'
import { checkModels } from '../../core/agent/read-parts.js'
import { systemClock } from '../../core/base/clock.js'
import { ConfigError } from '../../core/base/errors.js'
import { overrideLimits } from '../../core/config/resolve-config.js'
import { checkPriceKnown } from '../../core/effects/check-run-start.js'
import { formatMoney } from '../../core/format/format-words.js'
import { quoteShellWord } from '../../core/format/shell-words.js'
import {
  type BatchItem,
  type BatchProgress,
  findBatchIdFault,
  findItemFault,
  getBatchSessionId,
  isUnpaid,
  runAll,
  type BatchResult,
} from '../../fleet/run-all.js'
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
import { loadAgent, fileError } from '../load.js'
import {
  agentModuleOption,
  drainSeconds,
  expectAgentModule,
  formatCarriedOptions,
  runOptions,
  storeOption,
} from '../options.js'
import { createProgressLine, waitForWrites } from '../output.js'
import { closeAfter, openStoreForRun } from '../session-store.js'
import { parseJsonOr, readProperty } from '../../core/base/json.js'
import { asObject, asText } from '../../core/base/values.js'

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
  const isCostLimitReached = (): boolean =>
    costLimit !== undefined && (progress.cost ?? Infinity) >= costLimit
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
        ? describeCostLimit(progress.cost, costLimit)
        : 'run the same command to continue.'
    write(`the results of ${remaining} lines are not written yet: ${next}`)
    if (io.signal.aborted) return exitCodes.cancelled
    if (isDraining) return exitCodes.released
    if (isLimit) codes.add(exitCodes.stopped)
  }
  return toWorstExitCode(codes)
}

function describeCostLimit(cost: number | null, limit: number): string {
  if (cost === null)
    return 'the cost of a line is unknown, so --cost-limit cannot be checked. Omit it to continue, and set a price for each model.'
  return `the batch has cost ${formatMoney(cost)} of ${formatMoney(limit)}. Raise --cost-limit to continue.`
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

interface DamagedLine {
  number: number
  /** The problem, phrased to complete a sentence. */
  fault: string
}

interface InputSummary {
  count: number
  /** The first damaged lines, up to 20. */
  damaged: DamagedLine[]
  damagedCount: number
}

type BatchInput = ReturnType<typeof openBatchInput>

/** Opens a file with one item per line. It is streamed twice, first for the check and then for the run. */
function openBatchInput(name: string, cwd: string, batch: string) {
  const path = resolve(cwd, name)

  async function* readItems(
    onDamaged?: (line: DamagedLine) => void,
  ): AsyncGenerator<{ item: BatchItem; number: number }> {
    for await (const { text, number } of readLines(path)) {
      if (text.trim() === '') continue
      const item = parseJsonOr(text, undefined)
      const fault = item === undefined ? 'is not valid JSON.' : findItemFault(batch, item)
      if (fault === null) yield { item: item as BatchItem, number }
      else onDamaged?.({ number, fault })
    }
  }

  /** @throws {CliError} `unreadable_file`, `duplicate_id` */
  async function check(): Promise<InputSummary> {
    const info = await stat(path).catch((cause: unknown) => {
      throw fileError('unreadable_file', 'INPUT', name, cause)
    })
    // A pipe can be read only once.
    if (!info.isFile())
      throw badUsageError(`INPUT is read twice, so it must be a file. '${name}' is not a file.`, 'INPUT')
    const numbers = new Map<string, number>()
    const summary: InputSummary = { count: 0, damaged: [], damagedCount: 0 }
    const items = readItems((line) => {
      summary.damagedCount += 1
      if (summary.damaged.length < 20) summary.damaged.push(line)
    })
    for await (const { item, number } of items) {
      const before = numbers.get(item.id)
      if (before !== undefined)
        throw new CliError(
          'duplicate_id',
          `Lines ${before} and ${number} of '${name}' have the same id, '${item.id}'. Each line needs a unique id.`,
          item.id,
        )
      numbers.set(item.id, number)
      summary.count += 1
    }
    return summary
  }

  return { check, readItems }
}

/** The default id of a batch: the name of its input without invalid characters. */
function toBatchId(path: string): string {
  const name = basename(path).replace(/\.[^.]*$/, '')
  return name
    .replaceAll(/[^A-Za-z0-9_:@-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 100)
}

interface TextLine {
  text: string
  /** From 1. */
  number: number
  /** The offset of the next line in bytes. */
  end: number
  /** False for a last line without a line break. */
  isWhole: boolean
}

/** Only a line feed ends a line. `node:readline` would also split at Unicode separators, which JSON may contain. */
async function* readLines(path: string): AsyncGenerator<TextLine> {
  let pieces: Buffer[] = []
  let number = 0
  let end = 0
  const endLine = (isWhole: boolean): TextLine => {
    const bytes = Buffer.concat(pieces)
    pieces = []
    number += 1
    end += bytes.length + (isWhole ? 1 : 0)
    const text = bytes.toString('utf8').replace(/\r$/, '')
    return { text: number === 1 ? text.replace(/^\uFEFF/, '') : text, number, end, isWhole }
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at))
      yield endLine(true)
      from = at + 1
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from))
  }
  if (pieces.length > 0) yield endLine(false)
}

/** A line in the results file. */
export interface ResultLine {
  id: string
  session: string
  state: AgentState
  reason: Reason | null
  output: string
  /** Tokens of the run. Null if there was no run. */
  usage: Omit<Usage, 'cost'> | null
  /** Cost of the run in USD. Null if it is unknown. */
  cost: number | null
  /** The reason for the end. Set if an error, a limit or a shield ended the run. */
  error?: { code: string; message: string }
}

function toResultLine({ item: { id }, session, result, error }: BatchResult): ResultLine {
  if (result === null) {
    const { code, message } = error ?? { code: 'internal', message: '' }
    const none = { state: 'ERROR', reason: null, output: '', usage: null, cost: null } as const
    return { id, session, ...none, error: { code, message } }
  }
  const { state, reason, output, usage: all, error: failure } = result as RunResult
  const { cost, ...usage } = all
  const details = failure && { error: { code: failure.code, message: failure.message } }
  return { id, session, state, reason, output, usage, cost, ...details }
}

/** Receives the results in the order of the input. */
interface Results {
  write(line: ResultLine): Promise<void>
  /** `isComplete` means that there is a line for every item. */
  close(isComplete: boolean): Promise<void>
}

function createResultStream(stdout: Writable): Results {
  return {
    async write(line) {
      if (!stdout.write(`${JSON.stringify(line)}\n`)) await waitForWrites(stdout)
    },
    close: () => Promise.resolve(),
  }
}

/**
 * Opens the results file. Lines from an earlier command are kept as long as they equal the new lines. The file is
 * rewritten from the first line that differs, such as a torn line or the line of an item that was waiting.
 * @throws {CliError} `foreign_results` for a file with other content, `unwritable_file`
 */
async function openResultsFile(name: string, cwd: string, batch: string): Promise<Results> {
  const path = resolve(cwd, name)
  const fail = (cause: unknown): never => {
    throw fileError('unwritable_file', '--out', name, cause)
  }
  await refuseForeignFile(path, name, batch)
  const file = await open(path, 'a').catch(fail)
  /** The lines from an earlier command, for as long as this command writes the same lines. */
  let before: AsyncGenerator<TextLine> | null = readLines(path)
  let end = 0
  const truncate = async (): Promise<void> => {
    await before?.return(undefined)
    before = null
    await file.truncate(end)
  }
  return {
    async write(line) {
      const text = JSON.stringify(line)
      try {
        if (before !== null) {
          const { value: known } = await before.next()
          if (known?.isWhole && known.text === text) {
            end = known.end
            return
          }
          await truncate()
        }
        await file.appendFile(`${text}\n`)
      } catch (error) {
        fail(error)
      }
    },
    async close(isComplete) {
      // These lines are left over from an earlier, longer input.
      if (isComplete && before !== null) await truncate()
      await before?.return(undefined)
      await file.close()
    },
  }
}

async function refuseForeignFile(path: string, name: string, batch: string): Promise<void> {
  try {
    // A pipe or a device would be read without an end.
    const info = await stat(path)
    if (!info.isFile() && !info.isDirectory())
      throw badUsageError(`--out must be a file. '${name}' is not a file.`, '--out')
    for await (const line of readLines(path)) {
      if (isFromBatch(line, batch)) return
      throw new CliError(
        'foreign_results',
        `--out: '${name}' does not contain results for the batch '${batch}'. Choose another file, or remove this one.`,
        '--out',
      )
    }
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    if (readProperty(cause, 'code') !== 'ENOENT')
      throw fileError('unwritable_file', '--out', name, cause, 'read')
  }
}

/** A first line without a line break may be torn. */
function isFromBatch({ text, isWhole }: TextLine, batch: string): boolean {
  const line = asObject(parseJsonOr(text, null))
  if (line) return line['session'] === getBatchSessionId(batch, asText(line['id']))
  return !isWhole && /^\{("(i(d("(:.*)?)?)?)?)?$/s.test(text)
}
