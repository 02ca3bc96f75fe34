import { formatCount } from '../../core/format/format-words.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { expectTrue } from '../check-assertions.js'
import type { SampledTool } from './agent-facts.js'
import type { AgentScene } from './agent-scene.js'
import type { Turn } from './scripted-model.js'

/** The classes of the conformance suite that apply to any agent. */
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

export type AgentNeed = 'tool' | 'askingTool' | 'words' | 'variety'

export interface AgentCheckSpec {
  class: AgentCheckClass
  name: string
  title: string
  needs?: readonly AgentNeed[]
  run(scene: AgentScene): Promise<string | undefined>
}

/** Thrown when a check does not apply to the agent. */
export class NotAsked extends Error {}

export const describeEnd = ({ state, reason, error }: RunResult): string =>
  `${state} ${reason}${error ? `: ${error.message}` : ''}`

export const endOf = ({ state, reason }: RunResult): string => `${state} ${reason}`

export const isNormal = ({ state, reason }: RunResult): boolean =>
  state === 'COMPLETED' && reason === 'end_turn'

export const describeRun = ({ requests }: AgentScene, result: RunResult): string =>
  `${formatCount(requests.length, 'request')}, ${endOf(result)}`

export function expectNormal(result: RunResult): void {
  expectTrue(isNormal(result), `it ended ${describeEnd(result)}`)
}

/** @throws CheckFailure if a failure is reported as a normal end */
export function expectTold(result: RunResult, after = ''): void {
  expectTrue(!isNormal(result), `reported as a normal end${after} (${describeEnd(result)})`)
}

/** @throws CheckFailure for fewer or more requests than allowed */
export function expectRequests(
  { requests: { length } }: AgentScene,
  most: number,
  result: RunResult,
  least = 0,
): void {
  expectTrue(length >= least && length <= most, `${formatCount(length, 'request')} (${describeEnd(result)})`)
}

export function toolOf({ facts }: AgentScene): SampledTool {
  if (facts.tool) return facts.tool
  throw new NotAsked(noTool('runs without approval', facts.unsampled))
}

export function askingToolOf({ facts }: AgentScene): SampledTool {
  if (facts.askingTool) return facts.askingTool
  throw new NotAsked(noTool('needs approval', facts.unsampled))
}

function noTool(what: string, unsampled: readonly string[]): string {
  const hint = unsampled.length > 0 ? `; pass inputs for ${unsampled.join(', ')}` : ''
  return `the agent has no tool that ${what}${hint}`
}

export const say = (text = 'Done.'): Turn => ({ text })

export const callOf = (tool: SampledTool, n = 0): Turn => ({
  calls: [{ name: tool.name, input: tool.input(n) }],
})

/** Plays these turns, and then answers with plain text. */
export const turns =
  (...list: Turn[]) =>
  (at: number): Turn =>
    list[at - 1] ?? say()
