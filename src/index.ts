/** The core: the machine, its guards and its runtime. Runs in Node, browsers, workers and edge runtimes. */
export { agentMachine } from '../machines/agent.machine.js'
export type {
  AgentEvent,
  Announcement,
  ModelStepResponse,
  Step,
  StepCompleted,
  StepProgress,
  StepStarted,
  StepType,
  ToolStepResponse,
  Violation,
} from '../machines/agent/announcements.js'
export type { AgentConfig, AgentConfigInput } from '../machines/agent/config.js'
export type { AgentContext, AgentInput } from '../machines/agent/context.js'
export type { AgentMachineEvent, PublicEvent } from '../machines/agent/events.js'
export type { Json, JsonObject } from '../machines/agent/json.js'
export type {
  AssistantMessage,
  ContentPart,
  Message,
  SystemMessage,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '../machines/agent/messages.js'
export type {
  AgentState,
  AnyTools,
  CallInQuestion,
  CancelledResult,
  CompletedResult,
  FinalState,
  PausedResult,
  PendingAnswer,
  Reason,
  RunAtWork,
  RunResult,
  StoppedResult,
  WaitingResult,
} from '../machines/agent/outcome.js'
export type { FailureKind, ModelFailure, ModelResponse } from '../machines/agent/response.js'
export type { ResultStatus, ToolErrorKind, ToolResult, ToolTraits } from '../machines/agent/results.js'
export type { TokenUsage, Usage } from '../machines/agent/usage.js'
export { resolveConfig } from './config/schema.js'
export { ConfigError, StatewrightError, UsageError } from './errors.js'
export { formatEvents, type FormatOptions } from './format/format-events.js'
export { openaiChat, type OpenAIChatOptions } from './providers/openai/openai-chat.js'
export {
  ModelError,
  type ModelProvider,
  type ModelRequest,
  type ModelRequestOptions,
  type ResponseFormat,
  type Sampling,
  type ToolChoice,
  type ToolSpec,
} from './providers/provider.js'
export type { AsToolOptions } from './runtime/delegation/as-tool.js'
export { createAgent } from './runtime/agent.js'
export type { Agent, AgentOptions, ResumeOptions, RunOptions } from './runtime/agent-options.js'
export { type Clock, systemClock } from './runtime/clock.js'
export type { HistoryMessage, RunInput } from './runtime/history.js'
export type { UserInput, UserInputMessage } from './runtime/input.js'
export type { RunAttachment } from './runtime/with-attachments.js'
export { type Journal, type JournalEntry, memoryJournal } from './runtime/journal.js'
export type { AgentMachine } from './runtime/journaled.js'
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
} from './runtime/or-throw.js'
export type { AnswerOptions, AskedCall } from './runtime/awaited-call.js'
export type { Run } from './runtime/run.js'
export { restoreSession } from './runtime/restore-session.js'
export { createSession, Session, type SessionMetadata, type StoredSession } from './runtime/session.js'
export type { Tokenizer } from './context/tokenizer.js'
export type { Retriever, RetrievedSnippet } from './memory/retriever.js'
export { retrievedText } from './memory/as-data.js'
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
  type ShieldQuestion,
  type ShieldsOptions,
  type ShieldVerdict,
} from './shields/index.js'
export type { Replayed } from './sessions/replay.js'
export { memoryStore, type MemoryStoreOptions } from './stores/memory-store.js'
export type {
  AcquireOptions,
  Lease,
  LogRecord,
  ReadRange,
  SessionEntry,
  SessionStore,
  SessionSummary,
} from './stores/store.js'
export type { OutputMode, OutputOf, OutputOptions } from './structured/structured-output.js'
export { StoreError, type StoreErrorCode } from './stores/store-error.js'
export { defineTool } from './tools/define-tool.js'
export type { Tool, ToolExecution } from './tools/tool.js'
export { defineToolGroup, type ToolGroup } from './tools/tool-group.js'
export type { ToolEntry } from './tools/tool-set.js'
export type { ContextOf, ToolsOf } from './tools/tool-types.js'
export type { ToolSource } from './tools/tool-source.js'
export { defineGuard } from './user-guards/define-guard.js'
export type {
  GuardDefinition,
  GuardedCall,
  GuardedResult,
  GuardFact,
  GuardQuestion,
  GuardVerdict,
  UserGuard,
} from './user-guards/guard.js'
export { presets } from './config/presets.js'
export { ToolError } from './tools/tool-error.js'
export type { Inspector } from './runtime/guarded-inspector.js'
