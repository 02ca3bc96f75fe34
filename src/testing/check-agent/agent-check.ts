import { formatCount } from '../../core/format/format-words.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { expectTrue } from '../check-assertions.js'
import type { SampledTool } from './agent-facts.js'
import type { AgentScene } from './agent-scene.js'
import type { Turn } from './scripted-model.js'

/** The classes of the checks: those of the conformance suite that an agent of one's own can be asked. */
export const agentCheckClasses = [
  'basics',
  'truncation',
  'history',
  'cancel',
  'limits',
  'loops',
  'concurrency',
  'approvals',
  'faults',
  'resume',
] as const

export type AgentCheckClass = (typeof agentCheckClasses)[number]

/** What a check cannot do without. */
export type AgentNeed = 'tool' | 'askingTool' | 'words' | 'variety'

/** One check: what it tries, in a sentence, and its test. What it returns was seen. */
export interface AgentCheckSpec {
  class: AgentCheckClass
  name: string
  title: string
  needs?: readonly AgentNeed[]
  run(scene: AgentScene): Promise<string | undefined>
}

/** A check that this agent cannot be asked. */
export class NotAsked extends Error {}

export const describeEnd = ({ state, reason, error }: RunResult): string =>
  `${state} ${reason}${error ? `: ${error.message}` : ''}`

/** How a run ended, in two words. */
export const endOf = ({ state, reason }: RunResult): string => `${state} ${reason}`

/** Whether the user is told of a whole answer. */
export const isNormal = ({ state, reason }: RunResult): boolean =>
  state === 'COMPLETED' && reason === 'end_turn'

/** How many requests there were, and how the run ended. */
export const describeRun = ({ requests }: AgentScene, result: RunResult): string =>
  `${formatCount(requests.length, 'request')}, ${endOf(result)}`

/** @throws CheckFailure */
export function expectNormal(result: RunResult): void {
  expectTrue(isNormal(result), `it ended ${describeEnd(result)}`)
}

/** What went wrong is not told as a normal end. `after`: how far the run had come. @throws CheckFailure */
export function expectTold(result: RunResult, after = ''): void {
  expectTrue(!isNormal(result), `told as a normal end${after} (${describeEnd(result)})`)
}

/** @throws NotAsked */
export function toolOf({ facts }: AgentScene): SampledTool {
  if (facts.tool) return facts.tool
  throw new NotAsked(noTool('runs without a person', facts.unsampled))
}

/** @throws NotAsked */
export function askingToolOf({ facts }: AgentScene): SampledTool {
  if (facts.askingTool) return facts.askingTool
  throw new NotAsked(noTool('asks a person', facts.unsampled))
}

function noTool(what: string, unsampled: readonly string[]): string {
  const hint = unsampled.length > 0 ? `; give inputs for ${unsampled.join(', ')}` : ''
  return `the agent has no tool that ${what}${hint}`
}

export const say = (text = 'Done.'): Turn => ({ text })

/** A call of a tool with its sample input number `n`. */
export const callOf = (tool: SampledTool, n = 0): Turn => ({
  calls: [{ name: tool.name, input: tool.input(n) }],
})

/** These turns, and then words. */
export const turns =
  (...list: Turn[]) =>
  (at: number): Turn =>
    list[at - 1] ?? say()
