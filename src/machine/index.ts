/** The chart, its conditions and its types, for apps that run their own actors. Depends on `xstate` only. */
export { agentMachine } from '../../machines/agent.machine.js'
export * as conditions from '../../machines/agent/conditions.js'
export type {
  BatchCall,
  ResultStatus,
  ToolErrorKind,
  ToolResult,
  ToolTraits,
} from '../../machines/agent/batch-calls.js'
export type { EmittedEvent } from '../../machines/agent/announcements.js'
export type { AgentConfig, AgentConfigInput } from '../../machines/agent/config.js'
export type { UserGuardsOutput } from '../../guards/user-state.js'
export type {
  AgentContext,
  AgentInput,
  Features,
  NewMessage,
  SessionState,
} from '../../machines/agent/context.js'
export type { CompactionOutput } from '../../machines/agent/fit.js'
export type { AgentMachineEvent, ControlEvent } from '../../machines/agent/context.js'
export type { Message, RetrievedSnippet, ToolCall } from '../../machines/agent/messages.js'
export type {
  CallNeeds,
  FailureDetails,
  ModelActorError,
  ModelOutput,
  ModelResponse,
} from '../../machines/agent/model-response.js'
export type { AgentState, Reason, RunResult } from '../../machines/agent/run-result.js'
export type { CallScreening, InputScreening, OutputScreening } from '../../machines/agent/screening.js'
export type { StepPlan } from '../../machines/agent/step-plan.js'
export type { TokenUsage, Usage } from '../../machines/agent/usage.js'
export {
  createInput,
  type MachineInputOptions,
  outputOf,
  pendingCalls,
  runnableCalls,
  usageOf,
} from '../core/agent/machine-input.js'
export { ConfigError } from '../core/base/errors.js'
export { resolveConfig } from '../core/config/resolve-config.js'
