import { optionsRule, functionRule, expectArgument } from '../../core/base/values.js'
import type { ModelProvider } from '../../core/models/provider.js'
import {
  answerChecks,
  failureChecks,
  type ProviderCheckSpec,
  type ProviderServer,
  type ProviderTurn,
} from './provider-checks.js'
import { checkSkippedNames, findCheckProblem } from '../check-assertions.js'

/** The result of one check. */
export interface ProviderCheck {
  /** The name, such as `text` or `calls in parallel`, with the suffix `, whole` if the answer is not streamed. */
  name: string
  outcome: 'kept' | 'broken' | 'skipped'
  /** The problem, or why the check was skipped. Null if it passed. */
  problem: string | null
}

export interface ProviderReport {
  provider: string
  model: string
  checks: ProviderCheck[]
  /** Broken checks, one sentence each. A test expects this list to be empty. */
  broken: string[]
}

/** Options for `checkProvider`. */
export interface CheckProviderOptions {
  /** Checks to skip by name, with the reason. */
  skip?: Record<string, string> | undefined
  /** The time limit per check in milliseconds. Defaults to 10,000. */
  withinMs?: number | undefined
}

/**
 * Checks a `ModelProvider` against the loop's requirements: text, reasoning, calls, usage, finish reasons, failures,
 * aborts, and histories that its server accepts. `make` creates the provider for a server URL. `serve` starts a server
 * that speaks the provider's API, such as `startRehearsal`.
 *
 * @example
 * const make = (url: string) => openaiChat({ model: 'any', baseURL: url, apiKey: 'none' })
 * const { broken } = await checkProvider(make, startRehearsal)
 * if (broken.length > 0) throw new Error(broken.join('\n'))
 *
 * @throws StatewrightError `bad_option` for a name in `skip` that no check has
 */
export async function checkProvider(
  make: (url: string) => ModelProvider,
  serve: (script: { scenario: { turns: ProviderTurn[] }; strict: true }) => Promise<ProviderServer>,
  options: CheckProviderOptions = {},
): Promise<ProviderReport> {
  expectArgument('checkProvider(make)', make, functionRule('a function that creates a provider for a URL'))
  expectArgument(
    'checkProvider(make, serve)',
    serve,
    functionRule('a function that starts a server, such as startRehearsal'),
  )
  expectArgument('checkProvider(make, serve, options)', options, optionsRule)
  const { skip = {}, withinMs = 10_000 } = options
  checkSkippedNames(Object.keys(skip), Object.keys(all))
  const report: ProviderReport = { provider: '', model: '', checks: [], broken: [] }
  for (const [title, check] of Object.entries(all)) {
    for (const stream of check.only === undefined ? [true, false] : [true]) {
      const name = stream ? title : `${title}, whole`
      const why = skip[title]
      const problem = why ?? (await findProblem(check, stream))
      const outcome = why !== undefined ? 'skipped' : problem === null ? 'kept' : 'broken'
      report.checks.push({ name, outcome, problem })
      if (outcome === 'broken') report.broken.push(`${name}: ${problem}.`)
    }
  }
  return report

  async function findProblem(check: ProviderCheckSpec, stream: boolean): Promise<string | null> {
    const over = new AbortController()
    const server = await serve({ scenario: { turns: check.turns }, strict: true })
    const run = async (): Promise<void> => {
      const provider = make(server.url)
      report.provider = provider.provider
      report.model = provider.model
      await check.run({ provider, server, stream, over: over.signal })
    }
    try {
      const problem = await findCheckProblem(withinMs, run())
      return findRefusal(server) ?? problem
    } finally {
      over.abort()
      await server.close()
    }
  }
}

const all = { ...answerChecks, ...failureChecks }

/** Describes the first rejected request, or returns null. A rejected request is the cause of any later failure. */
function findRefusal({ requests }: ProviderServer): string | null {
  const refused = requests.find((request) => request.refused !== null)?.refused
  return refused == null ? null : `the server refused a request: ${refused.replace(/\.$/, '')}`
}

/**
 * Formats reports side by side, with one row per check and one column per provider.
 *
 * @example
 * const make = (url: string) => openaiChat({ model: 'any', baseURL: url, apiKey: 'none' })
 * console.log(formatProviderReports({ openaiChat: await checkProvider(make, startRehearsal) }))
 */
export function formatProviderReports(reports: Readonly<Record<string, ProviderReport>>): string {
  expectArgument('formatProviderReports(reports)', reports, {
    is: (value) =>
      typeof value === 'object' &&
      value !== null &&
      Object.values(value).every((report: Partial<ProviderReport>) => Array.isArray(report?.checks)),
    phrase: 'an object that maps titles to reports',
  })
  const columns = Object.entries(reports)
  const names = [...new Set(columns.flatMap(([, { checks }]) => checks.map(({ name }) => name)))]
  const marks = { kept: 'yes', broken: 'NO', skipped: '–' }
  const cell = (report: ProviderReport, name: string) => {
    const outcome = report.checks.find((check) => check.name === name)?.outcome
    return outcome === undefined ? '' : marks[outcome]
  }
  const rows = [
    ['', ...columns.map(([title]) => title)],
    ...names.map((name) => [name, ...columns.map(([, report]) => cell(report, name))]),
    ['kept', ...columns.map(([, report]) => formatKept(report))],
  ]
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? []
  return rows
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function formatKept({ checks }: ProviderReport): string {
  const applicable = checks.filter(({ outcome }) => outcome !== 'skipped')
  return `${applicable.filter(({ outcome }) => outcome === 'kept').length} of ${applicable.length}`
}
