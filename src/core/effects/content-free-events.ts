import type { AgentEvent } from '../../../machines/agent/announcements.js'

/** Which events hold content of a model, a tool or a person. */
const hasContentByType: Record<AgentEvent['type'], boolean> = {
  run_started: false,
  state_changed: false,
  usage: false,
  budget_warning: false,
  context_fitted: false,
  run_ended: false,
  user_message: true,
  stream_chunk: true,
  assistant_message: true,
  tool_call: true,
  tool_progress: true,
  tool_result: true,
  child_event: true,
  retry: true,
  guardrail: true,
  approval_requested: true,
  shield: true,
  memory: true,
  step_started: true,
  step_progress: true,
  step_completed: true,
  warning: true,
  error: true,
}

/**
 * Whether an event of a sub-agent may be emitted where shields screen results: the sub-agent's answer is the result of
 * its call, and shields screen it when the call has ended.
 */
export function isContentFree(event: AgentEvent): boolean {
  return !hasContentByType[event.type === 'child_event' ? event.event.type : event.type]
}
