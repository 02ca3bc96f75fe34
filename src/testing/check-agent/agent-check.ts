import { formatCount } from '../../core/format/format-words.js'
import type { RunResult } from '../../../machines/agent/run-result.js'
import { expectTrue } from '../check-assertions.js'
import { type AgentScene, describeEnd } from './agent-scene.js'

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

export interface AgentCheckSpec {
  title: string
  /** Returns what was seen. Calls the tools of the scene before its first run, because the agent may have none. */
  run(scene: AgentScene): Promise<string>
}

export type AgentChecks = Readonly<Record<string, AgentCheckSpec>>

export const check = (title: string, run: AgentCheckSpec['run']): AgentCheckSpec => ({ title, run })

export const isNormal = ({ state, reason }: RunResult): boolean =>
  state === 'COMPLETED' && reason === 'end_turn'

export function expectNormal(result: RunResult): void {
  expectTrue(isNormal(result), `it ended ${describeEnd(result)}`)
}

/** @throws CheckFailure if a failure is reported as a normal end */
export function expectTold(result: RunResult, after = ''): void {
  expectTrue(!isNormal(result), `reported as a normal end${after} (${describeEnd(result)})`)
}

export function expectOneResult({ lastResults }: AgentScene): void {
  expectTrue(lastResults.length === 1, `the model received ${formatCount(lastResults.length, 'result')}`)
}
