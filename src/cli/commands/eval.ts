import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { systemClock } from '../../core/base/clock.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import { formatDuration, formatMoney } from '../../core/format/format-words.js'
import { memoryStore } from '../../core/sessions/store/memory-store.js'
import type { EvaluationCase } from '../../testing/evaluate/evaluation-case.js'
import type { EvaluationProgress } from '../../testing/evaluate/evaluate.js'
import type { EvaluationReport, ReportComparison } from '../../testing/evaluate/evaluation-report.js'
import type { Scorers } from '../../testing/evaluate/score-run.js'
import {
  badUsageError,
  type CliIO,
  defineCommand,
  parseDecimal,
  type ParsedOptions,
  toCommands,
  writeNotice,
} from '../command.js'
import { type ExitCode, exitCodes } from '../exit-codes.js'
import { createRefusal, fileError, loadAgent, loadFile, loadModule } from '../load.js'
import {
  agentModuleOption,
  expectAgentModule,
  formatCarriedOptions,
  readSelection,
  refuseStray,
  storeOption,
} from '../options.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { createProgressLine, wantsColor, writeOutput } from '../output.js'
import {
  closeAfter,
  describeStore,
  type OpenedStore,
  openStoreForRun,
  openStoreToShow,
} from '../session-store.js'

const optionSpecs = {
  ...agentModuleOption,
  score: {
    value: 'MODULE',
    about: 'a module that exports score: a scorer, or several by name (default: a completed run scores 1)',
  },
  against: { value: 'FILE', about: 'compare with a report written by --out' },
  repeat: { value: 'N', min: 1, about: 'run each case this many times (default: 1)' },
  concurrency: { value: 'N', min: 1, about: 'the number of cases to run concurrently (default: 4)' },
  out: { short: 'o', value: 'FILE', about: 'write the report as JSON' },
  html: { value: 'FILE', about: 'write the report as an HTML page with charts' },
  json: { about: 'print the report as one line of JSON instead of a table' },
  'fail-below': { value: 'N', about: 'exit with 1 if the mean score is below this number from 0 to 1' },
  'max-regression': {
    value: 'N',
    about: 'with --against: exit with 1 if the mean score has fallen by more than this number',
  },
  'pass-at': { value: 'N', about: 'the minimum score to pass (default: 0.5)' },
  seed: { value: 'N', min: 0, about: "the bootstrap's seed (default: 1)" },
  'from-store': { about: 'replay stored sessions instead of cases' },
  last: {
    value: 'N',
    min: 1,
    about: 'with --from-store: the number of recent sessions to replay (default: 100)',
  },
  tag: { value: 'NAME=VALUE', about: 'with --from-store: only sessions with this tag; can be repeated' },
  prefix: { value: 'TEXT', about: 'with --from-store: only sessions whose ids start with TEXT and a colon' },
  marked: { about: 'with --from-store: only steps marked in the studio, one case per step' },
  id: {
    value: 'NAME',
    about: "the evaluation's id; its sessions are named NAME.CASE.1 (default: a new one)",
  },
  ...storeOption,
} as const

type EvalOptions = ReturnType<typeof readEvalOptions>

function readEvalOptions(parsed: ParsedOptions<typeof optionSpecs>) {
  const { values } = parsed
  const [cases] = parsed.positionals
  const { repeat = 1, concurrency = 4, last = 100, marked = false, ...given } = values
  const isReplay = values['from-store']
  if (cases === undefined && !isReplay)
    throw badUsageError(
      'Pass a file with one { "id", "input", "expected"? } per line, or replay sessions: --from-store.',
      'CASES',
    )
  if (cases !== undefined && isReplay)
    throw badUsageError(`--from-store and cases ('${cases}') cannot be combined. Choose one.`, '--from-store')
  if (!isReplay) refuseStray(values, ['last', 'tag', 'prefix', 'marked'], '--from-store')
  const agent = expectAgentModule(values.agent)
  const share = (name: 'fail-below' | 'max-regression' | 'pass-at'): number | undefined =>
    parseDecimal(`--${name}`, values[name], { is: (value) => value <= 1, phrase: 'a number from 0 to 1' })
  const maxRegression = share('max-regression')
  if (maxRegression !== undefined && values.against === undefined)
    throw badUsageError('--max-regression needs --against FILE.', '--max-regression')
  return {
    ...given,
    agent,
    repeat,
    concurrency,
    maxRegression,
    /** The file with the cases. If undefined, the sessions of `source` are replayed. */
    cases,
    source: isReplay && { last, marked, ...readSelection(parsed) },
    failBelow: share('fail-below'),
    passAt: share('pass-at'),
  }
}

export const evalCommand = defineCommand({
  name: 'eval',
  about: 'Runs an agent on cases, and scores and compares the results.',
  positional: '[CASES.jsonl]',
  options: optionSpecs,
  notes: [
    'A line of CASES is { "id", "input", "expected"?, "tags"? }. A scorer is a function (result, case) that returns a number ' +
      'from 0 to 1, true or false, or { score, why }. judge() from statewright/testing creates one that asks a model.',
    'With --from-store, the agent gets the user messages from stored sessions. A call that was recorded with the same ' +
      "arguments gets the recorded result. Any other call runs only if its tool is readOnly; otherwise the case ends as 'diverged'. " +
      "The store is only read, and the replay's sessions are not stored.",
    'Ctrl-C stops and reports the scores so far. With --id, the same command continues without rerunning finished sessions.',
    'Exit codes: 0 no threshold crossed, 1 a threshold was crossed or a run failed, 2 bad usage or configuration, 130 ' +
      'stopped by Ctrl-C.',
    'Examples:\n' +
      '  statewright eval cases.jsonl --agent ./agent.mjs --out base.json\n' +
      '  statewright eval cases.jsonl --agent ./agent.mjs --score ./score.mjs \\\n' +
      '    --against base.json --max-regression 0.05\n' +
      '  statewright eval --from-store --last 100 --tag plan=pro \\\n' +
      '    --agent ./agent.mjs --html report.html',
  ],
  execute: async (parsed, io) => {
    const options = readEvalOptions(parsed)
    await Promise.all([
      checkWritable('--out', options.out, io.cwd),
      checkWritable('--html', options.html, io.cwd),
    ])
    const opened = options.source
      ? { store: memoryStore(), isKept: false }
      : await openStoreForRun(options.store, io)
    return closeAfter(opened.store, () => runEvaluation(options, opened, io))
  },
})

async function runEvaluation(
  options: EvalOptions,
  { store, isKept }: OpenedStore,
  io: CliIO,
): Promise<ExitCode> {
  const { score, against, repeat, concurrency, passAt, seed, id } = options
  const { evaluate } = await import('../../testing/evaluate/evaluate.js')
  const { parseReport } = await import('../../testing/evaluate/evaluation-report.js')
  const base =
    against === undefined
      ? undefined
      : parseReport(await loadFile(against, io.cwd, '--against'), `--against: '${against}'`)
  const cases = await readCases(options, io)
  const scorers = score === undefined ? undefined : await loadScorers(score, io.cwd)
  const agent = (await loadAgent(options.agent, io.cwd, store)) as unknown as AnyAgent
  const line = createProgressLine(io, systemClock)
  const report = await evaluate({
    agent,
    cases,
    repeat,
    concurrency,
    signal: io.signal,
    onProgress: (progress) => line.update(formatProgress(progress)),
    ...omitUndefined({ score: scorers, passAt, seed, id }),
    store: isKept ? store : null,
  }).finally(() => line.close())

  const { compareReports } = await import('../../testing/evaluate/evaluation-report.js')
  const comparison = base ? compareReports(report, base) : null
  await writeReport(report, comparison, options, io)
  const crossed = listCrossed(report, comparison, options)
  for (const what of crossed) writeNotice(io, what)
  if (!report.interrupted) return crossed.length > 0 ? exitCodes.error : exitCodes.completed
  const how = id === undefined ? `with --id ${report.id}` : 'again'
  const next = isKept ? ` To continue, run the same command ${how}.` : ''
  writeNotice(io, `stopped: the remaining cases have no score.${next}`)
  return exitCodes.cancelled
}

async function readCases({ cases, source, store: url }: EvalOptions, io: CliIO): Promise<EvaluationCase[]> {
  const { parseCases, readSessionCases } = await import('../../testing/evaluate/evaluation-case.js')
  if (cases !== undefined) return parseCases(await loadFile(cases, io.cwd, 'CASES'), cases)
  const onDamaged = ({ message }: Error): void => writeNotice(io, `skipped a session: ${toCommands(message)}`)
  const found = await closeAfter(await openStoreToShow(url, io), (store) =>
    readSessionCases(store, { ...source, onDamaged }),
  )
  if (found.length > 0) return found
  throw badUsageError(
    `--from-store: ${await describeStore(url, io)} has no matching ${source?.marked ? 'marked step' : 'session with a user message'}. Forks and ` +
      'evaluation sessions are not replayed. Choose another store with --store.',
    '--from-store',
  )
}

async function writeReport(
  report: EvaluationReport,
  comparison: ReportComparison | null,
  { out, html, json, store }: EvalOptions,
  io: CliIO,
): Promise<void> {
  if (out !== undefined) await writeOutput(`${JSON.stringify(report, null, 1)}\n`, out, io)
  if (html !== undefined) {
    const { formatReportPage } = await import('../../testing/evaluate/format-report.js')
    await writeOutput(formatReportPage(report, comparison), html, io, { option: '--html' })
  }
  if (json) {
    io.stdout.write(`${JSON.stringify(comparison ? { ...report, comparison } : report)}\n`)
    return
  }
  const { formatReport } = await import('../../testing/evaluate/format-report.js')
  const color = wantsColor(io.stdout, io.env)
  const commandOptions = formatCarriedOptions({ store })
  const look = { width: io.stdout.columns ?? 100, color, commandOptions }
  io.stdout.write(formatReport(report, comparison, look))
}

function listCrossed(
  { summary: { verdicts, mean, runs } }: EvaluationReport,
  comparison: ReportComparison | null,
  { failBelow, maxRegression }: EvalOptions,
): string[] {
  const loss = -(comparison?.score?.value ?? 0)
  const crossed: string[] = []
  if (verdicts.error > 0) crossed.push(`${verdicts.error} of ${runs} runs failed and have no score.`)
  if (failBelow !== undefined && mean === null) crossed.push('no case has a score (--fail-below).')
  if (failBelow !== undefined && mean !== null && mean.value < failBelow)
    crossed.push(`the mean score ${mean.value.toFixed(3)} is below ${failBelow} (--fail-below).`)
  if (maxRegression !== undefined && comparison?.score == null)
    crossed.push('no case has a score in both reports (--max-regression).')
  if (maxRegression !== undefined && loss > maxRegression)
    crossed.push(
      `the mean score has fallen by ${loss.toFixed(3)}, more than ${maxRegression} (--max-regression).`,
    )
  return crossed
}

/** Formats `12/90 · 10 passed, 2 failed · 4 running · $0.01 · 12.0 s`. */
function formatProgress(progress: EvaluationProgress): string {
  const { done, total, running, passed, failed, errors, diverged, cost, elapsedMs } = progress
  const counts = [
    `${passed} passed`,
    `${failed} failed`,
    ...(errors > 0 ? [`${errors} errors`] : []),
    ...(diverged > 0 ? [`${diverged} diverged`] : []),
  ].join(', ')
  const spent = cost === null ? [] : [formatMoney(cost)]
  return [`${done}/${total}`, counts, `${running} running`, ...spent, formatDuration(elapsedMs)].join(' · ')
}

async function loadScorers(path: string, cwd: string): Promise<Scorers> {
  const { checkScorers } = await import('../../testing/evaluate/score-run.js')
  const { EvaluationError } = await import('../../testing/evaluate/evaluation-case.js')
  const refuse = createRefusal('bad_scorer', '--score')
  const example =
    'Export one, or several by name: export const score = { exact: (result, { expected }) => result.output === expected }.'
  const { score, default: byDefault } = await loadModule(path, cwd, refuse)
  const exported = score ?? byDefault
  if (exported === undefined) throw refuse(`'${path}' exports no scorer. ${example}`)
  try {
    return checkScorers(exported)
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error
    const problem = error.message.replace(/^evaluate: /, '')
    throw refuse(`'${path}' exports no usable scorer: ${problem} ${example}`, error)
  }
}

/** Checks that a report can be written before the evaluation costs money. */
async function checkWritable(option: string, path: string | undefined, cwd: string): Promise<void> {
  if (path === undefined) return
  const file = resolve(cwd, path)
  const existing = await stat(file).catch(() => null)
  try {
    if (existing?.isDirectory()) throw Object.assign(new Error('A folder.'), { code: 'EISDIR' })
    await access(existing ? file : dirname(file), constants.W_OK)
  } catch (cause) {
    throw fileError('unwritable_file', option, path, cause)
  }
}
