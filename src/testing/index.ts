/**
 * Tests from the graph of any XState v5 machine: paths that take every transition, rules that hold in every reachable
 * state, and a replay of the paths on the live machine.
 */
export { listAgentEvents } from './agent/agent-alphabet.js'
export { agentInvariants } from './agent/invariants/index.js'
export { agentInputs } from './agent/agent-inputs.js'
export { findHistoryProblem } from './agent/history-problem.js'
export { type AgentSpace, agentSpace, type AgentSpaceOptions } from './agent/agent-space.js'
export { serializeAgentState } from './agent/agent-state-key.js'
export { generatePaths, type GeneratedPaths, type GeneratePathsOptions } from './cover-paths.js'
export type { Coverage } from './coverage.js'
export { generateJestTests, type JestTestsOptions } from './emit-jest.js'
export type { TestRunner } from './test-runner.js'
export { PathError, type PathErrorCode } from './errors.js'
export {
  checkInvariants,
  type Arrival,
  type Counterexample,
  type Invariant,
  type InvariantReport,
} from './check-invariants.js'
export { createMachineHarness } from './machine-harness.js'
export { checkSessionLog, type LogViolation } from './check-session-log.js'
export type { MachineAction } from '../core/chart/observe-machine.js'
export { replaySession, type SessionReplay, type ReplaySessionOptions } from './play/play-session.js'
export {
  type DifferenceKind,
  ReplayError,
  type ReplayErrorCode,
  type SessionDifference,
} from './play/play-error.js'
export { createRecordedAgent } from './play/recorded-agent.js'
export { recordSession } from './play/record-session.js'
export type { RecordedAgent, RecordedEntry, RecordedTool, Recording } from './play/recording.js'
export {
  checkProperties,
  type PropertyReport,
} from './properties/check-properties.js'
export {
  always,
  decreases,
  type Fairness,
  leadsTo,
  type Moment,
  type MomentCondition,
  never,
  type Property,
  until,
} from './properties/property.js'
export { checkStory, type StoryReport } from './properties/play-story.js'
export type { PropertyStory, ReplayedStory } from './properties/story.js'
export { generateStoryTests, type StoryTestsOptions } from './properties/emit-stories.js'
export { diffMachines, type DiffMachinesOptions } from './diff/diff-machines.js'
export type { MachineDiff, MachineDifference } from './diff/machine-diff.js'
export type { ContextParting } from './diff/context-parting.js'
export type { MachineDifferenceKind } from './diff/machine-pair.js'
export { explore, type ExploredGraph, type ExploredMove, type ExploredState } from './explored-graph.js'
export { formatPath, type MachinePath, type PathStep } from './machine-path.js'
export { anyState, canReach, isFinal, type ReachReport, type StateCondition } from './can-reach.js'
export {
  checkProvider,
  type CheckProviderOptions,
  type ProviderCheck,
  type ProviderReport,
  formatProviderReports,
} from './provider/check-provider.js'
export type {
  ProviderServer,
  ProviderTurn,
  ServedMessage,
  ServedRequest,
} from './provider/provider-server.js'
export {
  checkStore,
  type CheckStoreOptions,
  type StoreCheck,
  type StorePlace,
  type StoreReport,
} from './store/check-store.js'
export {
  checkAgent,
  type AgentCheck,
  type AgentReport,
  type CheckAgentOptions,
} from './check-agent/check-agent.js'
export type { AgentCheckClass } from './check-agent/agent-check.js'
export { formatAgentReport } from './check-agent/format-agent-report.js'
export {
  type Chaos,
  ChaosError,
  type ChaosErrorCode,
  type FaultPlan,
  type PlannedFault,
  type RandomFaults,
} from './chaos/chaos.js'
export { chaosModel, type ModelFault } from './chaos/chaos-model.js'
export { chaosStore, type StoreFault } from './chaos/chaos-store.js'
export { chaosTool, type ToolFault } from './chaos/chaos-tool.js'
export {
  replay,
  type ReplayClock,
  type ReplayHarness,
  type ReplayOptions,
  type ReplayPath,
  type ReplayStep,
  type ReplayResult,
  type RestingState,
} from './replay-path.js'
export {
  replayGuards,
  replaySteps,
  type GuardReplay,
  type RecordedCall,
  type RecordedStep,
  type RecordedTools,
  type ReplayedFinding,
} from './replay-guards.js'
export {
  compareGuards,
  type CompareGuardsOptions,
  type GuardComparison,
  type GuardSavings,
  type GuardStop,
} from './compare-guards.js'
export { formatCoverage } from './coverage-table.js'
export {
  createDoneActorEvent,
  createErrorActorEvent,
  type ExploreOptions,
  type NamedValues,
  type ExploreProgress,
} from './explore-options.js'
export type { DeclaredTransition } from '../core/chart/transitions.js'
export type { UncoveredTransition } from './uncovered.js'
export { evaluate, type EvaluateOptions, type EvaluationProgress } from './evaluate/evaluate.js'
export {
  type EvaluationCase,
  parseCases,
  type RecordedResult,
  type RecordedSession,
} from './evaluate/evaluation-case.js'
export {
  type CaseProblem,
  EvaluationError,
  type EvaluationErrorCode,
} from './evaluate/evaluation-error.js'
export {
  type CaseVerdict,
  type EvaluatedCase,
  type EvaluatedRun,
  type EvaluationCost,
  type EvaluationReport,
  type EvaluationSummary,
  type GivenScore,
  type GuardSaid,
  parseReport,
  type ScoreSummary,
  type Spread,
} from './evaluate/evaluation-report.js'
export type { Interval } from './evaluate/statistics.js'
export type { Score, Scorer, ScorerContext } from './evaluate/score-run.js'
export { judge, type JudgeOptions } from './evaluate/judge.js'
export { type CaseChange, compareReports, type ReportComparison } from './evaluate/compare-reports.js'
export { readSessionCases, type SessionCasesOptions } from './evaluate/session-cases.js'
export { type FormatReportOptions, formatReport } from './evaluate/format-report.js'
export { formatReportPage } from './evaluate/report-page.js'
