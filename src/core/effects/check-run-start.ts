import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Usage } from '../../../machines/agent/usage.js'
import { describeError, ConfigError } from '../base/errors.js'
import { createUsage } from '../prices/estimate-tokens.js'
import type { AgentParts } from '../live/agent-parts.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { ActiveSkill } from '../../../machines/agent/skills.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { SkillInfo } from '../tools/tool-outcomes.js'
import type { ToolSpec } from '../models/provider.js'

/** Rejects a run with a cost limit if past or future costs are unknown. */
export async function checkPriceKnown(
  { model, prices }: Pick<AgentParts, 'model' | 'prices'>,
  { limits, budget }: AgentConfig,
  session: Usage,
): Promise<void> {
  if (limits.costLimit === 0 || budget.onUnknownPrice !== 'error') return
  if (budget.scope === 'session' && session.cost === null) {
    throw unknownPriceError(
      'this session has already used tokens of unknown price. ' +
        "Start a new session, count this run alone with budget.scope: 'run', or use limits.tokenBudget instead.",
    )
  }
  for (const { provider, model: name } of [model, ...(model.fallbacks ?? [])]) {
    if ((await prices.price(provider, name, createUsage(1, 1))) !== null) continue
    throw unknownPriceError(
      `the price of '${name}' (${provider}) is not known. ` +
        `Set it in prices: { '${name}': { inputPerMillion, outputPerMillion } }, use limits.tokenBudget instead, ` +
        `or accept uncounted cost with budget.onUnknownPrice: 'warn'.`,
    )
  }
}

function unknownPriceError(problem: string): ConfigError {
  return new ConfigError('unknown_price', `limits.costLimit is set, but ${problem}`, 'limits.costLimit')
}

/** So that a missing engine does not fail the first search. @throws {ConfigError} `missing_package` */
export async function checkSearchInstalled({ search }: Pick<ToolSet, 'search'>): Promise<void> {
  try {
    await search?.ready()
  } catch (error) {
    const message = `${describeError(error)}. Or pass a custom search to toolSearch: toolSearch({ search: (query, tools) => names }).`
    throw new ConfigError('missing_package', message, 'tools', { cause: error })
  }
}

/** So that a missing tokenizer does not fail a later request. @throws {ConfigError} `missing_package` */
export async function checkTokenizerInstalled(
  { tokenizer }: AgentParts,
  { context }: AgentConfig,
): Promise<void> {
  if (context.window <= 0 || tokenizer) return
  const { loadDefaultTokenizer } = await import('../context/default-tokenizer.js')
  try {
    await loadDefaultTokenizer()
  } catch (error) {
    const message = `${describeError(error)}. Or pass a custom tokenizer to createAgent.`
    throw new ConfigError('missing_package', message, 'context.window', { cause: error })
  }
}

const checked = new WeakMap<AgentRuntime, readonly ActiveSkill[]>()

/** Warns once for each active skill whose file differs from the loaded version. */
export function warnOfChangedSkills(
  runtime: AgentRuntime,
  active: readonly ActiveSkill[],
  now: readonly SkillInfo[] | undefined,
): void {
  if (active.length === 0 || checked.get(runtime) === active) return
  checked.set(runtime, active)
  for (const { name, hash } of active) {
    const skill = now?.find((one) => one.name === name)
    if (skill?.hash === hash) continue
    const what = skill
      ? `The skill '${name}' has changed since the session loaded it. The session keeps the loaded version; load_skill reads the new one.`
      : `The session has loaded the skill '${name}', which the agent no longer has. Its instructions still apply.`
    runtime.emit({ type: 'warning', code: skill ? 'skill_changed' : 'skill_missing', message: what })
  }
}

type ToolsReport = Pick<ToolSet, 'specs'> & { speaker: string | null; changed: readonly string[] }

const reports = new WeakMap<AgentRuntime, ToolsReport>()

/** Warns about each tool that has changed since the run's last request, because an MCP server can change its tools. */
export function warnOfChangedTools(
  runtime: AgentRuntime,
  speaker: string | null,
  specs: readonly ToolSpec[],
): void {
  const before = reports.get(runtime)
  if (before?.specs === specs) return
  // After a handoff, the tools belong to another agent.
  const changes = before?.speaker === speaker ? findChanges(before.specs, specs) : []
  const changed = [...(before?.changed ?? []), ...changes.map(({ name }) => name)]
  reports.set(runtime, { speaker, specs, changed })
  for (const { name, what } of changes) {
    const message = `The tool '${name}' has changed since the last request of this run (${what}). The model reads the new version.`
    runtime.emit({ type: 'warning', code: 'tool_changed', message })
  }
}

function findChanges(before: readonly ToolSpec[], now: readonly ToolSpec[]) {
  const known = new Map(before.map((spec) => [spec.name, spec]))
  return now.flatMap(({ name, description, parameters }) => {
    const old = known.get(name)
    if (old === undefined) return []
    const what = [
      ...(old.description === description ? [] : ['description']),
      ...(JSON.stringify(old.parameters) === JSON.stringify(parameters) ? [] : ['schema']),
    ]
    return what.length === 0 ? [] : [{ name, what: what.join(' and ') }]
  })
}

export function takeChangedTools(runtime: AgentRuntime): string[] | null {
  const last = reports.get(runtime)
  if (last === undefined || last.changed.length === 0) return null
  reports.set(runtime, { ...last, changed: [] })
  return [...last.changed]
}
