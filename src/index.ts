/** The core: the machine, its guards and its runtime. Runs in Node, browsers, workers and edge runtimes. */
export { agentMachine } from '../machines/agent.machine.js'
export type {
  AgentEvent,
  EmittedEvent,
  ModelStepResponse,
  Step,
  StepCompleted,
  StepProgress,
  StepStarted,
  StepType,
  ToolStepResponse,
  ShieldViolation,
} from '../machines/agent/announcements.js'
export type { AgentConfig, AgentConfigInput, PresetName } from '../machines/agent/config.js'
export type { AgentContext, AgentInput } from '../machines/agent/context.js'
export type { UserGuardsOutput } from '../guards/user-state.js'
export type { AgentMachineEvent, ControlEvent } from '../machines/agent/context.js'
export type { CompactionOutput } from '../machines/agent/fit.js'
export type { Approval, Approvers } from '../machines/agent/approvals.js'
export type { Grant, GrantMatcher } from '../machines/agent/grant.js'
export type { GrantOptions } from './core/sessions/grant-input.js'
export type { Principal } from '../machines/agent/principal.js'
export type { Policy, PolicyCall, PolicyDecision } from './core/tools/policy.js'
export type { Json, JsonObject } from '../machines/agent/json.js'
export type {
  Annotation,
  AssistantMessage,
  ContentPart,
  MediaPart,
  Message,
  HostedCallOrigin,
  ProviderItems,
  SystemMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '../machines/agent/messages.js'
export type {
  AgentState,
  AnyTools,
  UnansweredCall,
  CancelledResult,
  CompletedResult,
  Elicitation,
  ElicitationAnswer,
  ElicitationField,
  ElicitationSchema,
  ElicitationValue,
  FinalState,
  PausedResult,
  PendingCall,
  Reason,
  RunInProgress,
  RunFailure,
  TurnEnd,
  RunResult,
  StoppedResult,
  StoreErrorResult,
  WaitingResult,
} from '../machines/agent/run-result.js'
export type {
  FailureKind,
  ModelFailure,
  ModelOutput,
  RefusedContent,
  ModelResponse,
} from '../machines/agent/model-response.js'
export type { CallScreening, InputScreening, OutputScreening } from '../machines/agent/screening.js'
export type { ResultStatus, ToolErrorKind, ToolResult, ToolTraits } from '../machines/agent/batch-calls.js'
export { getCacheHitRate, type TokenUsage, type Usage } from '../machines/agent/usage.js'
export { resolveConfig } from './core/config/resolve-config.js'
export { ConfigError, StatewrightError, UsageError } from './core/base/errors.js'
export type { MediaInput, InputPart, MediaData } from './core/models/media.js'
export type { MediaKind, Refusal } from '../machines/agent/refusals.js'
export { createEventFormatter, type EventFormatterOptions } from './core/format/format-events.js'
export { withFallbacks } from './core/models/fallbacks.js'
export {
  openaiChat,
  type OpenAIChatOptions,
  openaiResponses,
  type OpenAIResponsesOptions,
} from './core/models/openai/openai-provider.js'
export {
  type HostedCall,
  ModelError,
  type ModelProvider,
  type ModelRequest,
  type ModelRequestOptions,
  type RequestLimiter,
  type ResponseFormat,
  type SlotWait,
  type Sampling,
  type ToolChoice,
  type ToolSpec,
} from './core/models/provider.js'
export type { AsToolOptions, SubAgentTask } from './core/sub-agents/as-tool.js'
export { type SearchableTool, toolSearch, type ToolSearchOptions } from './core/tools/tool-search.js'
export { createAgent } from './core/agent/agent.js'
export { handoff, type HandoffOptions } from './core/agent/handoff.js'
export type {
  Agent,
  AgentOptions,
  BranchOptions,
  ResumeOptions,
  RunAttachment,
  RunOptions,
} from './core/agent/agent-options.js'
export {
  type Agents,
  type AnyAgent,
  defineAgents,
  type DefinedAgent,
  type VersionedAgent,
} from './core/drive/define-agents.js'
export type { SessionAnswer } from './core/drive/drive-answers.js'
export { runSession } from './core/drive/drive.js'
export { createSessionRunner, type SessionRunner, type SessionRunnerOptions } from './core/drive/driver.js'
export type { RunSessionOptions } from './core/drive/drive-options.js'
export type { SessionResult } from './core/drive/drive-rest.js'
export { listStrandedSessions, type StrandedSession } from './core/drive/stranded-sessions.js'
export type { AgentDefinition } from './core/sessions/agent-definition.js'
export { type Clock, systemClock } from './core/base/clock.js'
export type { HistoryMessage, RunInput } from './core/sessions/input-history.js'
export type { UserInput, UserInputMessage } from './core/sessions/user-input.js'
export { type Journal, type JournalEntry, memoryJournal } from './core/sessions/journal.js'
export type { AgentMachine } from './core/live/journaled-machine.js'
export {
  BlockedError,
  BudgetExceededError,
  CancelledError,
  GuardrailError,
  InvalidOutputError,
  MaxStepsError,
  NotFinishedError,
  objectOrThrow,
  orThrow,
  ProviderError,
  RunError,
  TimedOutError,
} from './core/run/run-errors.js'
export type { AnswerOptions, CallReference } from './core/run/answer-events.js'
export { type AnyAgentSnapshot, outputOf, pendingCalls, usageOf } from './core/agent/machine-input.js'
export type { Run } from './core/run/run.js'
export type { WatchedEvent, WatchOptions } from './core/run/watch-session.js'
export { restoreSession } from './core/sessions/restore-session.js'
export { createSession, Session, type SessionMetadata, type StoredSession } from './core/sessions/session.js'
export type { Tokenizer } from './core/context/default-tokenizer.js'
export type { Retriever, RetrievedSnippet } from './core/memory/retriever.js'
export { formatSnippets } from './core/memory/retrieved-text.js'
export {
  defineShield,
  llamaGuard,
  openaiModeration,
  patternShield,
  piiShield,
  runShields,
  type RunShieldsOptions,
  secretsShield,
  type Shield,
  type ShieldOutcome,
  type ShieldContext,
  type ShieldsOptions,
  type ShieldVerdict,
} from './core/shields/index.js'
export type { ForkEdit, ForkOptions } from './core/run/edit-fork.js'
export type { Receipt, SessionMessage, UserMessageToSend } from './core/sessions/inbox/session-message.js'
export type { BranchPoint } from './core/sessions/branch-tree.js'
export type { SessionBranches, SessionSnapshot } from './core/sessions/replay-session.js'
export type { SessionBranch } from './core/sessions/select-branch.js'
export { memoryStore, type MemoryStoreOptions } from './core/sessions/store/memory-store.js'
export type {
  Delivery,
  InboxPosition,
  InboxMessage,
  UnreadInbox,
  SessionInbox,
} from './core/sessions/store/inbox.js'
export type { ListOptions } from './core/sessions/store/list-options.js'
export type { SessionOwner } from './core/run/delete-sessions.js'
export type { SessionTags } from './core/sessions/store/session-tags.js'
export type { StepMark } from './core/sessions/store/step-marks.js'
export type {
  AcquireOptions,
  Appended,
  AppendOptions,
  Lease,
  LogRecord,
  ReadRange,
  ListedSession,
  SessionStore,
  SessionSummary,
  SyncSessionStore,
} from './core/sessions/store/store.js'
export type { DeepPartial } from './core/structured/partial-objects.js'
export type { OutputMode, OutputOf, OutputOptions } from './core/structured/structured-output.js'
export { StoreError, type StoreErrorCode } from './core/sessions/store/store-error.js'
export { defineTool } from './core/tools/define-tool.js'
export { type AgentSkills, type SkillInfo, type Sleep, sleepUntil } from './core/tools/tool-outcomes.js'
export type { Tool, ToolExecution } from './core/tools/tool.js'
export { toolContent, type ToolContent } from './core/tools/tool-content.js'
export { defineToolGroup, type ToolGroup, type ToolSource } from './core/tools/tool-set.js'
export type { ContextOf, ToolEntry, ToolsOf } from './core/tools/tool-set.js'
export type {
  PrepareStep,
  StepQuestion,
  StepResult,
  StepSettings,
  WriteInstructions,
} from './core/live/agent-parts.js'
export type { StepPlan } from '../machines/agent/step-plan.js'
export {
  type StopQuestion,
  type StopWhen,
  defineGuard,
  type GuardDefinition,
  type GuardedCall,
  type GuardedResult,
  type GuardFact,
  type GuardContext,
  type GuardVerdict,
  type UserGuard,
} from './core/user-guards/guard.js'
export { presets } from './core/config/presets.js'
export { ToolError, type ToolErrorOptions } from './core/tools/tool-error.js'
export type { Inspector } from './core/run/safe-listeners.js'
export type {
  TelemetryRequestInfo,
  TelemetryRunInfo,
  TelemetryStepInfo,
  RunTelemetry,
  Telemetry,
  TelemetryParent,
} from './core/telemetry/telemetry.js'
