/**
 * Model-based tests for XState v5 machines (paths over every transition, invariants, properties, replay), and
 * checks and evaluations for agents, stores and providers.
 */
export { listAgentEvents } from './agent/agent-alphabet.js'
export { agentInvariants } from './agent/invariants/index.js'
export { agentInputs, agentSpace, type AgentSpace, type AgentSpaceOptions } from './agent/agent-inputs.js'
export { findHistoryProblem } from './agent/invariants/transcript-rules.js'
export { serializeAgentState } from './agent/agent-state-key.js'
export { generatePaths, type GeneratedPaths, type GeneratePathsOptions } from './cover-paths.js'
export { formatCoverage, type Coverage, type UncoveredTransition } from './cover-paths.js'
export {
  generateJestTests,
  generateStoryTests,
  type JestTestsOptions,
  type StoryTestsOptions,
  type TestRunner,
} from './generate-tests.js'
export { PathError, type PathErrorCode } from './errors.js'
export {
  checkInvariants,
  type Arrival,
  type Counterexample,
  type Invariant,
  type InvariantReport,
} from './check-invariants.js'
export {
  createMachineHarness,
  replay,
  type ReplayClock,
  type ReplayHarness,
  type ReplayOptions,
  type ReplayPath,
  type ReplayResult,
  type ReplayStep,
  type RestingState,
  pathOf,
} from './replay-path.js'
export { checkSessionLog } from './check-session-log.js'
export type { LogViolation } from './reference-model/judge-log.js'
export type { MachineAction } from '../core/chart/observe-machine.js'
export { replaySession, type ReplaySessionOptions, type SessionReplay } from './play/play-session.js'
export {
  ReplayError,
  type DifferenceKind,
  type RecordedAgent,
  type RecordedEntry,
  type RecordedTool,
  type Recording,
  type ReplayErrorCode,
  type SessionDifference,
  recordSession,
} from './play/recording.js'
export { createRecordedAgent } from './play/recorded-agent.js'
export { checkProperties, type PropertyReport } from './properties/check-properties.js'
export {
  always,
  canReach,
  isFinal,
  decreases,
  leadsTo,
  never,
  until,
  type Fairness,
  type Moment,
  type MomentCondition,
  type Property,
} from './properties/property.js'
export {
  checkStory,
  type PropertyStory,
  type ReplayedStory,
  type StoryReport,
} from './properties/check-properties.js'
export {
  diffMachines,
  type ContextParting,
  type DiffMachinesOptions,
  type MachineDiff,
  type MachineDifference,
  type MachineDifferenceKind,
} from './diff/diff-machines.js'
export { explore, type ExploredGraph, type ExploredMove, type ExploredState } from './explore.js'
export { formatPath, type MachinePath, type PathStep } from './machine-path.js'
export {
  checkProvider,
  formatProviderReports,
  type CheckProviderOptions,
  type ProviderReport,
  type ProviderServer,
  type ProviderTurn,
  type ServedMessage,
  type ServedRequest,
} from './provider/check-provider.js'
export { checkStore, type CheckStoreOptions, type StorePlace, type StoreReport } from './store/check-store.js'
export type { CheckReport, CheckResult } from './check-assertions.js'
export {
  checkAgent,
  formatAgentReport,
  type AgentCheck,
  type AgentReport,
  type CheckAgentOptions,
} from './check-agent/check-agent.js'
export type { AgentCheckClass } from './check-agent/agent-checks.js'
export {
  ChaosError,
  type Chaos,
  type ChaosErrorCode,
  type FaultPlan,
  type PlannedFault,
  type RandomFaults,
  chaosModel,
  chaosStore,
  chaosTool,
  type ModelFault,
  type StoreFault,
  type ToolFault,
} from './chaos/chaos.js'
export {
  compareGuards,
  replayGuards,
  replaySteps,
  type CompareGuardsOptions,
  type GuardComparison,
  type GuardReplay,
  type GuardSavings,
  type GuardStop,
  type RecordedCall,
  type RecordedStep,
  type RecordedTools,
  type ReplayedFinding,
} from './replay-guards.js'
export {
  createDoneActorEvent,
  createErrorActorEvent,
  type ExploreOptions,
  type ExploreProgress,
  type NamedValues,
} from './explore-options.js'
export type { DeclaredTransition } from '../core/chart/state-labels.js'
export { evaluate, type EvaluateOptions, type EvaluationProgress } from './evaluate/evaluate.js'
export {
  EvaluationError,
  parseCases,
  readSessionCases,
  type CaseProblem,
  type EvaluationCase,
  type EvaluationErrorCode,
  type RecordedResult,
  type RecordedSession,
  type SessionCasesOptions,
} from './evaluate/evaluation-case.js'
export {
  parseReport,
  type CaseVerdict,
  type EvaluatedCase,
  type EvaluatedRun,
  type EvaluationCost,
  type EvaluationReport,
  type EvaluationSummary,
  type GivenScore,
  type GuardSaid,
  type Interval,
  type ScoreSummary,
  type Spread,
  compareReports,
  type CaseChange,
  type ReportComparison,
} from './evaluate/evaluation-report.js'
export {
  judge,
  type JudgeOptions,
  type Score,
  type Scorer,
  type ScorerContext,
} from './evaluate/score-run.js'
export { formatReport, type FormatReportOptions, formatReportPage } from './evaluate/format-report.js'
