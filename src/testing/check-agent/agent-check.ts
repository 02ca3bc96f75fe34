import { formatCount } from '../../core/format/format-words.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { expectTrue } from '../check-assertions.js'
import type { SampledTool } from './agent-facts.js'
import type { AgentScene, Behavior } from './agent-scene.js'
import type { Script, Turn } from './scripted-model.js'

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
  title: string
  needs?: readonly AgentNeed[]
  run(scene: AgentScene): Promise<string | undefined>
}

export type AgentChecks = Readonly<Record<string, AgentCheckSpec>>

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
  throw noToolError('runs without approval', facts)
}

export function askingToolOf({ facts }: AgentScene): SampledTool {
  if (facts.askingTool) return facts.askingTool
  throw noToolError('needs approval', facts)
}

function noToolError(what: string, { unsampled }: AgentScene['facts']): NotAsked {
  const hint = unsampled.length > 0 ? `; pass inputs for ${unsampled.join(', ')}` : ''
  return new NotAsked(`the agent has no tool that ${what}${hint}`)
}

export const say = (text = 'Done.'): Turn => ({ text })

export const callOf = (tool: SampledTool, n = 0): Turn => ({
  calls: [{ name: tool.name, input: tool.input(n) }],
})

export const turns =
  (...list: Turn[]) =>
  (at: number): Turn =>
    list[at - 1] ?? say()

export const callOnce = (scene: AgentScene): Script => turns(callOf(toolOf(scene)))

export function cancelInCall(
  scene: AgentScene,
  then: Behavior,
  controller = new AbortController(),
): Promise<RunResult> {
  scene.behave = (execution, signal) => {
    controller.abort()
    return then(execution, signal)
  }
  return scene.play(callOnce(scene), {}, { signal: controller.signal })
}
