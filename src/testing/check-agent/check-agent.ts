import type { JsonObject } from '../../../machines/agent/json.js'
import { describeError, StatewrightError } from '../../core/base/errors.js'
import { expectArgument, functionRule, objectRule } from '../../core/base/values.js'
import { limitTime } from '../../core/base/abort.js'
import { checkOptions, integerRule, type OptionRules } from '../../core/config/check-options.js'
import type { AnyAgent } from '../../core/drive/define-agents.js'
import type { ModelProvider } from '../../core/models/provider.js'
import type { WithContext } from '../../core/tools/tool.js'
import { ChaosError } from '../chaos/chaos.js'
import { checkNames, CheckFailure } from '../check-assertions.js'
import { getInternals } from '../rebind-agent.js'
import { type AgentCheckClass, agentChecks, type AgentCheckSpec } from './agent-checks.js'
import { readAgentFacts } from './agent-facts.js'
import { AgentScene, NotAsked, type SceneOptions } from './agent-scene.js'
import { createScriptedModel } from './scripted-model.js'

/** Options for `checkAgent`. */
export interface CheckAgentOptions {
  /** Classes (`cancel`) and checks (`cancel/in-call`) to run. Defaults to all. */
  only?: readonly string[] | undefined
  /** Classes and checks to skip, with the reason. */
  skip?: Readonly<Record<string, string>> | undefined
  /** Determines how answers are split into chunks. Defaults to 1. */
  seed?: number | undefined
  /** Inputs by tool name, for tools whose schema yields no valid sample. */
  inputs?: Readonly<Record<string, JsonObject>> | undefined
  /** The user message. Defaults to `Go.`. */
  input?: string | undefined
  /** The app context passed to approvals, shields and guards. Required if a tool requires one. */
  context?: unknown
  /** Time limit per check in milliseconds. Defaults to 30 000. */
  withinMs?: number | undefined
}

const optionRules: OptionRules<CheckAgentOptions> = {
  only: { is: (value) => Array.isArray(value) && value.length > 0, phrase: 'a list of at least one name' },
  skip: objectRule([], 'an object that maps check names to reasons'),
  seed: integerRule,
  inputs: objectRule([], 'an object that maps tool names to inputs'),
  input: { is: (value) => typeof value === 'string' && value.trim() !== '', phrase: 'a non-empty string' },
  context: null,
  withinMs: {
    is: (value) => Number.isFinite(value) && Number(value) > 0,
    phrase: 'a positive number of milliseconds',
  },
}

/** The result of one check. */
export interface AgentCheck {
  class: AgentCheckClass
  /** The name, such as `cancel/in-call`. */
  name: string
  /** The scenario as a sentence. */
  tried: string
  /** `unproven` means that the planned fault did not occur, so the check proves nothing. */
  outcome: 'kept' | 'broken' | 'skipped' | 'unproven'
  /** Observations. Can be empty. */
  seen: string
  /** The problem, or why the check was skipped. Null if it passed. */
  problem: string | null
  /** The call that repeats this check. */
  repeat: string
}

/** The results of `checkAgent`. */
export interface AgentReport {
  seed: number
  checks: AgentCheck[]
  /** Broken and unproven checks, one sentence each. A test expects this list to be empty. */
  broken: string[]
}

const classes = Object.keys(agentChecks) as AgentCheckClass[]

const specs = classes.flatMap((of) =>
  Object.entries(agentChecks[of]).map(([name, spec]) => ({ class: of, name: `${of}/${name}`, spec })),
)

/**
 * Checks an agent in the same way as the conformance suite checks agent loops: truncated answers, the history after
 * every way to stop, cancellation, limits, loops, concurrent runs, approvals, faults in models, tools and stores, and
 * processes that die at each write.
 *
 * `make` receives a scripted model and returns an agent that uses it. It is called several times. Tools are not
 * executed, but replaced by stand-ins with the same schemas and approvals. The agent's shields, guards and memory are
 * used. Its store, shared budgets and telemetry are not.
 *
 * @example
 * const { broken } = await checkAgent((model) => createAgent({ model, tools: [add] }))
 * if (broken.length > 0) throw new Error(broken.join('\n'))
 *
 * @throws {StatewrightError} `bad_option` for a name that no check has, an input that its tool does not take, or
 * options that make no sense
 * @throws {EvaluationError} `not_an_agent`
 */
export async function checkAgent<Context = unknown>(
  make: (model: ModelProvider) => AnyAgent<Context>,
  options?: WithContext<CheckAgentOptions, NoInfer<Context>>,
): Promise<AgentReport> {
  expectArgument(
    'checkAgent(make)',
    make,
    functionRule('a function that creates the agent with the given model'),
  )
  const {
    only,
    skip = {},
    seed = 1,
    inputs = {},
    input = 'Go.',
    context,
    withinMs = 30_000,
  } = checkOptions<CheckAgentOptions>(
    'checkAgent(make, options)',
    options,
    optionRules,
    (message, key) => new StatewrightError('bad_option', message, key),
  )
  const known = [...classes, ...specs.map(({ name }) => name)]
  for (const [key, list] of Object.entries({ only: only ?? [], skip: Object.keys(skip) }))
    checkNames(key, list, known, `${classes.join(', ')}, and the names in a report`)
  const silent = createScriptedModel(() => ({ text: '' }), seed, { output: null })
  const { parts } = getInternals(make(silent) as AnyAgent)
  const facts = await readAgentFacts(parts, inputs, context)
  const scene: SceneOptions = { make: make as unknown as SceneOptions['make'], facts, seed, input, context }
  const report: AgentReport = { seed, checks: [], broken: [] }
  let stopped: string | undefined
  for (const { class: of, name, spec } of specs) {
    const isBasic = of === 'basics'
    if (only && !isBasic && !only.includes(name) && !only.includes(of)) continue
    const why = skip[name] ?? skip[of] ?? stopped
    // One check at a time, so that none delays another.
    const outcome = why === undefined ? await runCheck(spec, scene, withinMs) : skipped(why)
    const repeat = `checkAgent(make, { only: ['${name}'], seed: ${seed} })`
    report.checks.push({ class: of, name, tried: spec.title, ...outcome, repeat })
    if (outcome.outcome !== 'broken' && outcome.outcome !== 'unproven') continue
    if (isBasic) stopped = `${name} is broken`
    report.broken.push(`${name}: ${outcome.problem?.replace(/\.$/, '')}. Repeat it: ${repeat}`)
  }
  return report
}

type Outcome = Pick<AgentCheck, 'outcome' | 'seen' | 'problem'>

const skipped = (problem: string): Outcome => ({ outcome: 'skipped', seen: '', problem })

async function runCheck(spec: AgentCheckSpec, options: SceneOptions, withinMs: number): Promise<Outcome> {
  const scene = new AgentScene(options)
  const late = (): Error => new CheckFailure(`it took longer than ${withinMs} ms`)
  try {
    const seen = await limitTime({ ms: withinMs, late }, spec.run(scene))
    await scene.judge()
    return { outcome: 'kept', seen, problem: null }
  } catch (error) {
    if (error instanceof NotAsked) return skipped(error.message)
    if (error instanceof ChaosError) return { outcome: 'unproven', seen: '', problem: error.message }
    const problem = error instanceof CheckFailure ? error.message : `it failed: ${describeError(error)}`
    return { outcome: 'broken', seen: '', problem }
  } finally {
    scene.close()
  }
}

const signs: Record<AgentCheck['outcome'], string> = { kept: '✓', broken: '✗', skipped: '–', unproven: '?' }

/**
 * Formats a report with scenarios, problems, and how to repeat each check.
 *
 * @example
 * console.log(formatAgentReport(await checkAgent((model) => createAgent({ model, tools: [add] }))))
 */
export function formatAgentReport(report: AgentReport): string {
  expectArgument(
    'formatAgentReport(report)',
    report,
    objectRule(['checks', 'broken', 'seed'], 'a report of checkAgent'),
  )
  const { checks, seed } = report
  const count = (outcome: AgentCheck['outcome']): number =>
    checks.filter((check) => check.outcome === outcome).length
  const counts = (['kept', 'broken', 'unproven', 'skipped'] as const).flatMap((outcome) =>
    count(outcome) > 0 || outcome === 'broken' ? [`${count(outcome)} ${outcome}`] : [],
  )
  const lines = [`${checks.length} checks with seed ${seed}: ${counts.join(', ')}`]
  for (const of of new Set(checks.map((check) => check.class))) {
    lines.push('', of)
    for (const check of checks) if (check.class === of) lines.push(...formatCheck(check))
  }
  return `${lines.join('\n')}\n`
}

function formatCheck({ name, outcome, tried, seen, problem, repeat }: AgentCheck): string[] {
  const first = `  ${signs[outcome]} ${name.split('/')[1]}: ${tried}`
  if (outcome === 'kept') return [seen === '' ? first : `${first} (${seen})`]
  if (outcome === 'skipped') return [`${first}. Skipped: ${problem}`]
  return [first, `      ${problem}`, `      repeat: ${repeat}`]
}
