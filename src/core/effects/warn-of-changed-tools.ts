import type { AgentRuntime } from '../live/runtime.js'
import type { ToolSpec } from '../models/provider.js'

interface Told {
  speaker: string | null
  specs: readonly ToolSpec[]
  /** Names of tools that have changed, and are in no record yet. */
  changed: readonly string[]
}

const nothing: readonly string[] = []

/** What the last request of each run has told its model of. */
const told = new WeakMap<AgentRuntime, Told>()

/** Emits a warning for each tool that is another one than at the run's last request: the list of a server may change. */
export function warnOfChangedTools(
  runtime: AgentRuntime,
  speaker: string | null,
  specs: readonly ToolSpec[],
): void {
  const before = told.get(runtime)
  if (before?.specs === specs) return
  // Each agent of a handoff has tools of its own.
  const changes = before?.speaker === speaker ? findChanges(before.specs, specs) : []
  const known = before?.changed ?? nothing
  const changed = changes.length === 0 ? known : [...known, ...changes.map(({ name }) => name)]
  told.set(runtime, { speaker, specs, changed })
  for (const { name, what } of changes) {
    const message = `The tool '${name}' has another ${what} than at the last request of this run. The model reads it as it is now.`
    runtime.emit({ type: 'warning', code: 'tool_changed', message })
  }
}

function findChanges(
  before: readonly ToolSpec[],
  now: readonly ToolSpec[],
): { name: string; what: string }[] {
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

/** The names that the record of an answer has; null: no tool has changed. */
export function takeChangedTools(runtime: AgentRuntime): string[] | null {
  const last = told.get(runtime)
  if (last === undefined || last.changed.length === 0) return null
  told.set(runtime, { ...last, changed: nothing })
  return [...last.changed]
}
