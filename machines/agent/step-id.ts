import type { AgentContext } from './context.js'

/** The step that is under way, or comes next: unique within a session's transcript. */
export function stepIdOf(context: Pick<AgentContext, 'runId' | 'steps' | 'numbered'>): string {
  return `${context.runId}.${context.numbered}.${context.steps + 1}`
}
