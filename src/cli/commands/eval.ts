import { constants } from 'node:fs'
import { access, stat, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { systemClock, type Clock, readElapsed, unrefTimer } from '../../core/base/clock.js'
import { formatDuration, stripControls, formatMoney } from '../../core/format/format-words.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import type { SessionStore } from '../../core/sessions/store/store.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import type { ReportComparison } from '../../testing/evaluate/summarize-cases.js'
import type { EvaluationCase } from '../../testing/evaluate/evaluation-case.js'
import type { EvaluationProgress } from '../../testing/evaluate/evaluate.js'
import type { EvaluationReport } from '../../testing/evaluate/evaluation-report.js'
import { badUsageError, CliError } from '../cli-error.js'
import type { CliIO, Command } from '../command.js'
import { type EvalOptions, evalOptionSpecs, readEvalOptions } from '../eval/eval-options.js'
import { type ExitCode, exitCodes } from '../exit-codes.js'
import { loadAgent } from '../load-agent.js'
import { describeReadError, loadFile } from '../load-file.js'
import { describeStore, type OpenedStore, openStoreForRun, openStoreToShow } from '../open-session-store.js'
import { wantsColor } from '../render/paint.js'
import { formatCarriedOptions } from './common-options.js'

export const evalCommand: Command = {
  name: 'eval',
  about: 'Runs an agent on cases, scores the results, and compares them with earlier ones.',
  positional: 'CASES.jsonl',
  options: evalOptionSpecs,
  notes: [
    'A line of CASES is { "id", "input", "expected"?, "tags"? }. A scorer is a function (result, case) that returns a number\n' +
      'from 0 to 1, true or false, or { score, why }. judge() of statewright/testing makes one that asks a model.',
    'With --from-store, the messages of the users of stored sessions are given to the agent. A call that a session has recorded\n' +
      'with the same arguments gets the recorded result; another call runs only if its tool is readOnly, and else the case ends\n' +
      "'diverged' there. The store is only read, and the sessions of the replay are not kept.",
    'Ctrl-C reports what is scored. With --id, the same command goes on: sessions that have ended do not run again.',
    'Exit codes: 0 no threshold crossed, 1 a threshold is crossed, or a run is an error, 2 bad usage or configuration,\n' +
      '130 stopped by Ctrl-C.',
    'Examples:\n' +
      '  statewright eval cases.jsonl --agent ./agent.mjs --score ./score.mjs --out base.json\n' +
      '  statewright eval cases.jsonl --agent ./agent.mjs --score ./score.mjs --against base.json --max-regression 0.05\n' +
      '  statewright eval --from-store --last 100 --tag plan=pro --agent ./agent.mjs --html report.html',
  ],
  execute: async (args, io) => {
    const options = readEvalOptions(args)
    await Promise.all([
      checkWritable('--out', options.out, io.cwd),
      checkWritable('--html', options.html, io.cwd),
    ])
    const { store, isKept } = await openStore(options, io)
    try {
      return await new EvalCommand(options, io, isKept ? store : undefined).run(store)
    } finally {
      await store.close()
    }
  },
}

/** The store that keeps the sessions of the evaluation. Those of a replay are not kept. */
async function openStore({ store, source }: EvalOptions, io: CliIO): Promise<OpenedStore> {
  return source ? { store: memoryStore(), isKept: false } : openStoreForRun(store, io)
}

/** One call of the command. */
class EvalCommand {
  readonly #options: EvalOptions
  readonly #io: CliIO
  /** Undefined: nothing is kept. */
  readonly #kept: SessionStore | undefined

  constructor(options: EvalOptions, io: CliIO, kept: SessionStore | undefined) {
    this.#options = options
    this.#io = io
    this.#kept = kept
  }

  async run(store: SessionStore): Promise<ExitCode> {
    const { agent: module, score, against, repeat, concurrency, passAt, seed, id } = this.#options
    const io = this.#io
    const { evaluate } = await import('../../testing/evaluate/evaluate.js')
    const { loadScorers } = await import('../eval/load-scorers.js')
    const base = against === undefined ? undefined : await loadReport(against, io.cwd)
    const cases = await this.#readCases()
    const scorers = score === undefined ? undefined : await loadScorers(score, io.cwd)
    const agent = (await loadAgent(module, io.cwd, store)) as unknown as AnyAgent
    const line = new ProgressLine(io, systemClock)
    const report = await evaluate({
      agent,
      cases,
      repeat,
      concurrency,
      signal: io.signal,
      onProgress: (progress) => line.update(formatProgress(progress)),
      ...(scorers && { score: scorers }),
      ...(passAt !== undefined && { passAt }),
      ...(seed !== undefined && { seed }),
      ...(id !== undefined && { id }),
      store: this.#kept ?? null,
    }).finally(() => line.close())
    return this.#finish(report, base)
  }

  async #readCases(): Promise<EvaluationCase[]> {
    const { cases, source, store: url } = this.#options
    const io = this.#io
    if (cases !== undefined) {
      const { parseCases } = await import('../../testing/evaluate/evaluation-case.js')
      return parseCases(await loadFile(cases, io.cwd, 'CASES'), cases)
    }
    const { last, prefix, tags } = source ?? { last: 1, prefix: undefined, tags: {} }
    const { readSessionCases } = await import('../../testing/evaluate/evaluation-case.js')
    const { store } = await openStoreToShow(url, io)
    try {
      const found = await readSessionCases(store, {
        last,
        ...(prefix !== undefined && { prefix }),
        ...(Object.keys(tags).length > 0 && { tags }),
      })
      if (found.length === 0)
        throw badUsageError(
          `--from-store: ${await describeStore(url, io)} has no such session in which a user said anything. Forks and sessions of ` +
            'evaluations are not replayed. Name another store with --store.',
          '--from-store',
        )
      return found
    } finally {
      await store.close()
    }
  }

  async #finish(report: EvaluationReport, base: EvaluationReport | undefined): Promise<ExitCode> {
    const { out, html, json, store } = this.#options
    const { stdout, stderr, env, cwd } = this.#io
    const { compareReports } = await import('../../testing/evaluate/summarize-cases.js')
    const comparison = base ? compareReports(report, base) : null
    if (out !== undefined) await writeFile(resolve(cwd, out), `${JSON.stringify(report, null, 1)}\n`)
    if (html !== undefined) {
      const { formatReportPage } = await import('../../testing/evaluate/report-page.js')
      await writeFile(resolve(cwd, html), formatReportPage(report, comparison))
    }
    if (json) stdout.write(`${JSON.stringify(comparison ? { ...report, comparison } : report)}\n`)
    else {
      const { formatReport } = await import('../../testing/evaluate/format-report.js')
      const commandOptions = formatCarriedOptions({ store })
      const look = { width: stdout.columns ?? 100, color: wantsColor(stdout, env), commandOptions }
      stdout.write(formatReport(report, comparison, look))
    }
    const crossed = this.#listCrossed(report, comparison)
    for (const what of crossed) stderr.write(`statewright: ${stripControls(what)}\n`)
    if (!report.interrupted) return crossed.length > 0 ? exitCodes.error : exitCodes.completed
    stderr.write(`statewright: ${this.#describeStop(report)}\n`)
    return exitCodes.cancelled
  }

  #describeStop({ id }: EvaluationReport): string {
    if (!this.#kept) return 'stopped: the cases that are left have no score.'
    const how = this.#options.id === undefined ? `with --id ${id}` : 'again'
    return `stopped: the cases that are left have no score. Go on with the same command ${how}.`
  }

  /** Why the command fails, in sentences. */
  #listCrossed({ summary }: EvaluationReport, comparison: ReportComparison | null): string[] {
    const { failBelow, maxRegression } = this.#options
    const { verdicts, mean } = summary
    const fallen = -(comparison?.score?.value ?? 0)
    return [
      ...(verdicts.error > 0
        ? [`${verdicts.error} of ${summary.runs} runs are errors: they have no score.`]
        : []),
      ...(failBelow !== undefined && mean === null ? ['no case has a score (--fail-below).'] : []),
      ...(failBelow !== undefined && mean !== null && mean.value < failBelow
        ? [`the mean score ${mean.value.toFixed(3)} is below ${failBelow} (--fail-below).`]
        : []),
      ...(maxRegression !== undefined && comparison?.score == null
        ? ['no case has a score in both reports (--max-regression).']
        : []),
      ...(maxRegression !== undefined && fallen > maxRegression
        ? [
            `the mean score has fallen by ${fallen.toFixed(3)}, more than ${maxRegression} (--max-regression).`,
          ]
        : []),
    ]
  }
}

/** `12/90 · 10 passed, 2 failed · 4 running · $0.01 · 12.0 s` */
export function formatProgress(progress: EvaluationProgress): string {
  const { done, total, running, passed, failed, errors, diverged, cost, elapsedMs } = progress
  const counts = [
    `${passed} passed`,
    `${failed} failed`,
    ...(errors > 0 ? [`${errors} errors`] : []),
    ...(diverged > 0 ? [`${diverged} diverged`] : []),
  ]
  const spent = cost === null ? [] : [formatMoney(cost)]
  return [
    `${done}/${total}`,
    counts.join(', '),
    `${running} running`,
    ...spent,
    formatDuration(elapsedMs),
  ].join(' · ')
}

async function loadReport(path: string, cwd: string): Promise<EvaluationReport> {
  const { parseReport } = await import('../../testing/evaluate/evaluation-report.js')
  return parseReport(await loadFile(path, cwd, '--against'), `--against: '${path}'`)
}

/** That a report can be written is known before anything is spent. Throws a CliError. */
async function checkWritable(option: string, path: string | undefined, cwd: string): Promise<void> {
  if (path === undefined) return
  const file = resolve(cwd, path)
  const refuse = (why: string, cause?: unknown): CliError =>
    new CliError('unwritable_file', `${option}: ${why}`, option, { cause })
  const there = await stat(file).catch(() => null)
  if (there?.isDirectory()) throw refuse(`'${path}' is a folder; name a file in it.`)
  try {
    await access(there ? file : dirname(file), constants.W_OK)
  } catch (error) {
    throw refuse(
      there
        ? `'${path}' may not be written by you.`
        : `no file can be written there: ${describeReadError(error, dirname(path))}`,
      error,
    )
  }
}

/** How often a line at a terminal is drawn anew, and how often a log gets one, in milliseconds. */
const terminalMs = 100
const logMs = 5000

/** One line on stderr that says how far a command is: drawn over at a terminal, else a new one every five seconds. */
class ProgressLine {
  readonly #stderr: CliIO['stderr']
  readonly #clock: Clock
  readonly #isTerminal: boolean
  #text = ''
  #isShown = false
  #lastAt: number
  #timer: unknown

  constructor({ stderr, env }: Pick<CliIO, 'stderr' | 'env'>, clock: Clock) {
    this.#stderr = stderr
    this.#clock = clock
    this.#isTerminal = stderr.isTTY === true && env['TERM'] !== 'dumb'
    this.#lastAt = this.#isTerminal ? -Infinity : readElapsed(clock)
  }

  update(text: string): void {
    this.#text = text
    if (this.#timer !== undefined) return
    const waitMs = this.#lastAt + (this.#isTerminal ? terminalMs : logMs) - readElapsed(this.#clock)
    if (waitMs <= 0) return this.#write()
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined
      this.#write()
    }, waitMs)
    // It keeps no process alive.
    unrefTimer(this.#timer)
  }

  /** Removes the line from a terminal. */
  close(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isShown) this.#stderr.write('\r\u001B[K')
    this.#isShown = false
  }

  #write(): void {
    this.#lastAt = readElapsed(this.#clock)
    if (!this.#isTerminal) {
      this.#stderr.write(`statewright: ${this.#text}\n`)
      return
    }
    const width = Math.max(1, (this.#stderr.columns ?? 80) - 1)
    this.#stderr.write(`\r${Array.from(this.#text).slice(0, width).join('')}\u001B[K`)
    this.#isShown = true
  }
}
